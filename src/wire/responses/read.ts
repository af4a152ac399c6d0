/**
 * Reads a Responses answer. Every event of the stream is one call of `step`. Servers leave out much of
 * the canonical sequence (`added`, item ids, deltas, even whole items until `completed`), so an item
 * is found by whatever names it, grows with every event about it, and ends with the last complete form
 * that was sent. A call is done only with the whole answer, because only then is it known whether it
 * may run.
 */
import { createGrowingText, type GrowingText } from "../../base/growing-text.ts";
import { defined, isObject } from "../../base/json.ts";
import type { Answer, CallItem, DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { collect, shellOf } from "../answer.ts";
import type { AnswerDecoder, DecodeOptions, Frame, RepeatedFrame } from "../codec.ts";
import { createIdMaker, createPlaces, withId } from "../ids.ts";
import { declaredNames, expandParallel } from "../parallel.ts";
import { array, count, json, object, objects, parseObject, type Raw, string, word } from "../raw.ts";
import { cutFrame } from "../runs.ts";
import { decodeItem, wire } from "./decode-item.ts";
import { decodeEnding, decodeError, type Ending, endOf } from "./ending.ts";
import { isTextDelta, readTextEvent, type Text, type TextEvent, textsOf } from "./texts.ts";
import { renamed } from "./tools.ts";

export function createDecoder(options: DecodeOptions = {}): AnswerDecoder {
  const reader = createReader(options);
  let last: { readonly frame: Frame; readonly event: Raw } | undefined;
  let cut: { readonly of: Frame; readonly frame: RepeatedFrame | undefined } | undefined;
  return {
    push(frame) {
      const event = parseObject(frame.data);
      last = typeof event?.["delta"] === "string" ? { frame, event } : undefined;
      if (event !== undefined) return reader.read(string(event["type"]) ?? frame.event ?? "", event);
      // Proxies put their own text into an error event.
      return frame.event === "error" ? reader.read("error", { message: frame.data }) : [];
    },
    repeated() {
      if (last === undefined) return undefined;
      if (cut?.of !== last.frame) {
        const { frame, event } = last;
        const type = string(event["type"]) ?? frame.event ?? "";
        const halves = isTextDelta(type) ? cutFrame(frame, "delta", string(event["delta"]) ?? "") : undefined;
        const hear = (words: string) => reader.read(type, { ...event, delta: words });
        cut = { of: frame, frame: halves && { ...halves, hear } };
      }
      return cut.frame;
    },
    end: reader.end,
  };
}

/** A body that came as a whole is handled like the last event of a stream. */
export function decodeAnswer(body: unknown, options: DecodeOptions = {}): Answer {
  const reader = createReader(options);
  const response = object(body);
  const isError =
    response["output"] === undefined && (response["error"] !== undefined || response["status"] === undefined);
  const events = isError
    ? reader.read("error", response)
    : reader.read(`response.${string(response["status"]) ?? "completed"}`, { response });
  return collect([...events, ...reader.end()]);
}

/** Texts by their index inside the item. Indexes come from the server and may be anything. */
type Texts = Map<number, GrowingText>;

/** One item while its stream runs. */
interface OpenItem {
  readonly index: number;
  /** The latest complete form of the item that the server sent. */
  raw: Raw;
  /** The server sent its final complete form. */
  isDone: boolean;
  /** That form, decoded. */
  item?: Item;
  readonly texts: Readonly<Record<DeltaField, Texts>>;
  readonly annotations: Map<number, unknown[]>;
}

const nothing: readonly ModelEvent[] = [];

function createReader(options: DecodeOptions) {
  const ids = createIdMaker(options.idSeed);
  const declared = declaredNames(options);
  const places = createPlaces();
  const items = new Map<number, OpenItem>();
  // The names that servers give to items: item id and output index.
  const byId = new Map<string, OpenItem>();
  const byPlace = new Map<number, OpenItem>();
  let latest: OpenItem | undefined;
  let isStarted = false;
  let isEnded = false;
  let out: ModelEvent[] = [];

  function start(head: Raw = {}): void {
    if (isStarted) return;
    isStarted = true;
    out.push(defined({ type: "answer.started" as const, id: word(head["id"]), model: word(head["model"]) }));
  }

  function toItem(open: OpenItem): Item {
    const item = decodeItem(wholeForm(open));
    return item.type === "call" ? withId(renamed(item, options.names), options.idSeed, open.index) : item;
  }

  function openItem(event: Raw, raw: Raw): OpenItem {
    const open = createOpenItem(places.claim(count(event["output_index"])), raw);
    items.set(open.index, open);
    latest = open;
    const id = word(raw["id"]) ?? word(event["item_id"]);
    if (id !== undefined) byId.set(id, open);
    const place = count(event["output_index"]);
    if (place !== undefined) byPlace.set(place, open);
    out.push({ type: "item.started", index: open.index, item: shellOf(toItem(open)) });
    return open;
  }

  /** The item a piece of text belongs to. */
  function find(event: Raw): OpenItem | undefined {
    const id = word(event["item_id"]);
    const place = count(event["output_index"]);
    const there = place === undefined ? undefined : byPlace.get(place);
    if (there !== undefined && (id === undefined || there.raw["id"] === id)) return there;
    const named = id === undefined ? undefined : byId.get(id);
    return named ?? there ?? (id === undefined && place === undefined ? latest : undefined);
  }

  /** The known item that an `added` or `done` event is about. */
  function findSame(event: Raw, raw: Raw): OpenItem | undefined {
    const there = byPlace.get(count(event["output_index"]) ?? -1);
    const known = byId.get(word(raw["id"]) ?? "");
    const isAgain = there !== undefined && (there === known || !there.isDone || hasSameCall(there, raw));
    if (isAgain && isSame(there, raw)) return there;
    if (known === undefined || !isSame(known, raw)) return undefined;
    return there === undefined || there === known ? known : undefined;
  }

  /**
   * The known items that the entries of the final output describe again, entry by entry. Undefined for
   * an entry that is new.
   */
  function match(lines: readonly Raw[]): readonly (OpenItem | undefined)[] {
    const byCall = new Map([...items.values()].map((open) => [callId(open.raw) ?? "", open]));
    byCall.delete("");
    const free = new Set(items.values());
    const take = (open: OpenItem | undefined) => (open !== undefined && free.delete(open) ? open : undefined);
    const found = lines.map((raw, place) =>
      take(
        [byId.get(word(raw["id"]) ?? ""), byCall.get(callId(raw) ?? ""), items.get(place)].find(
          (open) => open !== undefined && free.has(open) && isSame(open, raw),
        ),
      ),
    );
    // Some servers (Copilot, vLLM) give an item a new id each time, and leave others out at the end.
    return found.map((known, place) => known ?? take([...free].find((open) => isAlike(open, lines[place]!))));
  }

  function grow(open: OpenItem, { field, at, text }: Text): void {
    addText(open, field, at, text);
    if (text !== "") out.push({ type: "item.delta", index: open.index, field, delta: text, part: at });
  }

  /**
   * Emits as a delta what a complete text contains beyond the deltas before it. If the texts differ,
   * nothing is emitted.
   */
  function catchUp(open: OpenItem, whole: Text): void {
    const said = open.texts[whole.field].get(whole.at)?.toString() ?? "";
    const text = whole.text.startsWith(said) ? whole.text.slice(said.length) : "";
    if (text !== "") grow(open, { ...whole, text });
  }

  /** The server's final form of an item. */
  function closeItem(open: OpenItem, raw: Raw): void {
    if (open.isDone) return;
    open.raw = { ...open.raw, ...raw };
    open.isDone = true;
    for (const text of textsOf(wholeForm(open))) catchUp(open, text);
    open.item = toItem(open);
    if (open.item.type !== "call") out.push({ type: "item.done", index: open.index, item: open.item });
  }

  function readAdded(event: Raw): void {
    const raw = event["item"];
    if (!isObject(raw)) return;
    const known = findSame(event, raw);
    if (known === undefined) openItem(event, raw);
    else known.raw = { ...known.raw, ...raw };
  }

  function readText(event: Raw, told: TextEvent): void {
    const open = find(event) ?? openItem(event, { type: told.item, id: event["item_id"] });
    if (open.isDone) return;
    // vLLM sends the parts of its thoughts as text.
    const field = told.field === "text" && open.raw["type"] === "reasoning" ? "reasoning" : told.field;
    const name = word(event["name"]);
    if (name !== undefined && word(open.raw["name"]) === undefined) open.raw = { ...open.raw, name };
    const text = { field, at: told.at, text: told.text };
    if (told.kind === "delta") grow(open, text);
    else catchUp(open, text);
  }

  function readAnnotation(event: Raw): void {
    const open = find(event);
    if (open === undefined || open.isDone) return;
    const at = count(event["content_index"]) ?? 0;
    open.annotations.set(at, [...(open.annotations.get(at) ?? []), event["annotation"]]);
  }

  /** The call, or the calls inside it. Only one of them can keep the id of the item in which they came. */
  function unwrapped(item: CallItem): readonly CallItem[] {
    const inner = expandParallel({ id: item.id, name: item.name, args: item.arguments }, declared);
    if (inner === undefined) return [item];
    const { itemId: _itemId, ...rest } = item;
    return inner.map(({ id, name, args }) => renamed({ ...rest, id: id ?? "", name, arguments: args }, options.names));
  }

  /** Ends every item. Only now is it known whether calls may run. Returns whether there were any. */
  function closeAll(mayRun: boolean): boolean {
    const all = [...items.values()].sort((a, b) => a.index - b.index);
    let hasCalls = false;
    let next = (all.at(-1)?.index ?? 0) + 1;
    for (const open of all) {
      const item = open.item ?? toItem(open);
      if (item.type === "call") {
        hasCalls = true;
        for (const [at, call] of unwrapped(item).entries()) {
          const index = at === 0 ? open.index : next++;
          const id = ids.claim(call.id, index);
          out.push({ type: "item.done", index, item: { ...call, id, complete: call.complete && mayRun } });
        }
      } else if (!open.isDone) out.push({ type: "item.done", index: open.index, item });
    }
    return hasCalls;
  }

  function conclude(ending: Ending, response: Raw): void {
    start(response);
    // Each entry of the output is one item, even if a server repeats ids by mistake.
    const lines = objects(response["output"]);
    for (const [place, known] of match(lines).entries())
      closeItem(known ?? openItem({ output_index: place }, lines[place]!), lines[place]!);
    const hasCalls = closeAll(ending.outcome === "ok");
    out.push({ type: "answer.ended", answer: endOf(ending, response, hasCalls) });
    isEnded = true;
  }

  function step(type: string, event: Raw): void {
    switch (type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        return start(object(event["response"]));
      case "response.output_item.added":
        start();
        return readAdded(event);
      case "response.output_item.done": {
        start();
        const raw = event["item"];
        if (isObject(raw)) closeItem(findSame(event, raw) ?? openItem(event, raw), raw);
        return;
      }
      case "response.output_text.annotation.added":
        return readAnnotation(event);
      case "response.completed":
      case "response.done":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled": {
        // Some gateways leave out the envelope.
        const response = object(event["response"] ?? event);
        return conclude(decodeEnding(statusOf(type, response), response), response);
      }
      case "error":
      case "response.error":
        return conclude({ outcome: "error", error: decodeError(event) }, {});
      default:
        return readOther(type, event);
    }
  }

  function readOther(type: string, event: Raw): void {
    const told = readTextEvent(type, event);
    if (told !== undefined) {
      start();
      return readText(event, told);
    }
    // An error body instead of an event: some servers put it into the stream as it is.
    if (type === "" && event["error"] !== undefined && event["error"] !== null) return step("error", event);
    // A whole response instead of a stream.
    if (type === "" && event["object"] === "response") return step("response.done", { response: event });
    out.push({ type: "other", wire, raw: json(event) });
  }

  function drain(): readonly ModelEvent[] {
    if (out.length === 0) return nothing;
    const ready = out;
    out = [];
    return ready;
  }

  return {
    read(type: string, event: Raw): readonly ModelEvent[] {
      if (!isEnded) step(type, event);
      return drain();
    },
    end(): readonly ModelEvent[] {
      if (!isEnded) conclude({ outcome: "truncated" }, {});
      return drain();
    },
  };
}

/** The status by the event's name, unless the body of an event that reports success says otherwise. */
function statusOf(type: string, response: Raw): string {
  const own = string(response["status"]);
  if (own === "failed" || own === "incomplete" || own === "cancelled") return own;
  return type === "response.done" ? "completed" : type.slice("response.".length);
}

function createOpenItem(index: number, raw: Raw): OpenItem {
  const texts = { text: new Map(), refusal: new Map(), reasoning: new Map(), summary: new Map(), arguments: new Map() };
  return { index, raw, isDone: false, texts, annotations: new Map() };
}

function callId(raw: Raw): string | undefined {
  return word(raw["call_id"]);
}

function hasSameCall(open: OpenItem, raw: Raw): boolean {
  return callId(raw) !== undefined && callId(open.raw) === callId(raw);
}

/** Two complete forms describe the same item unless a type or an id differs. */
function isSame(open: OpenItem, raw: Raw): boolean {
  if (open.raw["type"] !== raw["type"]) return false;
  const [left, right] = [callId(open.raw), callId(raw)];
  return left === undefined || right === undefined || left === right;
}

/** Items of the same kind and, for calls, with the same arguments: otherwise it may really be another call. */
function isAlike({ raw: known }: OpenItem, raw: Raw): boolean {
  if (known["type"] !== raw["type"]) return false;
  return callId(raw) === undefined || (known["name"] === raw["name"] && known["arguments"] === raw["arguments"]);
}

/** Adds a piece to one of the item's texts. An empty piece says that the text exists. */
function addText({ texts }: OpenItem, field: DeltaField, at: number, text: string): void {
  let known = texts[field].get(at);
  if (known === undefined) texts[field].set(at, (known = createGrowingText()));
  known.add(text);
}

function inOrder(texts: Texts): readonly string[] {
  return [...texts].toSorted(([a], [b]) => a - b).map(([, text]) => text.toString());
}

/**
 * The item, with everything that its final form left out filled in from the deltas. Until that form
 * has come, the deltas are more recent.
 */
function wholeForm(open: OpenItem): Raw {
  const { raw, texts, isDone } = open;
  const keep = (said: boolean, grown: ReadonlyMap<number, unknown>) => grown.size === 0 || (isDone && said);
  switch (raw["type"]) {
    case "message":
      return keep(hasText(raw["content"]), texts.text.size > 0 ? texts.text : texts.refusal)
        ? raw
        : { ...raw, content: contentOf(open) };
    case "reasoning":
      return {
        ...raw,
        summary: keep(hasText(raw["summary"]), texts.summary)
          ? raw["summary"]
          : inOrder(texts.summary).map((text) => ({ type: "summary_text", text })),
        content: keep(hasText(raw["content"]), texts.reasoning)
          ? raw["content"]
          : inOrder(texts.reasoning).map((text) => ({ type: "reasoning_text", text })),
      };
    case "function_call":
      return keep(!isBlank(raw["arguments"]), texts.arguments)
        ? raw
        : { ...raw, arguments: inOrder(texts.arguments).join("") };
    case "custom_tool_call":
      return keep(!isBlank(raw["input"]), texts.arguments) ? raw : { ...raw, input: inOrder(texts.arguments).join("") };
    case "shell_call": {
      const action = object(raw["action"]);
      if (keep(array(action["commands"]).length > 0, texts.arguments)) return raw;
      return { ...raw, action: { ...action, commands: inOrder(texts.arguments) } };
    }
    default:
      return raw;
  }
}

function isBlank(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}

/** Whether there is a string, or any part that has text or is not a text. */
function hasText(content: unknown): boolean {
  if (typeof content === "string") return content !== "";
  return objects(content).some((part) => (string(part["text"]) ?? string(part["refusal"])) !== "");
}

function contentOf({ texts: { text, refusal }, annotations }: OpenItem): Raw[] {
  const parts: [number, Raw][] = [
    ...[...text].map(([at, value]): [number, Raw] => [
      at,
      { type: "output_text", text: value.toString(), annotations: annotations.get(at) ?? [] },
    ]),
    ...[...refusal].map(([at, value]): [number, Raw] => [at, { type: "refusal", refusal: value.toString() }]),
  ];
  return parts.sort(([a], [b]) => a - b).map(([, part]) => part);
}
