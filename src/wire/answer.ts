/**
 * An answer as events and as a whole. `collect` turns events into an answer, and `answerToEvents` does
 * the reverse. Bodies that are not streamed go through these two as well, so both forms agree by
 * construction.
 */
import { defined } from "../base/json.ts";
import { text } from "../base/content.ts";
import { createGrowingText, type GrowingText } from "../base/growing-text.ts";
import type {
  Answer,
  AnswerEnd,
  CallItem,
  DeltaField,
  Item,
  MessageItem,
  ModelEvent,
  ReasoningItem,
} from "../spec/model.ts";

type DeltaEvent = Extract<ModelEvent, { type: "item.delta" }>;

export interface Collector {
  push(event: ModelEvent): void;
  /** Everything so far. Items that never ended are put together from their deltas, and such calls are not complete. */
  answer(): Answer;
}

/** The deltas of one field, by the part they belong to. */
type Parts = Map<number, GrowingText>;

interface Open {
  readonly item: Item;
  readonly done: boolean;
  readonly grown: Map<DeltaField, Parts>;
}

export function createCollector(): Collector {
  const open = new Map<number, Open>();
  let started: { id?: string; model?: string } = {};
  let end: AnswerEnd = { outcome: "truncated" };

  return {
    push(event) {
      switch (event.type) {
        case "answer.started": {
          started = defined({ id: event.id, model: event.model });
          break;
        }
        case "item.started": {
          open.set(event.index, { item: event.item, done: false, grown: new Map() });
          break;
        }
        case "item.delta": {
          const item = open.get(event.index);
          if (item !== undefined) extend(item.grown, event);
          break;
        }
        case "item.done": {
          open.set(event.index, { item: event.item, done: true, grown: new Map() });
          break;
        }
        case "answer.ended": {
          end = event.answer;
          break;
        }
        case "note":
        case "other": {
          break;
        }
      }
    },
    answer() {
      const items = [...open]
        .toSorted(([a], [b]) => a - b)
        .map(([, entry]) => (entry.done ? entry.item : grown(entry)));
      return { ...started, items, ...end };
    },
  };
}

/** Puts the events of an answer together. Items are in order of their index; without `answer.ended` it is truncated. */
export function collect(events: Iterable<ModelEvent>): Answer;
export function collect(events: AsyncIterable<ModelEvent>): Promise<Answer>;
export function collect(events: Iterable<ModelEvent> | AsyncIterable<ModelEvent>): Answer | Promise<Answer> {
  const collector = createCollector();
  if (Symbol.asyncIterator in events) return collectLater(events, collector);
  for (const event of events) collector.push(event);
  return collector.answer();
}

async function collectLater(events: AsyncIterable<ModelEvent>, collector: Collector): Promise<Answer> {
  for await (const event of events) collector.push(event);
  return collector.answer();
}

function extend(grown: Open["grown"], { field, part = 0, delta }: DeltaEvent): void {
  let parts = grown.get(field);
  if (parts === undefined) grown.set(field, (parts = new Map()));
  let text = parts.get(part);
  if (text === undefined) parts.set(part, (text = createGrowingText()));
  text.add(delta);
}

function textsOf(parts: Parts | undefined): readonly string[] {
  return [...(parts ?? [])].toSorted(([a], [b]) => a - b).map(([, words]) => words.toString());
}

function grown({ item, grown: said }: Open): Item {
  const joined = (field: DeltaField) => textsOf(said.get(field)).join("");
  switch (item.type) {
    case "message": {
      const words = joined("text");
      const refusal = (item.refusal ?? "") + joined("refusal");
      const content = words === "" ? item.content : [...item.content, text(words)];
      return { ...item, content, ...(refusal === "" ? {} : { refusal }) };
    }
    case "reasoning": {
      const thoughts = (item.text ?? "") + joined("reasoning");
      const summary = textsOf(said.get("summary"));
      return { ...item, ...(thoughts === "" ? {} : { text: thoughts }), ...(summary.length === 0 ? {} : { summary }) };
    }
    case "call": {
      return { ...item, arguments: item.arguments + joined("arguments"), complete: false };
    }
    default: {
      return item;
    }
  }
}

/** The events a stream of this answer would have had, each delta in one piece. */
export function answerToEvents(answer: Answer): readonly ModelEvent[] {
  const { items, id, model, ...end } = answer;
  return [
    { type: "answer.started", ...defined({ id, model }) },
    ...items.flatMap((item, index) => itemToEvents(item, index)),
    { type: "answer.ended", answer: end },
  ];
}

/** One item as started, deltas, done. */
function itemToEvents(item: Item, index: number): readonly ModelEvent[] {
  return [
    { type: "item.started", index, item: shellOf(item) },
    ...deltasOf(item).map(([field, delta, part]): ModelEvent =>
      part === undefined
        ? { type: "item.delta", index, field, delta }
        : { type: "item.delta", index, field, delta, part },
    ),
    { type: "item.done", index, item },
  ];
}

type Delta = readonly [field: DeltaField, delta: string, part?: number | undefined];

function deltasOf(item: Item): readonly Delta[] {
  const deltas: Delta[] = [];
  if (item.type === "message") {
    // Further parts are numbered; the first one needs no number.
    item.content.forEach((part, at) => part.type === "text" && deltas.push(["text", part.text, at || undefined]));
    if (item.refusal !== undefined) deltas.push(["refusal", item.refusal]);
  } else if (item.type === "reasoning") {
    item.summary?.forEach((words, part) => deltas.push(["summary", words, part]));
    if (item.text !== undefined) deltas.push(["reasoning", item.text]);
  } else if (item.type === "call") {
    deltas.push(["arguments", item.arguments]);
  }
  return deltas.filter(([, delta]) => delta !== "");
}

/** An item as it is announced: everything but the text that follows as deltas. */
export function shellOf(item: Item): Item {
  switch (item.type) {
    case "message": {
      const { refusal: _refusal, ...rest }: MessageItem = item;
      return { ...rest, content: [] };
    }
    case "reasoning": {
      const { summary: _summary, text: _text, opaque: _opaque, ...rest }: ReasoningItem = item;
      return rest;
    }
    case "call": {
      const shell: CallItem = { ...item, arguments: "", complete: false };
      return shell;
    }
    default: {
      return item;
    }
  }
}

/** The text of a message, without its other parts. */
export function wordsOf(item: MessageItem): string {
  return item.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** The thoughts in one text, with summaries first. */
export function thoughtsOf(item: ReasoningItem): string {
  return [...(item.summary ?? []), item.text ?? ""].join("");
}
