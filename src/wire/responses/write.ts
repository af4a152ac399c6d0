/**
 * Writes an answer for a client of the Responses wire, complete enough for the strictest reader: every
 * item is announced, numbered without gaps, ended, and repeated in the last event. Text and reasoning
 * are written as they come. From the first call on everything waits for the end of the answer, because
 * clients run a call as soon as they see it done.
 */
import type { JsonObject } from "../../base/json.ts";
import type { Answer, DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { type Sign, withCarrier } from "../envelope.ts";
import { createHold, handedOut } from "../hold.ts";
import { inventId } from "../ids.ts";
import { createOutbox } from "../outbox.ts";
import { json } from "../raw.ts";
import { wire } from "./decode-item.ts";
import { encodeOutputItem } from "./encode-item.ts";
import { encodeResponse, repeatSettings, type ResponseHead } from "./ending.ts";
import { type Text, textsOf } from "./texts.ts";

export function encodeAnswer(given: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  const answer = handedOut(given);
  const head = headOf(answer, options);
  const output = answer.items
    .flatMap((item) => withCarrier(item, wire))
    .map((item, place) => encodeOutputItem(item, head.id, place, options.sign))
    .filter((item) => item !== undefined);
  return encodeResponse(head, output, answer);
}

interface Started {
  readonly id?: string;
  readonly model?: string;
}

function headOf(started: Started, options: AnswerEncodeOptions): ResponseHead {
  return {
    id: options.id ?? started.id ?? inventId("response", 0, "resp_"),
    model: options.model ?? started.model ?? "",
    createdAt: options.createdAt ?? 0,
    settings: repeatSettings(options.request),
  };
}

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const frames = createOutbox<Frame>();
  const hold = createHold({ inOrder: true, write });
  const output = createOutput(emit, () => begin({}).id, options.sign);
  let head: ResponseHead | undefined;
  let sequence = 0;

  function emit(type: string, fields: JsonObject): void {
    frames.push({ event: type, data: JSON.stringify({ type, sequence_number: sequence++, ...fields }) });
  }

  function begin(started: Started): ResponseHead {
    if (head !== undefined) return head;
    head = headOf(started, options);
    // The tools and the instructions of a request may be long, so this is written out once.
    const response = JSON.stringify(encodeResponse(head, []));
    for (const event of ["response.created", "response.in_progress"])
      frames.push({ event, data: `{"type":"${event}","sequence_number":${sequence++},"response":${response}}` });
    return head;
  }

  function write(event: ModelEvent): void {
    switch (event.type) {
      case "answer.started":
        begin(event);
        return;
      case "item.started":
        // Calls are announced when they are complete, because their names and ids may change until then.
        if (event.item.type === "message" || event.item.type === "reasoning") output.announce(event.index, event.item);
        return;
      case "item.delta":
        return output.grow(event.index, event.field, event.part ?? 0, event.delta);
      case "item.done":
        return output.finish(event.index, event.item);
      case "answer.ended": {
        const response = encodeResponse(begin({}), output.items(), event.answer);
        return emit(`response.${String(response["status"])}`, { response });
      }
      case "note":
      case "other":
        return;
    }
  }

  return {
    push(event) {
      hold.push(event);
      return frames.drain();
    },
  };
}

interface Output {
  announce(index: number, item: Item): void;
  grow(index: number, field: DeltaField, part: number, delta: string): void;
  finish(index: number, item: Item): void;
  /** The items written so far, each in its final form if it has one. */
  items(): readonly JsonObject[];
}

/** `responseId` is the seed for the ids of items that have none. Asking for it starts the response. */
function createOutput(emit: Emit, responseId: () => string, sign: Sign | undefined): Output {
  const writers = new Map<number, Writer>();
  const items: JsonObject[] = [];

  /** Places are given in the order of announcement, so that readers that count see no gap. */
  function open(item: Item): Writer | undefined {
    const raw = encodeOutputItem(item, responseId(), items.length, sign);
    if (raw === undefined) return undefined;
    const writer = createWriter(item.type, raw, items.length, emit);
    items.push(raw);
    return writer;
  }

  function announce(index: number, item: Item): Writer | undefined {
    const writer = writers.get(index) ?? open(item);
    if (writer !== undefined) writers.set(index, writer);
    return writer;
  }

  function finish(index: number, item: Item): void {
    for (const carrier of withCarrier(item, wire).slice(0, -1)) close(open(carrier), carrier);
    close(announce(index, item), item);
  }

  function close(writer: Writer | undefined, item: Item): void {
    if (writer === undefined) return;
    const { place } = writer;
    // It keeps the id under which it was announced, whatever id it ends with.
    const raw = { ...encodeOutputItem(item, responseId(), place, sign), id: items[place]!["id"] ?? "" };
    items[place] = writer.finish(raw);
  }

  return {
    announce: (index, item) => void announce(index, item),
    grow: (index, field, part, delta) => writers.get(index)?.grow(field, part, delta),
    finish,
    items: () => items,
  };
}

type Emit = (type: string, fields: JsonObject) => void;

interface Writer {
  readonly place: number;
  grow(field: DeltaField, part: number, delta: string): void;
  /** Ends the item in its final form. Returns the form that was written. */
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

function createWriter(type: Item["type"], raw: JsonObject, place: number, emit: Emit): Writer {
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
    const along = lane(piece.field)!; // a piece is begun only for a field that has a lane
    const at = { ...where, ...indexOf(along, piece) };
    const name = piece.field === "arguments" && raw["type"] === "function_call" ? { name: raw["name"] ?? "" } : {};
    emit(`response.${along.name}.done`, { ...at, ...name, [along.whole]: piece.text, ...along.more });
    if (along.slot !== undefined)
      emit(`response.${along.slot.event}.done`, { ...at, part: along.slot.partOf(piece.text) });
  }

  /** Writes what the final form holds beyond the deltas, then closes every part. */
  function complete(final: JsonObject): JsonObject {
    const texts = textsOf(final);
    for (const { field, part, delta } of unsaid(texts, pieces)) grow(field, part, delta);
    // Arguments are always repeated as a whole, even if there are none.
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

/** The item as it is announced: in progress, and empty. */
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

/** The fields in the order in which they are written for an item. */
const fields = ["summary", "reasoning", "text", "refusal", "arguments"] as const;

/**
 * Texts that no delta brought are numbered from here, so that their numbers are higher than those of texts that a
 * delta brought.
 */
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

/** If the stream cut its texts differently from the final form, the stream counts, because the reader has that. */
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

interface Lane {
  /** `response.<name>.delta` and `.done`. */
  readonly name: string;
  /** The field that repeats the whole text at its end. */
  readonly whole: string;
  readonly more?: JsonObject;
  /** Absent for arguments, which are no part of a list. */
  readonly slot?: Slot;
}

interface Slot {
  /** `response.<event>.added` and `.done`. */
  readonly event: string;
  /** The field that counts the parts of one list. */
  readonly index: string;
  readonly partOf: (text: string) => JsonObject;
}

type TextField = Exclude<DeltaField, "arguments">;

const content = { event: "content_part", index: "content_index" };

const textLanes: Readonly<Record<TextField, Lane & { readonly slot: Slot }>> = {
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

/** The lane of a field in an item of this type. Native calls have none for their arguments. */
function laneOf(type: unknown, field: DeltaField): Lane | undefined {
  if (field !== "arguments") return textLanes[field];
  if (type === "function_call") return functionLane;
  return type === "custom_tool_call" ? customLane : undefined;
}
