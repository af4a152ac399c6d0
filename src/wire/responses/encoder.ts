/**
 * Neutral events as a canonical Responses stream, complete enough for the strictest reader: every item
 * announced, numbered without gaps, ended, and repeated in the last event. Text and reasoning flow as
 * they come; from the first call on everything waits for the end of the answer, because clients run a
 * call as soon as they see it done.
 */
import type { JsonObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, CallItem, Item, ModelEvent } from "../../spec/model.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { withCarrier } from "../envelope.ts";
import { inventId } from "../ids.ts";
import { encodeResponse, type ResponseHead } from "./answer.ts";
import { wire } from "./decode-item.ts";
import { encodeOutputItem } from "./encode-item.ts";
import { createWriter, type Writer } from "./writer.ts";

export function encodeAnswer(answer: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  const head = headOf(answer, options);
  const output = answer.items
    .flatMap((item) => withCarrier(item, wire))
    .map((item, place) => encodeOutputItem(item, head.id, place))
    .filter((item) => item !== undefined);
  return encodeResponse(head, output, answer);
}

function headOf(
  started: { readonly id?: string; readonly model?: string },
  options: AnswerEncodeOptions,
): ResponseHead {
  return {
    id: options.id ?? started.id ?? inventId("response", 0, "resp_"),
    model: options.model ?? started.model ?? "",
    createdAt: options.createdAt ?? 0,
  };
}

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const frames: Frame[] = [];
  const writers = new Map<number, Writer>();
  const output: JsonObject[] = [];
  let head: ResponseHead | undefined;
  let sequence = 0;
  let held: ModelEvent[] | undefined;

  function emit(type: string, fields: JsonObject): void {
    frames.push({ event: type, data: JSON.stringify({ type, sequence_number: sequence++, ...fields }) });
  }

  function begin(started: { readonly id?: string; readonly model?: string }): ResponseHead {
    if (head !== undefined) return head;
    head = headOf(started, options);
    const response = encodeResponse(head, []);
    emit("response.created", { response });
    emit("response.in_progress", { response });
    return head;
  }

  /** Places are given in the order of announcing, so that readers who count see no gap. */
  function announce(index: number, item: Item): Writer | undefined {
    const { id } = begin({});
    const known = writers.get(index);
    if (known !== undefined) return known;
    const raw = encodeOutputItem(item, id, output.length);
    if (raw === undefined) return undefined;
    const writer = createWriter(item.type, raw, output.length, emit);
    output.push(raw);
    writers.set(index, writer);
    return writer;
  }

  function finish(index: number, item: Item, end: AnswerEnd | undefined): void {
    for (const carrier of withCarrier(item, wire).slice(0, -1)) tell(carrier);
    const writer = announce(index, item);
    if (writer === undefined) return;
    // Whatever id it ends with, it keeps the one it was announced under.
    const raw = { ...encodeOutputItem(item, begin({}).id, writer.place), id: output[writer.place]!["id"] ?? "" };
    // A call of a turn that failed is shown, never declared done: done means run it.
    const isHeldBack = item.type === "call" && !item.complete && end?.outcome !== "ok";
    output[writer.place] = isHeldBack ? writer.suspend(raw) : writer.finish(raw);
  }

  /** An item that no event of its own brought. */
  function tell(item: Item): void {
    const raw = encodeOutputItem(item, begin({}).id, output.length);
    if (raw !== undefined) output.push(createWriter(item.type, raw, output.length, emit).finish(raw));
  }

  function write(event: ModelEvent, end?: AnswerEnd): void {
    switch (event.type) {
      case "answer.started":
        begin(event);
        break;
      case "item.started":
        // Calls are announced when they are known whole: their names and ids may still change.
        if (event.item.type === "message" || event.item.type === "reasoning") announce(event.index, event.item);
        break;
      case "item.delta":
        writers.get(event.index)?.grow(event.field, event.part ?? 0, event.delta);
        break;
      case "item.done":
        finish(event.index, event.item, end);
        break;
      case "answer.ended":
        conclude(event.answer);
        break;
      case "other":
        break;
    }
  }

  function conclude(end: AnswerEnd): void {
    const response = encodeResponse(begin({}), output, end);
    emit(`response.${String(response["status"])}`, { response });
  }

  function take(event: ModelEvent): void {
    if (held === undefined && isCall(event)) held = [];
    if (held === undefined || event.type === "answer.ended") {
      const waiting = held ?? [];
      held = undefined;
      const end = event.type === "answer.ended" ? event.answer : undefined;
      for (const earlier of byItem(waiting)) write(earlier, end);
      write(event, end);
    } else {
      held.push(event);
    }
  }

  return {
    push(event) {
      take(event);
      return frames.splice(0);
    },
  };
}

function isCall(event: ModelEvent): event is ModelEvent & { item: CallItem } {
  return (event.type === "item.started" || event.type === "item.done") && event.item.type === "call";
}

/** Item after item: a call ends only with the answer, and what followed it must not overtake it. */
function byItem(events: readonly ModelEvent[]): readonly ModelEvent[] {
  const place = (event: ModelEvent) => ("index" in event ? event.index : -1);
  return events.toSorted((a, b) => place(a) - place(b));
}
