/** One output item on its way out: announces it, streams its texts, ends it. */
import type { JsonObject } from "../../base/json.ts";
import type { DeltaField, Item } from "../../spec/model.ts";
import { json, objects, type Raw, string } from "../raw.ts";

export type Emit = (type: string, fields: JsonObject) => void;

export interface Writer {
  readonly place: number;
  grow(field: DeltaField, part: number, delta: string): void;
  /** Ends the item in its final form; returns the form that was told. */
  finish(raw: JsonObject): JsonObject;
  /** Shows the item's final form without declaring it done. */
  suspend(raw: JsonObject): JsonObject;
}

interface Piece {
  readonly field: DeltaField;
  readonly part: number;
  /** Its number on the wire, counted per list. */
  readonly at: number;
  text: string;
}

/** How each text travels: its events, the index they carry, the part that holds it. */
interface Lane {
  readonly name: string;
  readonly index?: string;
  readonly part?: string;
  readonly whole: string;
  readonly partOf?: (text: string) => JsonObject;
  readonly more?: JsonObject;
}

const lanes: Readonly<Record<Exclude<DeltaField, "arguments">, Lane>> = {
  text: {
    name: "output_text",
    index: "content_index",
    part: "content_part",
    whole: "text",
    partOf: (text) => ({ type: "output_text", text, annotations: [], logprobs: [] }),
    more: { logprobs: [] },
  },
  refusal: {
    name: "refusal",
    index: "content_index",
    part: "content_part",
    whole: "refusal",
    partOf: (refusal) => ({ type: "refusal", refusal }),
  },
  reasoning: {
    name: "reasoning_text",
    index: "content_index",
    part: "content_part",
    whole: "text",
    partOf: (text) => ({ type: "reasoning_text", text }),
  },
  summary: {
    name: "reasoning_summary_text",
    index: "summary_index",
    part: "reasoning_summary_part",
    whole: "text",
    partOf: (text) => ({ type: "summary_text", text }),
  },
};

const functionLane: Lane = { name: "function_call_arguments", whole: "arguments" };
const customLane: Lane = { name: "custom_tool_call_input", whole: "input" };

export function createWriter(type: Item["type"], raw: JsonObject, place: number, emit: Emit): Writer {
  const pieces: Piece[] = [];
  const where = { item_id: raw["id"] ?? "", output_index: place };

  emit("response.output_item.added", { output_index: place, item: blank(type, raw) });

  function laneOf(field: DeltaField): Lane | undefined {
    if (field !== "arguments") return lanes[field];
    if (raw["type"] === "function_call") return functionLane;
    return raw["type"] === "custom_tool_call" ? customLane : undefined;
  }

  function pieceFor(field: DeltaField, part: number): Piece {
    const known = pieces.find((piece) => piece.field === field && piece.part === part);
    if (known !== undefined) return known;
    const lane = laneOf(field)!;
    const at = pieces.filter((piece) => laneOf(piece.field)?.index === lane.index).length;
    const piece: Piece = { field, part, at, text: "" };
    pieces.push(piece);
    if (lane.part !== undefined && lane.partOf !== undefined) {
      emit(`response.${lane.part}.added`, { ...where, [lane.index!]: at, part: lane.partOf("") });
    }
    return piece;
  }

  function grow(field: DeltaField, part: number, delta: string): void {
    const lane = laneOf(field);
    if (lane === undefined || delta === "") return;
    const piece = pieceFor(field, part);
    piece.text += delta;
    emit(`response.${lane.name}.delta`, { ...where, ...indexOf(lane, piece), delta, ...lane.more });
  }

  function close(piece: Piece, part: JsonObject | undefined): void {
    const lane = laneOf(piece.field)!;
    const name = piece.field === "arguments" && raw["type"] === "function_call" ? { name: raw["name"] ?? "" } : {};
    emit(`response.${lane.name}.done`, {
      ...where,
      ...indexOf(lane, piece),
      ...name,
      [lane.whole]: piece.text,
      ...lane.more,
    });
    if (lane.part === undefined || lane.partOf === undefined) return;
    emit(`response.${lane.part}.done`, {
      ...where,
      ...indexOf(lane, piece),
      part: { ...lane.partOf(piece.text), ...part },
    });
  }

  /** Says what the final form holds beyond the deltas, then closes every part. */
  function complete(final: JsonObject): JsonObject {
    const texts = textsOf(final);
    for (const field of ["summary", "reasoning", "text", "refusal", "arguments"] as const) {
      const said = pieces.filter((piece) => piece.field === field);
      const whole = texts.filter((entry) => entry.field === field);
      if (said.map((piece) => piece.text).join("") === whole.map((entry) => entry.text).join("")) continue;
      for (const [order, entry] of whole.entries()) {
        const before = said[order]?.text ?? "";
        if (entry.text.startsWith(before))
          grow(field, said[order]?.part ?? 1000 + order, entry.text.slice(before.length));
      }
    }
    // Arguments are always told as a whole, even when there are none.
    if (pieces.length === 0 && laneOf("arguments") !== undefined) pieceFor("arguments", 0);
    for (const piece of pieces) close(piece, undefined);
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
    suspend: complete,
  };
}

function indexOf(lane: Lane, piece: Piece): JsonObject {
  return lane.index === undefined ? {} : { [lane.index]: piece.at };
}

/** The item as it is announced: on its way, with nothing in it yet. */
function blank(type: Item["type"], raw: JsonObject): JsonObject {
  switch (type) {
    case "message":
      return { ...raw, status: "in_progress", content: [] };
    case "reasoning":
      return { ...raw, summary: [], ...(raw["content"] === undefined ? {} : { content: [] }), encrypted_content: null };
    case "call":
      return {
        ...raw,
        status: "in_progress",
        ...(raw["type"] === "function_call"
          ? { arguments: "" }
          : raw["type"] === "custom_tool_call"
            ? { input: "" }
            : {}),
      };
    default:
      return raw;
  }
}

interface Text {
  readonly field: DeltaField;
  readonly text: string;
}

function textsOf(raw: JsonObject): readonly Text[] {
  const parts = (key: string, field: DeltaField): Text[] =>
    objects(raw[key]).flatMap((part: Raw) => {
      if (typeof part["refusal"] === "string") return [{ field: "refusal" as const, text: part["refusal"] }];
      return typeof part["text"] === "string" ? [{ field, text: part["text"] }] : [];
    });
  switch (raw["type"]) {
    case "message":
      return parts("content", "text");
    case "reasoning":
      return [...parts("summary", "summary"), ...parts("content", "reasoning")];
    case "function_call":
      return [{ field: "arguments", text: string(raw["arguments"]) ?? "" }];
    case "custom_tool_call":
      return [{ field: "arguments", text: string(raw["input"]) ?? "" }];
    default:
      return [];
  }
}

function matches(texts: readonly Text[], pieces: readonly Piece[]): boolean {
  const same = (field: DeltaField) => {
    const said = pieces.filter((piece) => piece.field === field);
    const whole = texts.filter((entry) => entry.field === field && entry.text !== "");
    return said.every((piece, order) => piece.text === (whole[order]?.text ?? "")) && whole.length <= said.length;
  };
  return (["summary", "reasoning", "text", "refusal", "arguments"] as const).every(same);
}

/** Where the stream cut its texts differently from the final form, the stream is what the reader has. */
function contentOf(final: JsonObject, pieces: readonly Piece[]): JsonObject {
  const list = (fields: readonly DeltaField[]) =>
    pieces
      .filter((piece) => fields.includes(piece.field))
      .toSorted((a, b) => a.at - b.at)
      .map((piece) => json(lanes[piece.field as keyof typeof lanes].partOf!(piece.text))); // `fields` never holds arguments
  switch (final["type"]) {
    case "message":
      return { content: list(["text", "refusal"]) };
    case "reasoning":
      return { summary: list(["summary"]), content: list(["reasoning"]) };
    default:
      return {};
  }
}
