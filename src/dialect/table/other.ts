/** Dialects with a name and JSON, Python calls, tokens as quotes, channels. */
import { defined } from "../../base/json.ts";
import type { Block, Dialect, NamedBody } from "../dialect.ts";
import { json, plainResult, think } from "./parts.ts";

/** Around results; where no call came before, they are only tokens in a text. */
const outputMarks = [
  "<｜tool▁outputs▁begin｜>",
  "<｜tool▁output▁begin｜>",
  "<｜tool▁output▁end｜>",
  "<｜tool▁outputs▁end｜>",
];
interface DeepseekCall {
  readonly before: string;
  readonly separator: string;
  readonly after?: readonly string[];
  /** Between two calls of a section. */
  readonly between: string;
}

/** A section of calls; and a call alone, as distills forget the outer marker. */
function deepseekBlocks({ before, separator, after, between }: DeepseekCall): readonly Block[] {
  const open = "<｜tool▁call▁begin｜>";
  const body: NamedBody = {
    kind: "named",
    separator: [separator],
    close: ["<｜tool▁call▁end｜>"],
    ...defined({ after }),
  };
  return [
    {
      open: ["<｜tool▁calls▁begin｜>"],
      close: ["<｜tool▁calls▁end｜>"],
      bodies: [{ ...body, before: [`${open}${before}`] }],
      layout: { open: "<｜tool▁calls▁begin｜>", between, close: "<｜tool▁calls▁end｜>" },
    },
    { open: [open], close: [], bodies: [before === "" ? body : { ...body, before: [before] }] },
  ];
}

const thinkUntilSection = { ...think, callEnds: true };

export const otherDialects: readonly Dialect[] = [
  {
    name: "deepseek-v3",
    aliases: ["deepseek-r1", "deepseek"],
    title: "Name and fenced JSON between tokens",
    models: ["DeepSeek V3", "DeepSeek R1 and distills", "Cogito"],
    trust: "special-token",
    blocks: deepseekBlocks({ before: "function<｜tool▁sep｜>", separator: "\n", after: ["```json"], between: "\n" }),
    reasoning: [think],
    stray: ["<｜end▁of▁sentence｜>"],
    drop: outputMarks,
    results: ["<｜tool▁outputs▁begin｜>"],
    result: {
      role: "user",
      each: "<｜tool▁output▁begin｜>{text}<｜tool▁output▁end｜>",
      open: "<｜tool▁outputs▁begin｜>",
      close: "<｜tool▁outputs▁end｜>",
    },
  },
  {
    name: "deepseek-v3.1",
    title: "Name and JSON between tokens",
    models: ["DeepSeek V3.1", "DeepSeek V3.2-Exp"],
    trust: "special-token",
    blocks: deepseekBlocks({ before: "", separator: "<｜tool▁sep｜>", between: "" }),
    reasoning: [think],
    stray: ["<｜end▁of▁sentence｜>"],
    drop: outputMarks,
    results: ["<｜tool▁output▁begin｜>", "<｜tool▁outputs▁begin｜>"],
    result: { role: "user", each: "<｜tool▁output▁begin｜>{text}<｜tool▁output▁end｜>", between: "" },
  },
  {
    name: "kimi-k2",
    aliases: ["kimi", "kimi-k2.5"],
    title: "functions.NAME:N and JSON between tokens",
    models: ["Kimi K2", "Kimi K2.5 to 2.7", "Kimi K2 Thinking"],
    notes: "The id is part of the text and counts over the whole conversation.",
    trust: "special-token",
    blocks: [
      {
        open: ["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"],
        close: ["<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
        bodies: [
          {
            kind: "named",
            before: ["<|tool_call_begin|>"],
            separator: ["<|tool_call_argument_begin|>"],
            close: ["<|tool_call_end|>"],
            kimi: true,
          },
        ],
        layout: { open: "<|tool_calls_section_begin|>", between: "", close: "<|tool_calls_section_end|>" },
      },
      {
        open: ["<|tool_call_begin|>"],
        close: [],
        bodies: [
          {
            kind: "named",
            separator: ["<|tool_call_argument_begin|>"],
            close: ["<|tool_call_end|>"],
            kimi: true,
          },
        ],
      },
    ],
    reasoning: [thinkUntilSection],
    results: ["## Return of functions."],
    ids: "functions",
    result: { role: "user", each: "## Return of {id}\n{text}" },
  },
  {
    name: "mistral-v11",
    aliases: ["mistral-small", "devstral", "ministral", "mistral-v13"],
    title: "[TOOL_CALLS]NAME[ARGS]JSON",
    models: ["Mistral Small 3.2", "Devstral", "Ministral 3"],
    trust: "special-token",
    blocks: [
      {
        open: ["[TOOL_CALLS]"],
        close: [],
        bodies: [
          { kind: "named", separator: ["[ARGS]"], id: ["[CALL_ID]"], direct: true },
          { kind: "json", list: true },
        ],
        own: 1,
        between: ["[TOOL_CALLS]"],
        layout: { open: "[TOOL_CALLS]", between: "[TOOL_CALLS]", close: "" },
      },
    ],
    reasoning: [{ open: ["[THINK]"], close: ["[/THINK]"] }],
    results: ["[TOOL_RESULTS]"],
    ids: "nine",
    result: { role: "user", each: "[TOOL_RESULTS]{id}[TOOL_CONTENT]{text}[/TOOL_RESULTS]", between: "" },
  },
  {
    name: "functionary-v3.2",
    aliases: ["functionary"],
    title: ">>>NAME and a line of JSON",
    models: ["Functionary 3.2"],
    trust: "special-token",
    channels: "functionary",
    blocks: [],
    result: plainResult,
  },
  {
    name: "harmony",
    aliases: ["gpt-oss"],
    title: "Channels with recipients",
    models: ["gpt-oss"],
    trust: "special-token",
    channels: "harmony",
    blocks: [],
    stop: ["<|call|>"],
    result: {
      role: "user",
      each: "<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>{text}<|end|>",
    },
  },
  {
    name: "inkling",
    title: "JSON in a tool message",
    models: ["Inkling"],
    trust: "special-token",
    channels: "inkling",
    blocks: [],
    result: plainResult,
  },
  {
    name: "llama3-builtin",
    title: "NAME.call(…) after <|python_tag|>",
    models: ["Llama 3.1 and later, built-in tools"],
    trust: "special-token",
    blocks: [
      {
        open: ["<|python_tag|>"],
        close: [],
        bodies: [json, { kind: "python", list: "brackets", suffix: ".call" }],
        between: [";"],
      },
    ],
    result: plainResult,
  },
  {
    name: "pythonic",
    aliases: ["llama4", "gemma3", "toolace"],
    title: "[name(key=value)]",
    models: ["Llama 3.2 small", "Llama 4", "ToolACE", "Gemma 3 (taught)"],
    trust: "markerless",
    blocks: [
      { open: ["<|python_start|>"], close: ["<|python_end|>"], bodies: [{ kind: "python", list: "brackets" }, json] },
      { open: [], close: [], bodies: [{ kind: "python", list: "brackets" }], whole: true, pythonInText: true },
    ],
    stray: ["<|python_end|>"],
    result: plainResult,
  },
  {
    name: "olmo3",
    aliases: ["olmo"],
    title: "A Python call per line in <function_calls>",
    models: ["OLMo 3"],
    trust: "special-token",
    blocks: [{ open: ["<function_calls>"], close: ["</function_calls>"], bodies: [{ kind: "python", list: "lines" }] }],
    reasoning: [think],
    result: plainResult,
  },
  {
    name: "lfm2",
    aliases: ["lfm2.5"],
    title: "Python calls between tokens",
    models: ["LFM2", "LFM2.5"],
    trust: "special-token",
    blocks: [
      {
        open: ["<|tool_call_start|>"],
        close: ["<|tool_call_end|>"],
        bodies: [{ kind: "python", list: "brackets", quote: "'" }, json],
      },
    ],
    reasoning: [think],
    results: ["<|tool_response_start|>"],
    result: { role: "user", each: "<|tool_response_start|>{text}<|tool_response_end|>" },
  },
  {
    name: "gemma4",
    title: "call:NAME{…} with token quotes",
    models: ["Gemma 4"],
    trust: "special-token",
    blocks: [
      {
        open: ["<|tool_call>"],
        close: ["<tool_call|>"],
        bodies: [{ kind: "quoted", prefix: "call:", quote: '<|"|>', sorted: true }],
        layout: { open: "<|tool_call>", between: "<tool_call|><|tool_call>", close: "<tool_call|>" },
      },
    ],
    reasoning: [{ open: ["<|channel>thought\n", "<|channel>"], close: ["<channel|>"] }],
    stray: ["<tool_call|>", "<tool_response|>", "<turn|>"],
    results: ["<|tool_response>"],
    result: {
      role: "user",
      each: '<|tool_response>response:{name}{value:<|"|>{text}<|"|>}<tool_response|>',
      between: "",
    },
  },
  {
    name: "functiongemma",
    title: "call:NAME{…} with <escape> quotes",
    models: ["FunctionGemma"],
    trust: "special-token",
    blocks: [
      {
        open: ["<start_function_call>"],
        close: ["<end_function_call>"],
        bodies: [{ kind: "quoted", prefix: "call:", quote: "<escape>", sorted: true }],
      },
    ],
    results: ["<start_function_response>"],
    result: {
      role: "user",
      each: "<start_function_response>response:{name}{value:<escape>{text}<escape>}<end_function_response>",
    },
  },
];
