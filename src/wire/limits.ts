/**
 * Limits on what a model's server may send in one answer. If a server floods us, by mistake or on
 * purpose, its answer is ended with an error, and nothing in it runs.
 */
import type { Answer, AnswerEnd, Item, ModelEvent } from "../spec/model.ts";
import { answerToEvents, collect } from "./answer.ts";
import type { AnswerDecoder, AnswerLimits } from "./codec.ts";

/** How much a model's server may send in one answer, unless told otherwise. */
export const defaultAnswerLimits: AnswerLimits = {
  argumentCharacters: 1_000_000,
  calls: 128,
  characters: 16_000_000,
  bodyBytes: 256 << 20,
};

/** The error code of an answer that exceeded a limit. */
const limitCode = "answer_too_large";

/** A decoder that ends the answer as soon as it exceeds a limit, and marks every call as not to be run. */
export function limitDecoder(inner: AnswerDecoder, given: Partial<AnswerLimits> = {}): AnswerDecoder {
  const meter = createMeter({ ...defaultAnswerLimits, ...given });
  let isOver = false;

  function pass(events: readonly ModelEvent[]): readonly ModelEvent[] {
    if (isOver) return [];
    const message = meter.read(events);
    if (message === undefined) return events;
    isOver = true;
    return endWith(message, [...events, ...inner.end()]);
  }

  return {
    push: (frame) => (isOver ? [] : pass(inner.push(frame))),
    repeated() {
      const frame = isOver ? undefined : inner.repeated?.();
      return frame && { ...frame, hear: (words) => (isOver ? [] : pass(frame.hear(words))) };
    },
    end: () => (isOver ? [] : pass(inner.end())),
  };
}

/** Applies the limits to an answer that came as a whole. */
export function limitAnswer(answer: Answer, given: Partial<AnswerLimits> = {}): Answer {
  const events = answerToEvents(answer);
  const message = createMeter({ ...defaultAnswerLimits, ...given }).read(events);
  return message === undefined ? answer : collect(endWith(message, events));
}

/** Returns which limit the events have exceeded, if any. */
function createMeter(limits: AnswerLimits): { read(events: readonly ModelEvent[]): string | undefined } {
  const calls = new Map<number, number>();
  let characters = 0;

  function readCall(index: number, added: number, isWhole: boolean): string | undefined {
    const length = isWhole ? added : (calls.get(index) ?? 0) + added;
    calls.set(index, length);
    if (calls.size > limits.calls) return `more than ${limits.calls} calls`;
    return length > limits.argumentCharacters
      ? `a call whose arguments are longer than ${limits.argumentCharacters} characters`
      : undefined;
  }

  function readEvent(event: ModelEvent): string | undefined {
    switch (event.type) {
      case "item.delta":
        characters += event.delta.length;
        return event.field === "arguments" ? readCall(event.index, event.delta.length, false) : undefined;
      case "item.started":
        return event.item.type === "call" ? readCall(event.index, 0, false) : undefined;
      case "item.done":
        return event.item.type === "call" ? readCall(event.index, event.item.arguments.length, true) : undefined;
      default:
        return undefined;
    }
  }

  return {
    read(events) {
      for (const event of events) {
        const passed = readEvent(event);
        if (passed !== undefined) return `The model's server sent ${passed}: the answer was ended.`;
      }
      if (characters <= limits.characters) return undefined;
      return `The model's server sent more than ${limits.characters} characters: the answer was ended.`;
    },
  };
}

/** The events of an answer that exceeded a limit: none of its calls may run, and its end says why. */
function endWith(message: string, events: readonly ModelEvent[]): readonly ModelEvent[] {
  const answer: AnswerEnd = { outcome: "error", finish: "error", error: { message, type: "limit", code: limitCode } };
  const kept = events.flatMap((event): readonly ModelEvent[] => {
    if (event.type === "answer.ended" || (event.type === "item.delta" && event.field === "arguments")) return [];
    return event.type === "item.done" ? [{ ...event, item: stopped(event.item) }] : [event];
  });
  return [...kept, { type: "answer.ended", answer }];
}

/** Too long to be shown. The beginning is enough to see what it was. */
function stopped(item: Item): Item {
  return item.type === "call" ? { ...item, arguments: item.arguments.slice(0, 1000), complete: false } : item;
}
