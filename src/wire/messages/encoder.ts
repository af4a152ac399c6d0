/**
 * Neutral events as a Messages stream: one block open at a time, numbered from 0, each input as JSON
 * deltas. Text and thoughts flow as they come; from the first call on everything waits for the end of
 * the answer, because a client takes a stopped block for a call to run.
 */
import type { JsonObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, CallItem, DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { argumentsText } from "../arguments.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { withCarrier } from "../envelope.ts";
import { inventId } from "../ids.ts";
import { spellerOf } from "../names.ts";
import { createBlockWriter } from "./block-writer.ts";
import { answerBlocks, callBlock } from "./encode-block.ts";
import { encodeError, encodeStop, encodeUsage, wire } from "./ending.ts";

interface Started {
  readonly id?: string;
  readonly model?: string;
}

function headOf(started: Started, options: AnswerEncodeOptions): JsonObject {
  return {
    id: options.id ?? started.id ?? inventId("message", 0, "msg_"),
    type: "message",
    role: "assistant",
    model: options.model ?? started.model ?? "",
    content: [],
  };
}

export function encodeAnswer(answer: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  if (answer.outcome === "error" || answer.outcome === "truncated") return encodeError(answer);
  const spell = spellerOf(options.names);
  const content = answer.items.flatMap((item) => withCarrier(item, wire)).flatMap((item) => answerBlocks(item, spell));
  return {
    ...headOf(answer, options),
    content,
    ...encodeStop(answer, refusalOf(answer.items)),
    usage: encodeUsage(answer.usage),
  };
}

function refusalOf(items: readonly Item[]): string | undefined {
  const refusals = items.flatMap((item) =>
    item.type === "message" && item.refusal !== undefined ? [item.refusal] : [],
  );
  return refusals.length === 0 ? undefined : refusals.join("\n");
}

/** The item whose block is being written, and what its deltas said so far. */
interface Open {
  readonly index: number;
  part: number;
  said: string;
}

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const spell = spellerOf(options.names);
  const frames: Frame[] = [];
  const blocks = createBlockWriter(emit);
  const done: Item[] = [];
  let isStarted = false;
  let open: Open | undefined;
  let held: ModelEvent[] | undefined;

  function emit(type: string, fields: JsonObject): void {
    frames.push({ event: type, data: JSON.stringify({ type, ...fields }) });
  }

  function begin(started: Started): void {
    if (isStarted) return;
    isStarted = true;
    const message = {
      ...headOf(started, options),
      stop_reason: null,
      stop_sequence: null,
      usage: encodeUsage(undefined),
    };
    emit("message_start", { message });
  }

  function grow(index: number, field: DeltaField, part: number, words: string): void {
    if (words === "" || field === "refusal" || field === "arguments") return;
    const kind = field === "text" ? "text" : "thinking";
    const isNext = open !== undefined && open.part !== part;
    // Each text part is a block of its own; thoughts stay one block, whose signature comes last.
    if (isNext && kind === "text") blocks.end();
    const gap = isNext && field === "summary" ? "\n\n" : "";
    open = { index, part, said: (open?.said ?? "") + gap + words };
    blocks.say(kind, gap + words);
  }

  function finish(index: number, item: Item, end: AnswerEnd | undefined): void {
    done.push(item);
    if (item.type === "call") return finishCall(item, end);
    const written = answerBlocks(item, spell);
    if (open?.index !== index) return written.forEach(blocks.whole);
    const whole = written.map((block) => String(block["text"] ?? block["thinking"] ?? "")).join("");
    // What the deltas did not say yet.
    if (whole.startsWith(open.said))
      grow(index, item.type === "message" ? "text" : "reasoning", open.part, whole.slice(open.said.length));
    blocks.end(written.at(-1));
    open = undefined;
  }

  function finishCall(item: CallItem, end: AnswerEnd | undefined): void {
    for (const carrier of withCarrier(item, wire).slice(0, -1)) answerBlocks(carrier, spell).forEach(blocks.whole);
    const isCut = !item.complete && end?.outcome !== "ok";
    blocks.call(callBlock(item, spell), isCut ? item.arguments : argumentsText(item), !isCut);
  }

  function write(event: ModelEvent, end?: AnswerEnd): void {
    begin(event.type === "answer.started" ? event : {});
    switch (event.type) {
      case "item.delta":
        return grow(event.index, event.field, event.part ?? 0, event.delta);
      case "item.done":
        return finish(event.index, event.item, end);
      case "answer.ended":
        return conclude(event.answer);
      case "answer.started":
      case "item.started":
      case "other":
        return;
    }
  }

  function conclude(end: AnswerEnd): void {
    if (end.outcome === "error" || end.outcome === "truncated") {
      const { type: _type, ...error } = encodeError(end);
      return emit("error", error);
    }
    emit("message_delta", { delta: encodeStop(end, refusalOf(done)), usage: encodeUsage(end.usage) });
    emit("message_stop", {});
  }

  return {
    push(event) {
      if (held === undefined && mustWait(event, open?.index)) held = [];
      if (held === undefined) write(event);
      else if (event.type === "answer.ended") {
        for (const earlier of byItem(held, open?.index)) write(earlier, event.answer);
        write(event, event.answer);
      } else held.push(event);
      return frames.splice(0);
    },
  };
}

/** A call, or words of another item while a block is still open. */
function mustWait(event: ModelEvent, open: number | undefined): boolean {
  if (event.type === "item.started" || event.type === "item.done")
    return event.item.type === "call" || (event.type === "item.done" && open !== undefined && event.index !== open);
  return event.type === "item.delta" && open !== undefined && event.index !== open;
}

/** Held events item after item, in the order of their index, the open one first: blocks cannot interleave. */
function byItem(events: readonly ModelEvent[], open: number | undefined): readonly ModelEvent[] {
  const place = (event: ModelEvent) => ("index" in event && event.index !== open ? event.index : -1);
  return events.toSorted((a, b) => place(a) - place(b));
}
