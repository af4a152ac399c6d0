/** One content block while its stream runs: what each kind of delta adds to it. */
import type { DeltaField } from "../../spec/model.ts";
import { writeArguments } from "../arguments.ts";
import { type Raw, string } from "../raw.ts";

export interface Growing {
  readonly index: number;
  readonly raw: Raw;
  /** The pieces of a call's input. */
  input: string;
  isStarted: boolean;
  isDone: boolean;
}

/** What a delta added that can be shown; empty where only the finished block shows it. */
export interface Growth {
  readonly field: DeltaField;
  readonly delta: string;
}

export function createGrowing(index: number, raw: Raw): Growing {
  return { index, raw, input: "", isStarted: false, isDone: false };
}

export function isCall(block: Growing): boolean {
  return block.raw["type"] === "tool_use";
}

/** The block a delta belongs to, for streams that never started it. */
const blockTypes: ReadonlyMap<string, string> = new Map([
  ["thinking_delta", "thinking"],
  ["signature_delta", "thinking"],
  ["input_json_delta", "tool_use"],
  ["compaction_delta", "compaction"],
]);

export function blockTypeOf(delta: Raw): string {
  return blockTypes.get(string(delta["type"]) ?? "") ?? "text";
}

const unseen: Growth = { field: "text", delta: "" };

/** Undefined for a kind of delta that nobody knows. */
export function extend(block: Growing, delta: Raw): Growth | undefined {
  const { raw } = block;
  switch (delta["type"]) {
    case "text_delta":
      return extendText(block, "text", delta["text"]);
    case "thinking_delta":
      return extendText(block, "thinking", delta["thinking"]);
    case "input_json_delta":
      return extendInput(block, writeArguments(delta["partial_json"]));
    case "signature_delta":
      raw["signature"] = (string(raw["signature"]) ?? "") + (string(delta["signature"]) ?? "");
      return unseen;
    case "citations_delta":
      if (Array.isArray(raw["citations"])) raw["citations"].push(delta["citation"]);
      else raw["citations"] = [delta["citation"]];
      return unseen;
    case "compaction_delta":
      Object.assign(raw, delta, { type: raw["type"] });
      return unseen;
    default:
      return undefined;
  }
}

export function extendText({ raw }: Growing, key: "text" | "thinking", added: unknown): Growth {
  if (typeof added !== "string" || added === "") return unseen;
  raw[key] = (string(raw[key]) ?? "") + added;
  return { field: key === "text" ? "text" : "reasoning", delta: added };
}

/** Only calls show their input as it grows; tools of the server's own come whole. */
function extendInput(block: Growing, piece: string): Growth {
  block.input += piece;
  return isCall(block) ? { field: "arguments", delta: piece } : unseen;
}
