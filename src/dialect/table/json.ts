/** Dialects whose calls are JSON. */
import type { Dialect, PairsBody } from "../dialect.ts";
import { json, plainResult, think, toolCall, toolResponse, toolResponseMarks } from "./parts.ts";

/** Llama's and InternLM's word for the arguments. */
const withParameters = { kind: "json", args: ["parameters", "arguments"] } as const;
const llamaJson = { ...withParameters, lines: true } as const;
const longcatPairs: PairsBody = {
  kind: "pairs",
  key: { open: "<longcat_arg_key>", close: "</longcat_arg_key>" },
  value: { open: "<longcat_arg_value>", close: "</longcat_arg_value>" },
  trim: "none",
};
const list = { kind: "json", list: true } as const;
const cohereList = { ...list, name: ["tool_name", "name"], args: ["parameters", "arguments"] } as const;

export const jsonDialects: readonly Dialect[] = [
  {
    name: "hermes",
    aliases: ["qwen", "qwen2.5", "qwen3", "tool-call", "granite4"],
    title: "JSON in <tool_call>",
    models: ["Hermes 2/3", "Qwen2.5", "Qwen3 (not Coder)", "QwQ", "Granite 4", "MiMo-VL", "Reka Edge", "Trinity"],
    trust: "special-token",
    blocks: [toolCall(json)],
    reasoning: [think],
    results: toolResponseMarks,
    result: toolResponse,
  },
  {
    name: "ernie45",
    aliases: ["ernie"],
    title: "JSON in <tool_call>",
    models: ["ERNIE 4.5"],
    trust: "special-token",
    blocks: [toolCall(json)],
    reasoning: [think],
    drop: ["<response>", "</response>"],
    results: toolResponseMarks,
    result: toolResponse,
  },
  {
    name: "longcat",
    title: "JSON in <longcat_tool_call>",
    models: ["LongCat Flash"],
    trust: "special-token",
    blocks: [{ ...toolCall(json, longcatPairs), open: ["<longcat_tool_call>"], close: ["</longcat_tool_call>"] }],
    reasoning: [{ open: ["<longcat_think>"], close: ["</longcat_think>"] }, think],
    result: plainResult,
  },
  {
    name: "granite3",
    aliases: ["granite"],
    title: "JSON list after <|tool_call|>",
    models: ["Granite 3.x"],
    notes: "No closer: the list ends the call.",
    trust: "special-token",
    blocks: [{ open: ["<|tool_call|>", "<tool_call>"], close: [], bodies: [list] }],
    reasoning: [think],
    drop: ["<response>", "</response>"],
    stray: ["</tool_call>"],
    result: plainResult,
  },
  {
    name: "granite-20b-fc",
    title: "JSON after <function_call>",
    models: ["Granite 20B function calling"],
    trust: "special-token",
    blocks: [{ open: ["<function_call>"], close: [], bodies: [json] }],
    stray: ["</function_call>"],
    result: plainResult,
  },
  {
    name: "mistral",
    aliases: ["mistral-v3"],
    title: "JSON list after [TOOL_CALLS]",
    models: ["Mistral 7B v0.3", "Mistral Nemo"],
    trust: "special-token",
    blocks: [
      {
        open: ["[TOOL_CALLS]"],
        close: [],
        bodies: [
          { ...list, id: { key: "id", at: "last" } },
          { kind: "named", separator: ["[ARGS]"], id: ["[CALL_ID]"], direct: true },
        ],
        own: 1,
        between: ["[TOOL_CALLS]", ","],
      },
    ],
    reasoning: [{ open: ["[THINK]"], close: ["[/THINK]"] }],
    results: ["[TOOL_RESULTS]"],
    ids: "nine",
    result: {
      role: "user",
      each: '[TOOL_RESULTS]{"content": {text}, "call_id": "{id}"}[/TOOL_RESULTS]',
      between: "",
    },
  },
  {
    name: "llama3-json",
    aliases: ["llama3", "llama3.1", "llama3.2", "llama3.3"],
    title: "JSON, bare or after <|python_tag|>",
    models: ["Llama 3.1", "Llama 3.2", "Llama 3.3"],
    notes: "Without the tag, only a message that is nothing but calls counts.",
    trust: "markerless",
    blocks: [
      {
        open: ["<|python_tag|>"],
        close: [],
        bodies: [llamaJson, { kind: "python", list: "brackets", suffix: ".call" }],
        between: [";", "<|python_tag|>"],
      },
      {
        open: [],
        close: [],
        bodies: [llamaJson],
        between: [";"],
        whole: true,
        // The tag is for built-in tools; the templates write all others without it.
        layout: { open: "", between: "; ", close: "" },
      },
    ],
    result: plainResult,
  },
  {
    name: "json-array",
    aliases: ["bare-json"],
    title: "A bare JSON list",
    models: ["any model held to a JSON schema"],
    trust: "markerless",
    blocks: [{ open: [], close: [], bodies: [json], whole: true, layout: { open: "[", between: ", ", close: "]" } }],
    reasoning: [think],
    result: plainResult,
  },
  {
    name: "xlam",
    title: "JSON list: bare, fenced or marked",
    models: ["xLAM"],
    trust: "markerless",
    blocks: [
      { open: ["```json\n", "```\n"], close: ["```"], bodies: [json], lineStart: true },
      toolCall(json),
      { open: ["[TOOL_CALLS]"], close: [], bodies: [json] },
      { open: [], close: [], bodies: [json], whole: true },
    ],
    reasoning: [think],
    result: plainResult,
  },
  {
    name: "json-fence",
    aliases: ["fenced-json"],
    title: "JSON in a ```tool_call fence",
    models: ["any model, taught by the prompt"],
    trust: "taught",
    blocks: [
      {
        open: ["```tool_call\n", "```tool_calls\n", "```json\n", "```tool_code\n"],
        close: ["```"],
        bodies: [json],
        lineStart: true,
      },
    ],
    reasoning: [think],
    results: ["```tool_result"],
    stop: ["```tool_result"],
    result: { role: "user", each: "```tool_result {id}\n{text}\n```" },
  },
  {
    name: "phi4-mini",
    aliases: ["phi4", "functools"],
    title: "functools[…]",
    models: ["Phi-4-mini"],
    trust: "special-token",
    blocks: [{ open: ["functools"], close: [], bodies: [list] }],
    result: plainResult,
  },
  {
    name: "firefunction-v2",
    aliases: ["firefunction"],
    title: "functools[…]",
    models: ["FireFunction v2"],
    trust: "special-token",
    blocks: [{ open: ["functools"], close: [], bodies: [list] }],
    result: plainResult,
  },
  ...["jamba", "apriel", "hunyuan-a13b", "minimax-m1"].map(toolCallsList),
  {
    name: "nemotron-v2",
    aliases: ["nemotron"],
    title: "JSON list in <TOOLCALL>",
    models: ["Nemotron Nano v2"],
    trust: "special-token",
    blocks: [{ open: ["<TOOLCALL>"], close: ["</TOOLCALL>"], bodies: [list] }],
    reasoning: [think],
    results: ["<TOOL_RESPONSE>"],
    result: {
      role: "user",
      open: "<TOOL_RESPONSE>[",
      each: "{text}",
      between: ", ",
      close: "]</TOOL_RESPONSE>",
    },
  },
  {
    name: "internlm2",
    aliases: ["internlm", "intern-s1"],
    title: "JSON after <|action_start|><|plugin|>",
    models: ["InternLM 2", "Intern-S1"],
    trust: "special-token",
    blocks: [
      {
        open: ["<|action_start|><|plugin|>", "<|action_start|> <|plugin|>", "<|action_start|>\n<|plugin|>"],
        close: ["<|action_end|>"],
        bodies: [withParameters],
      },
    ],
    reasoning: [think],
    result: plainResult,
  },
  {
    name: "apertus",
    title: 'List of {"NAME": {…}} in <|tools_prefix|>',
    models: ["Apertus"],
    trust: "special-token",
    blocks: [
      {
        open: ["<|tools_prefix|>"],
        close: ["<|tools_suffix|>"],
        bodies: [{ kind: "json", nameAsKey: true, list: true }],
      },
    ],
    reasoning: [{ open: ["<|inner_prefix|>"], close: ["<|inner_suffix|>"] }],
    result: { role: "user", open: "[", each: "{text}", between: ", ", close: "]" },
  },
  {
    name: "cohere-action",
    aliases: ["command-r7b", "cohere", "command-a"],
    title: "JSON list in <|START_ACTION|>",
    models: ["Command R7B", "Command A", "Cohere2 MoE"],
    trust: "special-token",
    blocks: [
      {
        open: ["<|START_ACTION|>"],
        close: ["<|END_ACTION|>"],
        bodies: [{ ...cohereList, id: { key: "tool_call_id", at: "first" } }],
        layout: { open: "<|START_ACTION|>[\n    ", between: ",\n    ", close: "\n]<|END_ACTION|>" },
      },
    ],
    reasoning: [{ open: ["<|START_THINKING|>"], close: ["<|END_THINKING|>"] }],
    drop: ["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"],
    results: ["<|START_TOOL_RESULT|>"],
    ids: "position",
    result: {
      role: "user",
      open: "<|START_TOOL_RESULT|>[\n    ",
      each: '{\n        "tool_call_id": "{id}",\n        "results": {\n            "0": {json}\n        },\n        "is_error": {error}\n    }',
      between: ",\n    ",
      close: "\n]<|END_TOOL_RESULT|>",
    },
  },
  {
    name: "command-r-plus",
    aliases: ["command-r"],
    title: "Action: and a JSON fence",
    models: ["Command R+"],
    trust: "taught",
    blocks: [
      {
        open: ["Action:\n```json\n", "Action: ```json\n"],
        close: ["```"],
        bodies: [{ ...cohereList, indent: 4 }],
        layout: { open: "Action:\n```json\n[\n    ", between: ",\n    ", close: "\n]```" },
      },
    ],
    drop: ["<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"],
    results: ["<results>"],
    result: { role: "user", each: "<results>\n{text}</results>" },
  },
  {
    name: "gigachat3",
    aliases: ["gigachat"],
    title: "JSON after a `function call` role",
    models: ["GigaChat 3", "GigaChat 3.1"],
    trust: "special-token",
    blocks: [
      {
        open: ["<|message_sep|>\n\nfunction call<|role_sep|>\n", "function call<|role_sep|>\n", "<|function_call|>"],
        close: [],
        bodies: [json],
      },
    ],
    stray: ["<|message_sep|>"],
    result: plainResult,
  },
];

/** `<tool_calls>` with a list, or a call per line: four families that differ in nothing else. */
function toolCallsList(name: string): Dialect {
  const models = {
    jamba: "Jamba",
    apriel: "Apriel 1.5/1.6",
    "hunyuan-a13b": "Hunyuan A13B",
    "minimax-m1": "MiniMax M1",
  }[name]!;
  const apriel = { open: ["Here are my reasoning steps:\n"], close: ["[BEGIN FINAL RESPONSE]"] };
  return {
    name,
    title: name === "minimax-m1" ? "JSON lines in <tool_calls>" : "JSON list in <tool_calls>",
    models: [models],
    trust: "special-token",
    blocks: [
      {
        open: ["<tool_calls>"],
        close: ["</tool_calls>"],
        bodies: [name === "minimax-m1" ? json : list],
        ...(name === "minimax-m1"
          ? { layout: { open: "<tool_calls>\n", between: "\n", close: "\n</tool_calls>" } }
          : {}),
      },
    ],
    reasoning: name === "apriel" ? [apriel, think] : [think],
    stray: ["</answer>", "[END FINAL RESPONSE]"],
    drop: name === "hunyuan-a13b" ? ["<answer>", "</answer>"] : [],
    result:
      name === "apriel"
        ? { role: "user", each: "<|begin_tool_result|>\n{text}" }
        : name === "minimax-m1"
          ? { role: "user", each: "tool result: {text}", between: "\n\n" }
          : plainResult,
  };
}
