/** Dialects that a prompt teaches to any model. */
import type { Block, Dialect, TaggedBody } from "../dialect.ts";
import { invokeTagged, json, think, toolCall } from "./parts.ts";

const invoke: TaggedBody = { ...invokeTagged, trim: "one-newline", inline: true, bare: true };
const namedResult = { role: "user", each: '<result name="{name}" id="{id}">\n{text}\n</result>' } as const;

/** Our own dialect: the marker cannot be guessed, and every value states its type. */
export function callgateDialect(nonce: string): Dialect {
  return {
    name: nonce === "" ? "callgate" : `callgate:${nonce}`,
    title: "Our own: an unforgeable marker, types in the markup",
    models: ["any model, taught by the prompt"],
    notes: "Give it a nonce per session: `callgate:k7q2`. Quoted or injected markup without it is text.",
    trust: "taught",
    blocks: [
      {
        open: [],
        close: [],
        bodies: [
          {
            kind: "tagged",
            call: [{ open: `<call-${nonce}`, close: `</call-${nonce}>` }],
            parameter: [{ open: `<arg-${nonce}`, close: `</arg-${nonce}>` }],
            trim: "none",
            tags: { call: `<call-${nonce} tool="{name}">`, parameter: `<arg-${nonce} name="{name}" type="{kind}">` },
            bare: true,
          },
        ],
      },
    ],
    reasoning: [think],
    results: [`<result-${nonce}`],
    stop: [`<result-${nonce}`],
    result: { role: "user", each: `<result-${nonce} tool="{name}" id="{id}" ok="{ok}">\n{text}\n</result-${nonce}>` },
  };
}

const functionCalls: Block = {
  open: ["<function_calls>"],
  close: ["</function_calls>"],
  bodies: [invoke, { kind: "python", list: "lines" }],
  layout: { open: "<function_calls>\n", between: "\n", close: "\n</function_calls>" },
};

export const taughtDialects: readonly Dialect[] = [
  {
    name: "function-calls-xml",
    aliases: ["suna-xml", "invoke"],
    title: "<function_calls> with <invoke> and <parameter>",
    models: ["any model, taught by the prompt", "Suna from 2025-05"],
    trust: "taught",
    blocks: [functionCalls],
    reasoning: [think],
    results: ["<function_results>", "<result name="],
    stop: ["<function_results>"],
    result: { ...namedResult, open: "<function_results>\n", close: "\n</function_results>" },
  },
  {
    name: "suna-xml-v1",
    aliases: ["suna"],
    title: "A tag per tool: attributes, elements, body text",
    models: ["any model, taught by the prompt", "Suna to 2025-05"],
    notes: "Laid out by the tool's `xml` mapping.",
    trust: "taught",
    blocks: [],
    tags: { trim: "all", body: "elements" },
    reasoning: [think],
    results: ["<tool_result>"],
    stop: ["<tool_result>"],
    result: { role: "user", each: '<tool_result name="{name}" id="{id}">\n{text}\n</tool_result>' },
  },
  {
    name: "xml",
    aliases: ["tag-xml"],
    title: "A tag per tool; <function_calls> with <invoke> is read too",
    models: ["any model, taught by the prompt"],
    notes: "Laid out by the tool's `xml` mapping. The dialect of the profiles `xml` and `dual`.",
    trust: "taught",
    blocks: [functionCalls],
    tags: { trim: "all", body: "elements" },
    reasoning: [think],
    results: ["<tool_result>", "<function_results>"],
    stop: ["<tool_result>"],
    result: { role: "user", each: '<tool_result name="{name}" id="{id}">\n{text}\n</tool_result>' },
  },
  {
    name: "cline-xml",
    aliases: ["cline", "roo", "kilo"],
    title: "A tag per tool, a tag per parameter",
    models: ["any model, prompted by Cline, Roo or Kilo"],
    trust: "taught",
    blocks: [],
    tags: { trim: "one-newline", body: "elements" },
    reasoning: [{ open: ["<thinking>"], close: ["</thinking>"] }, think],
    results: ["<tool_result>"],
    stop: ["<tool_result>"],
    result: { role: "user", each: "[{name}] Result:\n{text}" },
  },
  {
    name: "morph-xml",
    title: "A tag per tool, values nested by the schema",
    models: ["any model, taught by @ai-sdk-tool/parser"],
    trust: "taught",
    blocks: [toolCall(json)],
    tags: { trim: "all", body: "elements", entities: true, bareNames: true },
    result: {
      role: "user",
      each: "<tool_response>\n<tool_name>{name}</tool_name>\n<result>{text}</result>\n</tool_response>",
    },
  },
  {
    name: "yaml-xml",
    title: "A tag per tool, YAML inside",
    models: ["any model, taught by @ai-sdk-tool/parser"],
    trust: "taught",
    blocks: [toolCall(json)],
    tags: { trim: "all", body: "yaml", entities: true },
    result: {
      role: "user",
      each: "<tool_response>\n<tool_name>{name}</tool_name>\n<result>{text}</result>\n</tool_response>",
    },
  },
  {
    name: "continue-codeblock",
    aliases: ["continue"],
    title: "A ```tool fence with BEGIN_ARG and END_ARG",
    models: ["any model, prompted by Continue"],
    trust: "taught",
    blocks: [{ open: ["```tool\n"], close: ["```"], bodies: [{ kind: "codeblock" }], lineStart: true }],
    reasoning: [think],
    stop: ["```tool_output"],
    results: ["```tool_output"],
    result: { role: "user", each: "```tool_output {id}\n{text}\n```" },
  },
  {
    name: "react",
    aliases: ["langchain", "llamaindex"],
    title: "Action: and Action Input:",
    models: ["any model, prompted as a ReAct agent"],
    trust: "taught",
    blocks: [
      {
        open: ["Action:"],
        close: [],
        bodies: [{ kind: "action", input: ["Action Input:", "Action input:"], until: ["Observation:"] }],
        lineStart: true,
      },
    ],
    reasoning: [think],
    results: ["Observation:"],
    stop: ["\nObservation:"],
    result: { role: "user", each: "Observation: {text}" },
  },
  callgateDialect(""),
];
