/** Collects events: adjacent pieces of one item become one delta. */
import type { DeltaField, Item, ModelEvent } from "../spec/model.ts";

export interface EventLog {
  /** Returns the item's place. */
  start(item: Item): number;
  delta(index: number, field: DeltaField, text: string): void;
  done(index: number, item: Item): void;
  add(event: ModelEvent): void;
  /** Everything since the last look. */
  drain(): readonly ModelEvent[];
}

export function createEventLog(nextIndex: () => number): EventLog {
  let events: ModelEvent[] = [];
  let pending: { readonly index: number; readonly field: DeltaField; text: string } | undefined;

  function flush(): void {
    if (pending === undefined) return;
    const { index, field, text } = pending;
    pending = undefined;
    events.push({ type: "item.delta", index, field, delta: text });
  }

  function add(event: ModelEvent): void {
    flush();
    events.push(event);
  }

  return {
    start(item) {
      const index = nextIndex();
      add({ type: "item.started", index, item });
      return index;
    },
    delta(index, field, text) {
      if (text === "") return;
      if (pending?.index === index && pending.field === field) {
        pending.text += text;
        return;
      }
      flush();
      pending = { index, field, text };
    },
    done: (index, item) => add({ type: "item.done", index, item }),
    add,
    drain() {
      flush();
      const ready = events;
      events = [];
      return ready;
    },
  };
}
