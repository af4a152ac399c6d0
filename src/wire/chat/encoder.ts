/**
 * Neutral events as Chat Completions chunks. Words and thoughts go out as they come; a call goes out
 * when it is done, because only then its name and arguments are known to be what the model meant.
 */
import type { JsonObject } from "../../base/json.ts";
import type { AnswerEnd, DeltaField, Item, ModelEvent } from "../../spec/model.ts";
import { thoughtsOf, wordsOf } from "../answer.ts";
import type { AnswerEncodeOptions, AnswerEncoder, Frame } from "../codec.ts";
import { chatError } from "../failure.ts";
import { createHold } from "../hold.ts";
import { spellerOf } from "../names.ts";
import { createOutbox } from "../outbox.ts";
import { echoed, object } from "../raw.ts";
import { createCallWriter, encodeFinish, encodeUsage, headOf } from "./answer.ts";

export function createEncoder(options: AnswerEncodeOptions = {}): AnswerEncoder {
  const writeCall = createCallWriter(spellerOf(options.names), options.sign);
  const frames = createOutbox<Frame>();
  const hold = createHold({ inOrder: false, write: (event) => write(event).forEach(frames.push) });
  const sent = new Map<string, string>();
  let head = headOf({}, options);
  let calls = 0;
  let hasStarted = false;

  const chunk = (delta: JsonObject): Frame => toFrame({ ...head, choices: [{ index: 0, delta, finish_reason: null }] });

  function start(): readonly Frame[] {
    if (hasStarted) return [];
    hasStarted = true;
    return [chunk({ role: "assistant", content: "" })];
  }

  function say(index: number, field: WordField, delta: string): readonly Frame[] {
    if (delta === "") return [];
    const key = `${index} ${field}`;
    sent.set(key, (sent.get(key) ?? "") + delta);
    return [...start(), chunk({ [field]: delta })];
  }

  function sayRest(index: number, field: WordField, whole: string): readonly Frame[] {
    const before = sent.get(`${index} ${field}`) ?? "";
    return say(index, field, whole.startsWith(before) ? whole.slice(before.length) : "");
  }

  /** What a done item holds beyond what its deltas said: answers that were not streamed have no deltas. */
  function finish(index: number, item: Item): readonly Frame[] {
    const call = writeCall(item);
    if (call !== undefined) return [...start(), ...callDeltas(call, calls++).map(chunk)];
    if (item.type === "message")
      return [...sayRest(index, "content", wordsOf(item)), ...sayRest(index, "refusal", item.refusal ?? "")];
    if (item.type !== "reasoning") return [];
    const details = echoed(item.extra, "chat");
    const rest = sayRest(index, "reasoning_content", thoughtsOf(item));
    return Object.keys(details).length === 0 ? rest : [...rest, ...start(), chunk(details)];
  }

  function write(event: ModelEvent): readonly Frame[] {
    switch (event.type) {
      case "answer.started":
        head = headOf(event, options);
        return start();
      case "item.delta":
        return event.field === "arguments" ? [] : say(event.index, wordFields[event.field], event.delta);
      case "item.done":
        return finish(event.index, event.item);
      case "answer.ended":
        return [...start(), ...endFrames(event.answer, head, calls)];
      case "item.started":
      case "other":
        return [];
    }
  }

  return {
    push(event: ModelEvent) {
      hold.push(event);
      return frames.drain();
    },
  };
}

type WordField = "content" | "refusal" | "reasoning_content";

const wordFields: Readonly<Record<Exclude<DeltaField, "arguments">, WordField>> = {
  text: "content",
  refusal: "refusal",
  reasoning: "reasoning_content",
  summary: "reasoning_content",
};

/** A function is announced by name before its arguments follow; a freeform call comes whole. */
function callDeltas(call: JsonObject, index: number): readonly JsonObject[] {
  if (call["type"] === "custom") return [{ tool_calls: [{ index, ...call }] }];
  const { name = "", arguments: args = "" } = object(call["function"]) as JsonObject; // written by the call writer
  return [
    { tool_calls: [{ index, ...call, function: { name, arguments: "" } }] },
    { tool_calls: [{ index, function: { arguments: args } }] },
  ];
}

function toFrame(value: JsonObject): Frame {
  return { data: JSON.stringify(value) };
}

/** A stream that broke ends with an error and has no `finish_reason` and no `[DONE]`, so that the client sees it too. */
function endFrames(end: AnswerEnd, head: JsonObject, calls: number): readonly Frame[] {
  if (end.outcome === "error" || end.outcome === "truncated") return [toFrame({ error: chatError(end.error) })];
  const finish = encodeFinish(end.finish, calls);
  const last = { ...head, choices: [{ index: 0, delta: {}, finish_reason: finish }] };
  const usage = end.usage === undefined ? [] : [{ ...head, choices: [], usage: encodeUsage(end.usage) }];
  return [...[last, ...usage].map(toFrame), { data: "[DONE]" }];
}
