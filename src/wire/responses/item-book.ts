/** The items of one stream, found by any of the names servers give them: item id, output index, call id. */
import { createPlaces } from "../places.ts";
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
  /** The items that the lines of the final output tell of again, line by line; undefined for a line that is news. */
  match(lines: readonly Raw[]): readonly (Growing | undefined)[];
  all(): readonly Growing[];
}

export function createItemBook(): ItemBook {
  const places = createPlaces();
  const items = new Map<number, Growing>();
  const byId = new Map<string, Growing>();
  const byPlace = new Map<number, Growing>();
  let latest: Growing | undefined;

  const named = (id: string | undefined) => (id === undefined ? undefined : byId.get(id));
  const placed = (place: number | undefined) => (place === undefined ? undefined : byPlace.get(place));

  return {
    claim: (wanted) => places.claim(count(wanted)),
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
      const there = placed(place);
      if (there !== undefined && (id === undefined || there.raw["id"] === id)) return there;
      return named(id) ?? there ?? (id === undefined && place === undefined ? latest : undefined);
    },
    findSame(event, raw) {
      const there = placed(count(event["output_index"]));
      const known = named(word(raw["id"]));
      const isAgain = there !== undefined && (there === known || !there.isDone || hasSameCall(there, raw));
      if (isAgain && isSame(there, raw)) return there;
      if (known === undefined || !isSame(known, raw)) return undefined;
      return there === undefined || there === known ? known : undefined;
    },
    match(lines) {
      // Only the end of a stream asks, when every call id is known.
      const byCall = indexByCall(items.values());
      const free = new Set(items.values());
      const take = (growing: Growing | undefined) =>
        growing !== undefined && free.delete(growing) ? growing : undefined;
      const found = lines.map((raw, place) =>
        take(
          [named(word(raw["id"])), byCall.get(callId(raw) ?? ""), items.get(place)].find(
            (growing) => growing !== undefined && free.has(growing) && isSame(growing, raw),
          ),
        ),
      );
      // Some servers (Copilot, vLLM) tell of an item under a new id each time, and leave others out at the end.
      return found.map((known, place) => known ?? take([...free].find((growing) => isAlike(growing, lines[place]!))));
    },
    all: () => [...items.values()].sort((a, b) => a.index - b.index),
  };
}

function callId(raw: Raw): string | undefined {
  return word(raw["call_id"]);
}

function isCall(raw: Raw): boolean {
  return callId(raw) !== undefined;
}

function hasSameCall(growing: Growing, raw: Raw): boolean {
  return isCall(raw) && callId(growing.raw) === callId(raw);
}

/** Two whole forms tell of one item unless a type or an id says otherwise. */
function isSame(growing: Growing, raw: Raw): boolean {
  if (growing.raw["type"] !== raw["type"]) return false;
  const [left, right] = [callId(growing.raw), callId(raw)];
  return left === undefined || right === undefined || left === right;
}

/** Of one kind, and for calls with the same words: another call may well be another call. */
function isAlike({ raw: known }: Growing, raw: Raw): boolean {
  if (known["type"] !== raw["type"]) return false;
  return !isCall(raw) || (known["name"] === raw["name"] && known["arguments"] === raw["arguments"]);
}

function indexByCall(items: Iterable<Growing>): ReadonlyMap<string, Growing> {
  const index = new Map<string, Growing>();
  for (const growing of items) {
    const id = callId(growing.raw);
    if (id !== undefined) index.set(id, growing);
  }
  return index;
}
