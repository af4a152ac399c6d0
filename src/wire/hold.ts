/**
 * Holding events back for clients that run a call as soon as they see its end: from the first event that
 * must wait, everything waits for the end of the answer, which says whether calls may run.
 */
import type { AnswerEnd, ModelEvent } from "../spec/model.ts";

export interface Hold {
  push(event: ModelEvent): void;
}

export interface HoldOptions {
  mustWait(event: ModelEvent): boolean;
  /** The item that is being written while others wait; its events come out before theirs. */
  openItem?(): number | undefined;
  /** `end` is how the answer ended, for events that waited for it. */
  write(event: ModelEvent, end?: AnswerEnd): void;
}

export function createHold({ mustWait, openItem, write }: HoldOptions): Hold {
  let held: ModelEvent[] | undefined;
  return {
    push(event) {
      if (held === undefined && mustWait(event)) held = [];
      if (event.type === "answer.ended") {
        for (const earlier of byItem(held ?? [], openItem?.())) write(earlier, event.answer);
        held = undefined;
        write(event, event.answer);
      } else if (held === undefined) write(event);
      else held.push(event);
    },
  };
}

/** A call, announced or done. */
export function isCall(event: ModelEvent): boolean {
  return (event.type === "item.started" || event.type === "item.done") && event.item.type === "call";
}

/** Item after item, in the order of their index: items cannot interleave, nor overtake each other. */
function byItem(events: readonly ModelEvent[], open: number | undefined): readonly ModelEvent[] {
  const place = (event: ModelEvent) => ("index" in event && event.index !== open ? event.index : -1);
  return events.toSorted((a, b) => place(a) - place(b));
}
