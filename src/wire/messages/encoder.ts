/**
 * Neutral events as a Messages stream: one block open at a time, numbered from 0, each input as JSON
 * deltas. Text and thoughts flow as they come; from the first call on everything waits for the end of
 * the answer, because a client takes a stopped block for a call to run.
 */
import type { JsonObject } from "../../base/json.ts";
import type { Answer, AnswerEnd, CallItem, Item, ModelEvent } from "../../spec/model.ts";
import { argumentsText } from "../arguments.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { withCarrier } from "../envelope.ts";
import { messagesError } from "../failure.ts";
import { createHold, handedOut } from "../hold.ts";
import { inventId } from "../ids.ts";
import { spellerOf } from "../names.ts";
import { createOutbox } from "../outbox.ts";
import { createBlockWriter } from "./block-writer.ts";
import { answerBlocks, callBlock } from "./encode-block.ts";
import { encodeStop, encodeUsage, wire } from "./ending.ts";
import { createOpenItem } from "./open-item.ts";

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

export function encodeAnswer(given: Answer, options: AnswerEncodeOptions = {}): JsonObject {
  const answer = handedOut(given);
  if (answer.outcome === "error" || answer.outcome === "truncated") return messagesError(answer.error);
  const spell = spellerOf(options.names);
  const content = answer.items
    .flatMap((item) => withCarrier(item, wire))
    .flatMap((item) => answerBlocks(item, spell, options.sign));
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

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const spell = spellerOf(options.names);
  const frames = createOutbox<Frame>();
  const blocks = createBlockWriter(emit);
  const open = createOpenItem(blocks);
  const hold = createHold({
    inOrder: true,
    mustWait: open.isBarredTo,
    openItem: open.index,
    write,
  });
  const done: Item[] = [];
  let isStarted = false;

  function emit(type: string, fields: JsonObject): void {
    frames.push({ event: type, data: JSON.stringify({ type, ...fields }) });
  }

  function begin(started: Started): void {
    if (isStarted) return;
    isStarted = true;
    const stop = { stop_reason: null, stop_sequence: null };
    emit("message_start", { message: { ...headOf(started, options), ...stop, usage: encodeUsage(undefined) } });
  }

  function finishCall(item: CallItem): void {
    for (const carrier of withCarrier(item, wire).slice(0, -1))
      answerBlocks(carrier, spell, options.sign).forEach(blocks.whole);
    blocks.call(callBlock(item, spell), argumentsText(item));
  }

  function write(event: ModelEvent): void {
    begin(event.type === "answer.started" ? event : {});
    switch (event.type) {
      case "item.delta":
        return open.grow(event.index, event.field, event.part ?? 0, event.delta);
      case "item.done":
        done.push(event.item);
        if (event.item.type === "call") return finishCall(event.item);
        return open.finish(event.index, event.item, answerBlocks(event.item, spell, options.sign));
      case "answer.ended":
        return conclude(event.answer, done, emit);
      case "answer.started":
      case "item.started":
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

function conclude(end: AnswerEnd, said: readonly Item[], emit: (type: string, fields: JsonObject) => void): void {
  if (end.outcome === "error" || end.outcome === "truncated") {
    const { type: _type, ...error } = messagesError(end.error);
    return emit("error", error);
  }
  emit("message_delta", { delta: encodeStop(end, refusalOf(said)), usage: encodeUsage(end.usage) });
  emit("message_stop", {});
}
