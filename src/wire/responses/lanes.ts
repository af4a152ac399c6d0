/** How each text of an item travels towards a client: its events, the part that holds it, the index they carry. */
import type { JsonObject } from "../../base/json.ts";
import type { DeltaField } from "../../spec/model.ts";

export interface Lane {
  /** `response.<name>.delta` and `.done`. */
  readonly name: string;
  /** The field that repeats the whole text at its end. */
  readonly whole: string;
  readonly more?: JsonObject;
  /** Absent for arguments, which are no part of a list. */
  readonly slot?: Slot;
}

export interface Slot {
  /** `response.<event>.added` and `.done`. */
  readonly event: string;
  /** The field that counts the parts of one list. */
  readonly index: string;
  readonly partOf: (text: string) => JsonObject;
}

type TextField = Exclude<DeltaField, "arguments">;

const content = { event: "content_part", index: "content_index" };

export const textLanes: Readonly<Record<TextField, Lane & { readonly slot: Slot }>> = {
  text: {
    name: "output_text",
    whole: "text",
    more: { logprobs: [] },
    slot: { ...content, partOf: (text) => ({ type: "output_text", text, annotations: [], logprobs: [] }) },
  },
  refusal: {
    name: "refusal",
    whole: "refusal",
    slot: { ...content, partOf: (refusal) => ({ type: "refusal", refusal }) },
  },
  reasoning: {
    name: "reasoning_text",
    whole: "text",
    slot: { ...content, partOf: (text) => ({ type: "reasoning_text", text }) },
  },
  summary: {
    name: "reasoning_summary_text",
    whole: "text",
    slot: {
      event: "reasoning_summary_part",
      index: "summary_index",
      partOf: (text) => ({ type: "summary_text", text }),
    },
  },
};

const functionLane: Lane = { name: "function_call_arguments", whole: "arguments" };
const customLane: Lane = { name: "custom_tool_call_input", whole: "input" };

/** The lane of a field in an item of this type; the native calls have none for their arguments. */
export function laneOf(type: unknown, field: DeltaField): Lane | undefined {
  if (field !== "arguments") return textLanes[field];
  if (type === "function_call") return functionLane;
  return type === "custom_tool_call" ? customLane : undefined;
}
