/**
 * A Responses stream as neutral events. Servers leave out much of the canonical sequence (`added`, item
 * ids, deltas, even whole items until `completed`), so an item is found by whatever names it, grows from
 * whatever tells of it, and ends with the last whole form that was sent.
 */
import type { Answer, Item, ModelEvent } from "../../spec/model.ts";
import { collect, shellOf } from "../answer.ts";
import type { AnswerDecoder, DecodeOptions } from "../codec.ts";
import { createIdMaker, inventId } from "../ids.ts";
import { json, object, objects, parseObject, type Raw, string, word } from "../raw.ts";
import { decodeEnding, decodeError, type Ending, endOf } from "./answer.ts";
import { decodeItem, wire } from "./decode-item.ts";
import { readStep, type Step } from "./events.ts";
import { createGrowing, type Growing, settle, textsOf } from "./growing.ts";
import { createItemBook } from "./item-book.ts";
import { renamed } from "./names.ts";

export function createDecoder(options: DecodeOptions = {}): AnswerDecoder {
  const reader = createReader(options);
  return {
    push(frame) {
      const event = parseObject(frame.data);
      return event === undefined ? [] : reader.read(string(event["type"]) ?? frame.event ?? "", event);
    },
    end: () => reader.end(),
  };
}

/** A body that came as a whole takes the same way as the last event of a stream. */
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

interface Reader {
  read(type: string, event: Raw): readonly ModelEvent[];
  end(): readonly ModelEvent[];
}

function createReader(options: DecodeOptions): Reader {
  const ids = createIdMaker(options.idSeed);
  const book = createItemBook();
  let isStarted = false;
  let isEnded = false;
  let out: ModelEvent[] = [];

  function start(response: Raw): void {
    if (isStarted) return;
    isStarted = true;
    const id = word(response["id"]);
    const model = word(response["model"]);
    out.push({
      type: "answer.started",
      ...(id === undefined ? {} : { id }),
      ...(model === undefined ? {} : { model }),
    });
  }

  function toItem(growing: Growing): Item {
    return renamed(decodeItem(settle(growing)), options.names);
  }

  function open(event: Raw, raw: Raw): Growing {
    start({});
    const growing = createGrowing(book.claim(event["output_index"]), raw);
    book.add(growing, event);
    const shell = shellOf(toItem(growing));
    const named =
      shell.type === "call" && shell.id === ""
        ? { ...shell, id: inventId(options.idSeed ?? "", growing.index) }
        : shell;
    out.push({ type: "item.started", index: growing.index, item: named });
    return growing;
  }

  /** Says as deltas what a whole form holds beyond the deltas before it. */
  function catchUp(growing: Growing, step: Pick<Step, "field" | "at">, text: string): void {
    const said = growing.pieces[step.field].get(step.at) ?? "";
    if (text.length <= said.length || !text.startsWith(said)) return;
    grow(growing, step.field, step.at, text.slice(said.length));
  }

  function grow(growing: Growing, field: Step["field"], at: number, delta: string): void {
    const pieces = growing.pieces[field];
    pieces.set(at, (pieces.get(at) ?? "") + delta);
    if (delta !== "") out.push({ type: "item.delta", index: growing.index, field, delta, part: at });
  }

  function finish(growing: Growing, raw: Raw): void {
    growing.raw = { ...growing.raw, ...raw };
    growing.isDone = true;
    for (const { field, at, text } of textsOf(settle(growing))) catchUp(growing, { field, at }, text);
    const item = toItem(growing);
    growing.item = item;
    // Whether a call may run is known only at the end of the whole answer.
    if (item.type !== "call") out.push({ type: "item.done", index: growing.index, item });
  }

  function step(event: Raw, found: Step): void {
    const growing = book.find(event) ?? open(event, { type: found.item, id: event["item_id"] });
    if (growing.isDone) return;
    if (word(growing.raw["name"]) === undefined && word(event["name"]) !== undefined)
      growing.raw = { ...growing.raw, name: event["name"] };
    if (found.kind === "delta") grow(growing, found.field, found.at, found.text);
    else catchUp(growing, found, found.text);
  }

  function end(ending: Ending, response: Raw): void {
    start(response);
    const told = new Set<Growing>();
    for (const [place, raw] of objects(response["output"]).entries()) {
      const known = book.match(raw, place);
      // One line of the output, one item: ids that repeat are a server's mistake and lose nothing.
      const growing = known === undefined || told.has(known) ? open({ output_index: place }, raw) : known;
      told.add(growing);
      if (!growing.isDone) finish(growing, raw);
    }
    let hasCalls = false;
    for (const growing of book.all()) {
      const item = growing.item ?? toItem(growing);
      if (item.type === "call") {
        hasCalls = true;
        const id = ids.claim(item.id, growing.index);
        out.push({
          type: "item.done",
          index: growing.index,
          item: { ...item, id, complete: item.complete && ending.outcome === "ok" },
        });
      } else if (!growing.isDone) {
        out.push({ type: "item.done", index: growing.index, item });
      }
    }
    out.push({ type: "answer.ended", answer: endOf(ending, response, hasCalls) });
    isEnded = true;
  }

  function dispatch(type: string, event: Raw): void {
    switch (type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        return start(object(event["response"]));
      case "response.output_item.added": {
        const raw = object(event["item"]);
        const known = book.findSame(event, raw);
        if (known === undefined) open(event, raw);
        else known.raw = { ...known.raw, ...raw };
        return;
      }
      case "response.output_item.done": {
        const raw = object(event["item"]);
        const growing = book.findSame(event, raw) ?? open(event, raw);
        if (!growing.isDone) finish(growing, raw);
        return;
      }
      case "response.completed":
      case "response.done":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled": {
        const response = object(event["response"]);
        return end(decodeEnding(statusOf(type, response), response), response);
      }
      case "error":
        return end({ outcome: "error", error: decodeError(event) }, {});
      default:
        return readOther(type, event);
    }
  }

  function readOther(type: string, event: Raw): void {
    const found = readStep(type, event);
    if (found !== undefined) return step(event, found);
    if (type === "response.output_text.annotation.added") return annotate(event);
    // A body that is an error and no event: some servers put it into the stream as it is.
    if (type === "" && event["error"] !== undefined && event["error"] !== null)
      return end({ outcome: "error", error: decodeError(event) }, {});
    out.push({ type: "other", wire, raw: json(event) });
  }

  function annotate(event: Raw): void {
    const growing = book.find(event);
    if (growing === undefined || growing.isDone) return;
    const at = typeof event["content_index"] === "number" ? event["content_index"] : 0;
    growing.annotations.set(at, [...(growing.annotations.get(at) ?? []), event["annotation"]]);
  }

  function flush(): readonly ModelEvent[] {
    const events = out;
    out = [];
    return events;
  }

  return {
    read(type, event) {
      if (isEnded) return [];
      dispatch(type, event);
      return flush();
    },
    end() {
      if (!isEnded) end({ outcome: "truncated" }, {});
      return flush();
    },
  };
}

/** The event's name says it, unless the body of a cheerful event says otherwise. */
function statusOf(type: string, response: Raw): string {
  const own = string(response["status"]);
  if (own === "failed" || own === "incomplete" || own === "cancelled") return own;
  return type === "response.done" ? "completed" : type.slice("response.".length);
}
