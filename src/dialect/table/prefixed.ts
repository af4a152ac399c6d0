/** Dialects whose elements carry a prefix of their own, or stand between tokens. */
import type { Dialect, TaggedBody } from "../dialect.ts";
import {
  invokeTagged,
  json,
  plainResult,
  section,
  think,
  thinkUntilCall,
  toolResponse,
  toolResponseMarks,
} from "./parts.ts";

/** The same tags behind a prefix. */
function prefixed(prefix: string, extra: Partial<TaggedBody> = {}): TaggedBody {
  return {
    ...invokeTagged,
    call: [{ open: `<${prefix}invoke`, close: `</${prefix}invoke>` }],
    parameter: [{ open: `<${prefix}parameter`, close: `</${prefix}parameter>` }],
    tags: { call: `<${prefix}invoke name="{name}">`, parameter: `<${prefix}parameter name="{name}">` },
    ...extra,
  };
}

const dsmlTags = {
  call: '<｜DSML｜invoke name="{name}">',
  parameter: '<｜DSML｜parameter name="{name}" string="{string}">',
};

function dsml(
  name: string,
  element: string,
  models: readonly string[],
  result: Dialect["result"],
  results: readonly string[],
): Dialect {
  return {
    name,
    title: "DSML elements with types",
    models,
    trust: "special-token",
    blocks: [
      section(`<｜DSML｜${element}>`, `</｜DSML｜${element}>`, prefixed("｜DSML｜", { bare: true, tags: dsmlTags })),
    ],
    reasoning: [name === "deepseek-v4" ? thinkUntilCall : think],
    stray: ["<｜end▁of▁sentence｜>"],
    results,
    result,
  };
}

export const prefixedDialects: readonly Dialect[] = [
  dsml(
    "deepseek-v3.2",
    "function_calls",
    ["DeepSeek V3.2"],
    { role: "user", each: "<result>{text}</result>", open: "<function_results>\n", close: "\n</function_results>" },
    ["<function_results>"],
  ),
  dsml(
    "deepseek-v4",
    "tool_calls",
    ["DeepSeek V4"],
    { role: "user", each: "<tool_result>{text}</tool_result>", between: "\n\n" },
    ["<tool_result>"],
  ),
  {
    name: "kimi-k3",
    title: "<|open|>call with typed arguments",
    models: ["Kimi K3"],
    trust: "special-token",
    blocks: [
      {
        open: ["<|open|>tools<|sep|>"],
        close: ["<|close|>tools<|sep|>"],
        bodies: [
          {
            kind: "tagged",
            call: [{ open: "<|open|>call", close: "<|close|>call<|sep|>" }],
            parameter: [{ open: "<|open|>argument", close: "<|close|>argument<|sep|>" }],
            end: "<|sep|>",
            trim: "none",
            compact: true,
            tags: {
              call: '<|open|>call tool="{name}" index="{index}"<|sep|>',
              parameter: '<|open|>argument key="{name}" type="{type}"<|sep|>',
            },
          },
        ],
        layout: { open: "<|open|>tools<|sep|>", between: "", close: "<|close|>tools<|sep|>" },
      },
    ],
    reasoning: [{ open: ["<|open|>think<|sep|>"], close: ["<|close|>think<|sep|>"] }],
    drop: ["<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"],
    result: plainResult,
  },
  {
    name: "minicpm5",
    aliases: ["minicpm"],
    title: '<function name="…"> with <param name="…">',
    models: ["MiniCPM 5"],
    notes: "The only tagged format with an escape for values: CDATA.",
    trust: "special-token",
    blocks: [
      {
        open: [],
        close: [],
        bodies: [
          {
            kind: "tagged",
            call: [{ open: "<function", close: "</function>" }],
            parameter: [{ open: "<param", close: "</param>" }],
            tags: { call: '<function name="{name}">', parameter: '<param name="{name}">' },
            trim: "none",
            bare: true,
            compact: true,
            cdata: true,
            python: true,
          },
        ],
      },
    ],
    reasoning: [think],
    results: toolResponseMarks,
    result: toolResponse,
  },
  {
    name: "step3",
    title: "<steptml:invoke> between tokens",
    models: ["Step 3"],
    trust: "special-token",
    blocks: [
      {
        open: ["<｜tool_calls_begin｜>"],
        close: ["<｜tool_calls_end｜>"],
        bodies: [prefixed("steptml:")],
        between: ["<｜tool_call_begin｜>", "<｜tool_call_end｜>", "function<｜tool_sep｜>"],
      },
    ],
    reasoning: [think],
    result: plainResult,
  },
  {
    name: "dots",
    title: "<dots_function_call> with <invoke>",
    models: ["dots"],
    trust: "special-token",
    blocks: [section("<dots_function_call>", "</dots_function_call>", invokeTagged, { bodies: [invokeTagged, json] })],
    reasoning: [think],
    result: plainResult,
  },
  {
    name: "muse-atem",
    aliases: ["muse"],
    title: "<atem:function_calls> in a tool's channel",
    models: ["Muse Glimmer"],
    trust: "special-token",
    channels: "muse",
    blocks: [
      {
        open: ["<atem:function_calls>"],
        close: ["</atem:function_calls>"],
        bodies: [prefixed("atem:", { undeclared: "json" })],
      },
    ],
    result: { role: "user", each: '<tool_output name="{name}">\n{text}\n</tool_output>' },
  },
];
