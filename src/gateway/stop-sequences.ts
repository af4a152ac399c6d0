/**
 * Stop sequences for models whose API has no such setting: the visible text is cut before the first of
 * them, the answer ends there as it would have at the model, and the rest of it is not waited for.
 */
import { text } from "../base/content.ts";
import type { AnswerEnd, Item, MessageItem, ModelEvent } from "../spec/model.ts";

type Delta = Extract<ModelEvent, { type: "item.delta" }>;

export async function* stopAt(
  events: AsyncIterable<ModelEvent>,
  sequences: readonly string[],
): AsyncGenerator<ModelEvent> {
  const messages = new Map<number, Watched>();
  /** A call counts when it is complete. One that the stop cuts off must not be seen at all. */
  const calls = new Map<number, ModelEvent[]>();
  let hasCalls = false;
  for await (const event of events) {
    if (event.type === "item.started" && event.item.type === "message")
      messages.set(event.index, watch(event.index, event.item, sequences));
    if (event.type === "item.started" && event.item.type === "call") calls.set(event.index, []);
    const call = "index" in event ? calls.get(event.index) : undefined;
    const message = "index" in event ? messages.get(event.index) : undefined;
    if (call !== undefined) {
      call.push(event);
      if (event.type !== "item.done") continue;
      yield* call;
      hasCalls = true;
    } else if (message !== undefined && (event.type === "item.delta" || event.type === "item.done")) {
      yield* message.pass(event);
      const found = message.found();
      if (found !== undefined) return yield { type: "answer.ended", answer: stopped(found, hasCalls) };
    } else yield event;
  }
}

function stopped(sequence: string, hasCalls: boolean): AnswerEnd {
  if (hasCalls) return { outcome: "ok", finish: "tool_calls" };
  const fields = { stop_reason: "stop_sequence", stop_sequence: sequence };
  return { outcome: "ok", finish: "stop", extra: { wire: "messages", fields } };
}

interface Watched {
  pass(event: Delta | Extract<ModelEvent, { type: "item.done" }>): Generator<ModelEvent>;
  /** The sequence that ended the text. */
  found(): string | undefined;
}

/** One message. What may be the beginning of a sequence waits for what comes next. */
function watch(index: number, started: MessageItem, sequences: readonly string[]): Watched {
  let said = "";
  let held: Delta | undefined;
  let found: string | undefined;

  const cut = (words: string): string => {
    const hits = sequences.flatMap((sequence) => {
      const at = words.indexOf(sequence);
      return at < 0 ? [] : [{ sequence, at }];
    });
    const [first] = hits.toSorted((a, b) => a.at - b.at);
    found = first?.sequence;
    return words.slice(0, first?.at);
  };
  const say = function* (delta: Delta, words: string): Generator<ModelEvent> {
    if (words === "") return;
    said += words;
    yield { ...delta, delta: words };
  };

  return {
    found: () => found,
    *pass(event) {
      if (event.type === "item.done") {
        if (held !== undefined) yield* say(held, held.delta);
        held = undefined;
        // A message without deltas, or with more than they said, is checked as a whole.
        const item = cutMessage(event.item, cut);
        return yield found === undefined ? event : { ...event, item };
      }
      if (event.field !== "text") return yield event;
      const isSamePart = held === undefined || held.part === event.part;
      if (held !== undefined && !isSamePart) yield* say(held, held.delta);
      const words = (isSamePart ? (held?.delta ?? "") : "") + event.delta;
      const shown = cut(words);
      const waiting = found === undefined ? longestBeginning(shown, sequences) : 0;
      held = waiting === 0 ? undefined : { ...event, delta: shown.slice(shown.length - waiting) };
      yield* say(event, shown.slice(0, shown.length - waiting));
      if (found === undefined) return;
      const content = said === "" ? [] : [text(said)];
      yield { type: "item.done", index, item: { ...started, content } };
    },
  };
}

/** The message up to the sequence, text part by text part. */
function cutMessage(item: Item, cut: (words: string) => string): Item {
  if (item.type !== "message") return item;
  const content: MessageItem["content"][number][] = [];
  for (const part of item.content) {
    const words = part.type === "text" ? part.text : "";
    const shown = cut(words);
    content.push(part.type === "text" ? { ...part, text: shown } : part);
    if (shown.length < words.length) break;
  }
  return { ...item, content };
}

/** How many characters at the end may be the beginning of a sequence. */
function longestBeginning(words: string, sequences: readonly string[]): number {
  const longest = Math.max(...sequences.map(({ length }) => length)) - 1;
  for (let length = Math.min(longest, words.length); length > 0; length--) {
    const end = words.slice(-length);
    if (sequences.some((sequence) => sequence.startsWith(end))) return length;
  }
  return 0;
}
