/** The items of one stream, found by any of the names servers give them: item id, output index, call id. */
import { count, type Raw, word } from "../raw.ts";
import type { Growing } from "./growing.ts";

export interface ItemBook {
  /** A free index: the wanted one, or the next after all others. */
  claim(wanted: unknown): number;
  add(growing: Growing, event: Raw): void;
  /** The item a piece of text belongs to. */
  find(event: Raw): Growing | undefined;
  /** The item that an `added` or `done` event tells of again. */
  findSame(event: Raw, raw: Raw): Growing | undefined;
  /** The item that a line of the final output tells of again. */
  match(raw: Raw, place: number): Growing | undefined;
  all(): readonly Growing[];
}

/** Indexes beyond this are a server's mistake; they only say 'somewhere at the end'. */
const highestIndex = 100_000;

export function createItemBook(): ItemBook {
  const items = new Map<number, Growing>();
  const byId = new Map<string, Growing>();
  const byPlace = new Map<number, Growing>();
  let byCall: Map<string, Growing> | undefined;
  let latest: Growing | undefined;
  let next = 0;

  const callId = (raw: Raw) => word(raw["call_id"]);

  /** Two whole forms tell of one item unless a type or an id says otherwise. */
  function isSame(growing: Growing, raw: Raw): boolean {
    if (growing.raw["type"] !== raw["type"]) return false;
    const [left, right] = [callId(growing.raw), callId(raw)];
    return left === undefined || right === undefined || left === right;
  }

  return {
    claim(wanted) {
      const place = count(wanted);
      const index = place !== undefined && place < highestIndex && !items.has(place) ? place : next;
      next = Math.max(next, index + 1);
      return index;
    },
    add(growing, event) {
      items.set(growing.index, growing);
      latest = growing;
      const id = word(growing.raw["id"]) ?? word(event["item_id"]);
      if (id !== undefined) byId.set(id, growing);
      const place = count(event["output_index"]);
      if (place !== undefined) byPlace.set(place, growing);
    },
    find(event) {
      const id = word(event["item_id"]);
      const place = count(event["output_index"]);
      const there = place === undefined ? undefined : byPlace.get(place);
      if (there !== undefined && (id === undefined || there.raw["id"] === id)) return there;
      const named = id === undefined ? undefined : byId.get(id);
      return named ?? there ?? (id === undefined && place === undefined ? latest : undefined);
    },
    findSame(event, raw) {
      const place = count(event["output_index"]);
      const there = place === undefined ? undefined : byPlace.get(place);
      const id = word(raw["id"]);
      const named = id === undefined ? undefined : byId.get(id);
      if (there !== undefined && isSame(there, raw) && (there === named || !there.isDone)) return there;
      return named !== undefined &&
        isSame(named, raw) &&
        (place === undefined || there === undefined || there === named)
        ? named
        : undefined;
    },
    match(raw, place) {
      const id = word(raw["id"]);
      const named = id === undefined ? undefined : byId.get(id);
      if (named !== undefined && isSame(named, raw)) return named;
      // Only the end of a stream asks, when every call id is known.
      byCall ??= new Map(
        [...items.values()].flatMap((growing) =>
          callId(growing.raw) === undefined ? [] : [[callId(growing.raw)!, growing]],
        ),
      );
      const called = byCall.get(callId(raw) ?? "");
      if (called !== undefined) return called;
      const there = items.get(place);
      return there !== undefined && isSame(there, raw) ? there : undefined;
    },
    all: () => [...items.values()].sort((a, b) => a.index - b.index),
  };
}
