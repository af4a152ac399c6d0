/** One content block while its stream runs: what each kind of delta adds to it. */
import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import type { DeltaField } from "../../spec/model.ts";
import { writeArguments } from "../arguments.ts";
import { type Raw, string } from "../raw.ts";

export interface Growing {
  readonly index: number;
  /** As it was announced, without its texts. */
  readonly raw: Raw;
  readonly texts: { readonly text: GrowingText; readonly thinking: GrowingText };
  /** The pieces of a call's input. */
  readonly input: GrowingText;
  isStarted: boolean;
  isDone: boolean;
}

/** Told what a delta added that can be shown already. */
export type Tell = (block: Growing, field: DeltaField, added: string) => void;

export function createGrowing(index: number, raw: Raw): Growing {
  const texts = { text: createGrowingText(), thinking: createGrowingText() };
  return { index, raw, texts, input: createGrowingText(), isStarted: false, isDone: false };
}

/** The block with all that was said of it. */
export function wholeBlock({ raw, texts }: Growing): Raw {
  const { text, thinking } = texts;
  return {
    ...raw,
    ...(text.length === 0 ? {} : { text: text.toString() }),
    ...(thinking.length === 0 ? {} : { thinking: thinking.toString() }),
  };
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

/** False for a kind of delta that nobody knows. */
export function extend(block: Growing, delta: Raw, tell: Tell): boolean {
  const { raw } = block;
  switch (delta["type"]) {
    case "text_delta":
      extendText(block, "text", delta["text"], tell);
      return true;
    case "thinking_delta":
      extendText(block, "thinking", delta["thinking"], tell);
      return true;
    case "input_json_delta":
      extendInput(block, writeArguments(delta["partial_json"]), tell);
      return true;
    case "signature_delta":
      raw["signature"] = (string(raw["signature"]) ?? "") + (string(delta["signature"]) ?? "");
      return true;
    case "citations_delta":
      if (Array.isArray(raw["citations"])) raw["citations"].push(delta["citation"]);
      else raw["citations"] = [delta["citation"]];
      return true;
    case "compaction_delta":
      Object.assign(raw, delta, { type: raw["type"] });
      return true;
    default:
      return false;
  }
}

export function extendText(block: Growing, key: "text" | "thinking", added: unknown, tell: Tell): void {
  if (typeof added !== "string" || added === "") return;
  block.texts[key].add(added);
  tell(block, key === "text" ? "text" : "reasoning", added);
}

/** Only calls show their input as it grows; tools of the server's own come whole. */
function extendInput(block: Growing, piece: string, tell: Tell): void {
  block.input.add(piece);
  if (piece !== "" && isCall(block)) tell(block, "arguments", piece);
}
