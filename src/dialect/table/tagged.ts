/** Dialects with an element per parameter, or with key and value elements. */
import type { Block, Dialect, TaggedBody } from "../dialect.ts";
import {
  glmPairs,
  invokeTagged,
  json,
  plainResult,
  qwenTagged,
  section,
  think,
  thinkUntilCall,
  toolCall,
  toolResponse,
  toolResponseMarks,
} from "./parts.ts";

const bareQwen: TaggedBody = { ...qwenTagged, bare: true, python: true };

/** Blocks that follow one another without a line end. */
function closely(block: Block, line: string): Block {
  const open = `${block.open[0]!}${line}`;
  const close = `${line}${block.close[0]!}`;
  return { ...block, layout: { open, between: `${close}${open}`, close } };
}

function qwenLike(name: string, models: readonly string[], aliases: readonly string[] = []): Dialect {
  return {
    name,
    aliases,
    title: "<function=NAME> with <parameter=KEY>",
    models,
    trust: "special-token",
    // Step's templates put nothing between two calls, and nothing around a result.
    blocks: [name === "step3.5" ? closely(toolCall(bareQwen), "\n") : toolCall(bareQwen)],
    reasoning: [thinkUntilCall],
    results: toolResponseMarks,
    result:
      name === "step3.5" ? { role: "user", each: "<tool_response>{text}</tool_response>", between: "" } : toolResponse,
  };
}

function glmLike(name: string, models: readonly string[], aliases: readonly string[] = []): Dialect {
  return {
    name,
    aliases,
    title: "NAME with <arg_key> and <arg_value>",
    models,
    trust: "special-token",
    blocks: [name === "glm-4.7" ? closely(toolCall({ ...glmPairs, compact: true }), "") : toolCall({ ...glmPairs })],
    reasoning: [thinkUntilCall],
    results: ["<|observation|>", ...toolResponseMarks],
    result:
      name === "glm-4.7" ? { role: "user", each: "<tool_response>{text}</tool_response>", between: "" } : toolResponse,
  };
}

export const taggedDialects: readonly Dialect[] = [
  qwenLike("qwen3-coder", ["Qwen3-Coder", "Qwen3.5 and later", "Nemotron 3 Nano", "MiMo"], ["qwen3.5", "qwen3_coder"]),
  qwenLike("step3.5", ["Step 3.5"]),
  qwenLike("k-exaone-2", ["K-EXAONE 2"], ["k-exaone"]),
  {
    name: "seed-oss",
    aliases: ["seed"],
    title: "<seed:tool_call> with <function=NAME>",
    models: ["ByteDance Seed-OSS"],
    notes: "Values stand inline: every space is data.",
    trust: "special-token",
    blocks: [
      {
        open: ["<seed:tool_call>"],
        close: ["</seed:tool_call>"],
        bodies: [{ ...qwenTagged, trim: "none", python: true }],
      },
    ],
    reasoning: [{ open: ["<seed:think>"], close: ["</seed:think>"] }],
    drop: ["<seed:eos>"],
    result: plainResult,
  },
  {
    name: "openhands",
    title: "<function=NAME> without a block",
    models: ["any model, prompted by OpenHands"],
    trust: "taught",
    blocks: [{ open: [], close: [], bodies: [{ ...bareQwen, stopped: true }] }],
    reasoning: [think],
    results: ["EXECUTION RESULT of ["],
    stop: ["</function>"],
    result: { role: "user", each: "EXECUTION RESULT of [{name}]:\n{text}" },
  },
  {
    name: "functionary-v3.1",
    title: "<function=NAME>JSON</function>",
    models: ["Functionary 3.1"],
    trust: "special-token",
    blocks: [
      { open: [], close: [], bodies: [{ ...bareQwen, json: true }], layout: { open: "", between: "", close: "" } },
    ],
    result: plainResult,
  },
  glmLike("glm-4.5", ["GLM-4.5", "GLM-4.6"], ["glm4.5", "glm45"]),
  glmLike("glm-4.7", ["GLM-4.7", "GLM-5", "Ling3"], ["glm4.7", "glm47", "glm-5"]),
  glmLike("poolside-v1", ["Poolside Laguna"], ["poolside"]),
  {
    name: "hunyuan-v3",
    aliases: ["hunyuan"],
    title: "NAME<tool_sep> with <arg_key> and <arg_value>",
    models: ["Hunyuan V3"],
    notes: "Every tag may carry a suffix such as :abc12.",
    trust: "special-token",
    blocks: [
      {
        open: ["<tool_calls>", "<tool_calls:"],
        close: ["</tool_calls>"],
        bodies: [{ ...glmPairs, call: { open: "<tool_call>", close: "</tool_call>" }, separator: "<tool_sep>" }, json],
        suffixed: true,
        layout: { open: "<tool_calls>\n", between: "\n", close: "\n</tool_calls>" },
      },
    ],
    reasoning: [think],
    result: {
      role: "user",
      open: "<tool_responses>\n",
      each: "<tool_response>\n{text}\n</tool_response>",
      close: "\n</tool_responses>",
    },
  },
  {
    name: "minimax-m2",
    aliases: ["minimax"],
    title: "<minimax:tool_call> with <invoke>",
    models: ["MiniMax M2"],
    notes: "Values stand inline: every space is data.",
    trust: "special-token",
    blocks: [section("<minimax:tool_call>", "</minimax:tool_call>", invokeTagged)],
    reasoning: [think],
    results: ["<response>"],
    result: { role: "user", each: "<response>{text}</response>" },
  },
  {
    name: "minimax-m3",
    title: "Nested elements behind ]<]minimax[>[",
    models: ["MiniMax M3"],
    trust: "special-token",
    blocks: [
      section("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>", {
        ...invokeTagged,
        call: [{ open: "]<]minimax[>[<invoke", close: "]<]minimax[>[</invoke>" }],
        tags: { call: ']<]minimax[>[<invoke name="{name}">', parameter: "]<]minimax[>[<{name}>" },
        nested: "]<]minimax[>[",
      }),
    ],
    reasoning: [{ open: ["<mm:think>"], close: ["</mm:think>"] }, think],
    results: ["<response>"],
    result: { role: "user", each: "<response>{text}</response>" },
  },
];
