/** Pieces that several dialects share. */
import type { Block, Body, JsonBody, PairsBody, Reasoning, ResultForm, TaggedBody } from "../dialect.ts";

export const think: Reasoning = { open: ["<think>"], close: ["</think>"] };
/** Families that begin a call without closing their thoughts. */
export const thinkUntilCall: Reasoning = { ...think, callEnds: true };

export const json: JsonBody = { kind: "json" };
export const list = { kind: "json", list: true } as const;
/** Llama's and InternLM's word for the arguments. */
export const withParameters = { kind: "json", args: ["parameters", "arguments"] } as const;

export const qwenTagged: TaggedBody = {
  kind: "tagged",
  call: [
    { open: "<function", close: "</function>" },
    // Seen from smaller models: another word for the same tag.
    { open: "<call=", close: "</call>" },
    { open: "<tool=", close: "</tool>" },
    { open: "<invoke=", close: "</invoke>" },
  ].map(equalsTag),
  parameter: [{ open: "<parameter", close: "</parameter>" }],
  trim: "one-newline",
  tags: { call: "<function={name}>", parameter: "<parameter={name}>" },
  nameIn: ["function", "name", "tool_name"],
};

/** The `=` belongs to the header, so that `<function=x>` and `<function name="x">` are one tag. */
function equalsTag(pair: { readonly open: string; readonly close: string }) {
  return { open: pair.open.replace(/=$/, ""), close: pair.close };
}

export const glmPairs: PairsBody = {
  kind: "pairs",
  key: { open: "<arg_key>", close: "</arg_key>" },
  value: { open: "<arg_value>", close: "</arg_value>" },
  trim: "none",
};

/**
 * `<tool_call>` opens JSON, elements or a name with pairs, depending on the model. What follows
 * decides, so a model that slips into a related form is still understood.
 */
export function toolCall(...first: readonly Body[]): Block {
  const rest = [json, qwenTagged, glmPairs].filter((body) => !first.some(({ kind }) => kind === body.kind));
  return { open: ["<tool_call>"], close: ["</tool_call>"], bodies: [...first, ...rest], own: first.length };
}

export const invokeTagged: TaggedBody = {
  kind: "tagged",
  call: [{ open: "<invoke", close: "</invoke>" }],
  parameter: [{ open: "<parameter", close: "</parameter>" }],
  trim: "none",
  tags: { call: '<invoke name="{name}">', parameter: '<parameter name="{name}">' },
};

export const toolResponse: ResultForm = { role: "user", each: "<tool_response>\n{text}\n</tool_response>" };
export const plainResult: ResultForm = { role: "user", each: "Result of {name} ({id}):\n{text}" };

export const toolResponseMarks = ["<tool_response>"];

/** All calls of an answer in one section, each on lines of its own. */
export function section(open: string, close: string, body: Body, more: Partial<Block> = {}): Block {
  return {
    open: [open],
    close: [close],
    bodies: [body],
    layout: { open: `${open}\n`, between: "\n", close: `\n${close}` },
    ...more,
  };
}
