/** One item while its stream runs: what was said of it so far, and its final form when somebody asks. */
import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import type { DeltaField, Item } from "../../spec/model.ts";
import { array, object, objects, type Raw, string } from "../raw.ts";
import type { Text } from "./texts.ts";

/** Texts by their index inside the item. Indexes come from the server and may be anything. */
export type Pieces = Map<number, GrowingText>;

export interface Growing {
  readonly index: number;
  /** The latest the server said of the item as a whole. */
  raw: Raw;
  /** The server sent its last whole form. */
  isDone: boolean;
  /** That form, decoded. */
  item?: Item;
  readonly pieces: Readonly<Record<DeltaField, Pieces>>;
  readonly annotations: Map<number, unknown[]>;
}

export function createGrowing(index: number, raw: Raw): Growing {
  const pieces = {
    text: new Map(),
    refusal: new Map(),
    reasoning: new Map(),
    summary: new Map(),
    arguments: new Map(),
  };
  return { index, raw, isDone: false, pieces, annotations: new Map() };
}

function joined(pieces: Pieces): string {
  return inOrder(pieces).join("");
}

function inOrder(pieces: Pieces): readonly string[] {
  return [...pieces].toSorted(([a], [b]) => a - b).map(([, text]) => text.toString());
}

/** The item with whatever its last word left out filled in from the deltas; before that word the deltas know better. */
export function settle(growing: Growing): Raw {
  const { raw, pieces, isDone } = growing;
  const keep = (said: boolean, grown: ReadonlyMap<number, unknown>) => grown.size === 0 || (isDone && said);
  switch (raw["type"]) {
    case "message":
      return keep(hasText(raw["content"]), pieces.text.size > 0 ? pieces.text : pieces.refusal)
        ? raw
        : { ...raw, content: contentOf(growing) };
    case "reasoning":
      return {
        ...raw,
        summary: keep(hasText(raw["summary"]), pieces.summary) ? raw["summary"] : texts(pieces.summary, "summary_text"),
        content: keep(hasText(raw["content"]), pieces.reasoning)
          ? raw["content"]
          : texts(pieces.reasoning, "reasoning_text"),
      };
    case "function_call":
      return keep(!isBlank(raw["arguments"]), pieces.arguments) ? raw : { ...raw, arguments: joined(pieces.arguments) };
    case "custom_tool_call":
      return keep(!isBlank(raw["input"]), pieces.arguments) ? raw : { ...raw, input: joined(pieces.arguments) };
    case "shell_call": {
      const action = object(raw["action"]);
      if (keep(array(action["commands"]).length > 0, pieces.arguments)) return raw;
      return { ...raw, action: { ...action, commands: inOrder(pieces.arguments) } };
    }
    default:
      return raw;
  }
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

/** A plain string, or any part with words or with a kind that has none. */
function hasText(content: unknown): boolean {
  if (typeof content === "string") return content !== "";
  return objects(content).some((part) => (string(part["text"]) ?? string(part["refusal"])) !== "");
}

function texts(pieces: Pieces, type: string): Raw[] {
  return inOrder(pieces).map((text) => ({ type, text }));
}

function contentOf(growing: Growing): Raw[] {
  const { text, refusal } = growing.pieces;
  const parts: [number, Raw][] = [
    ...[...text].map(([at, value]): [number, Raw] => [
      at,
      { type: "output_text", text: value.toString(), annotations: growing.annotations.get(at) ?? [] },
    ]),
    ...[...refusal].map(([at, value]): [number, Raw] => [at, { type: "refusal", refusal: value.toString() }]),
  ];
  return parts.sort(([a], [b]) => a - b).map(([, part]) => part);
}

/** Adds a piece to one of the item's texts. An empty one says that the text is there. */
export function extend({ pieces }: Growing, { field, at, text }: Text): void {
  let grown = pieces[field].get(at);
  if (grown === undefined) pieces[field].set(at, (grown = createGrowingText()));
  grown.add(text);
}

/** What a whole text holds beyond the deltas before it; nothing where it tells another story. */
export function unsaid(growing: Growing, { field, at, text }: Text): string {
  const said = growing.pieces[field].get(at)?.toString() ?? "";
  return text.startsWith(said) ? text.slice(said.length) : "";
}
