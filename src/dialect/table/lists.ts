/** Dialects whose calls are one JSON list, or JSON behind a role of its own. */
import type { Dialect } from "../dialect.ts";
import { json, list, plainResult, think, withParameters } from "./parts.ts";

const cohereList = { ...list, name: ["tool_name", "name"], args: ["parameters", "arguments"] } as const;

export const listDialects: readonly Dialect[] = [
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
