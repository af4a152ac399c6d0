/** One output item on its way out: announces it, streams its texts, ends it. */
import type { JsonObject } from "../../base/json.ts";
import type { DeltaField, Item } from "../../spec/model.ts";
import { json } from "../raw.ts";
import { type Lane, laneOf, textLanes } from "./lanes.ts";
import { type Text, textsOf } from "./texts.ts";

export type Emit = (type: string, fields: JsonObject) => void;

export interface Writer {
  readonly place: number;
  grow(field: DeltaField, part: number, delta: string): void;
  /** Ends the item in its final form; returns the form that was told. */
  finish(raw: JsonObject): JsonObject;
}

/** A text that was begun. */
interface Piece {
  readonly field: DeltaField;
  readonly part: number;
  /** Its number on the wire, counted per list. */
  readonly at: number;
  text: string;
}

export function createWriter(type: Item["type"], raw: JsonObject, place: number, emit: Emit): Writer {
  const pieces: Piece[] = [];
  const where = { item_id: raw["id"] ?? "", output_index: place };
  const lane = (field: DeltaField) => laneOf(raw["type"], field);

  emit("response.output_item.added", { output_index: place, item: blank(type, raw) });

  function begin(field: DeltaField, part: number): Piece {
    const slot = lane(field)?.slot;
    const at = pieces.filter((piece) => lane(piece.field)?.slot?.index === slot?.index).length;
    const piece: Piece = { field, part, at, text: "" };
    pieces.push(piece);
    if (slot !== undefined) emit(`response.${slot.event}.added`, { ...where, [slot.index]: at, part: slot.partOf("") });
    return piece;
  }

  function grow(field: DeltaField, part: number, delta: string): void {
    const along = lane(field);
    if (along === undefined || delta === "") return;
    const piece = pieces.find((known) => known.field === field && known.part === part) ?? begin(field, part);
    piece.text += delta;
    emit(`response.${along.name}.delta`, { ...where, ...indexOf(along, piece), delta, ...along.more });
  }

  function close(piece: Piece): void {
    const along = lane(piece.field)!; // a piece begins only where there is one
    const at = { ...where, ...indexOf(along, piece) };
    const name = piece.field === "arguments" && raw["type"] === "function_call" ? { name: raw["name"] ?? "" } : {};
    emit(`response.${along.name}.done`, { ...at, ...name, [along.whole]: piece.text, ...along.more });
    if (along.slot !== undefined)
      emit(`response.${along.slot.event}.done`, { ...at, part: along.slot.partOf(piece.text) });
  }

  /** Says what the final form holds beyond the deltas, then closes every part. */
  function complete(final: JsonObject): JsonObject {
    const texts = textsOf(final);
    for (const { field, part, delta } of unsaid(texts, pieces)) grow(field, part, delta);
    // Arguments are always told as a whole, even when there are none.
    if (pieces.length === 0 && lane("arguments") !== undefined) begin("arguments", 0);
    pieces.forEach(close);
    return matches(texts, pieces) ? final : { ...final, ...contentOf(final, pieces) };
  }

  return {
    place,
    grow,
    finish(final) {
      const told = complete(final);
      emit("response.output_item.done", { output_index: place, item: told });
      return told;
    },
  };
}

function indexOf({ slot }: Lane, piece: Piece): JsonObject {
  return slot === undefined ? {} : { [slot.index]: piece.at };
}

/** The item as it is announced: on its way, with nothing in it yet. */
function blank(type: Item["type"], raw: JsonObject): JsonObject {
  switch (type) {
    case "message":
      return { ...raw, status: "in_progress", content: [] };
    case "reasoning":
      return { ...raw, summary: [], ...(raw["content"] === undefined ? {} : { content: [] }), encrypted_content: null };
    case "call":
      return { ...raw, status: "in_progress", ...blankArguments(raw) };
    default:
      return raw;
  }
}

function blankArguments(raw: JsonObject): JsonObject {
  if (raw["type"] === "function_call") return { arguments: "" };
  return raw["type"] === "custom_tool_call" ? { input: "" } : {};
}

/** In the order in which an item tells them. */
const fields = ["summary", "reasoning", "text", "refusal", "arguments"] as const;

/** Part numbers for texts that no delta brought: beyond all that one did. */
const firstUnsaid = 1000;

/** What the final form holds beyond the deltas. */
function unsaid(texts: readonly Text[], pieces: readonly Piece[]) {
  return fields.flatMap((field) => {
    const said = pieces.filter((piece) => piece.field === field);
    const whole = texts.filter((entry) => entry.field === field);
    if (said.map((piece) => piece.text).join("") === whole.map((entry) => entry.text).join("")) return [];
    return whole.flatMap(({ text }, order) => {
      const { text: before, part } = said[order] ?? { text: "", part: firstUnsaid + order };
      return text.startsWith(before) ? [{ field, part, delta: text.slice(before.length) }] : [];
    });
  });
}

function matches(texts: readonly Text[], pieces: readonly Piece[]): boolean {
  const same = (field: DeltaField) => {
    const said = pieces.filter((piece) => piece.field === field);
    const whole = texts.filter((entry) => entry.field === field && entry.text !== "");
    return said.every((piece, order) => piece.text === (whole[order]?.text ?? "")) && whole.length <= said.length;
  };
  return fields.every(same);
}

/** Where the stream cut its texts differently from the final form, the stream is what the reader has. */
function contentOf(final: JsonObject, pieces: readonly Piece[]): JsonObject {
  const list = (...wanted: readonly (keyof typeof textLanes)[]) =>
    pieces
      .toSorted((a, b) => a.at - b.at)
      .flatMap(({ field, text }) => {
        const known = wanted.find((name) => name === field);
        return known === undefined ? [] : [json(textLanes[known].slot.partOf(text))];
      });
  switch (final["type"]) {
    case "message":
      return { content: list("text", "refusal") };
    case "reasoning":
      return { summary: list("summary"), content: list("reasoning") };
    default:
      return {};
  }
}
