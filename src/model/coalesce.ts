import type { ModelEvent } from "../spec/model.ts";

type Delta = Extract<ModelEvent, { type: "item.delta" }>;

/** Joins neighbouring deltas of one item that arrived together: a reader sees fewer, larger pieces, in the same order. */
export function coalesce(events: readonly ModelEvent[]): readonly ModelEvent[] {
  const joined: ModelEvent[] = [];
  let pieces: string[] = [];
  let open: Delta | undefined;
  const flush = () => {
    if (open) joined.push(pieces.length === 1 ? open : { ...open, delta: pieces.join("") });
    open = undefined;
    pieces = [];
  };
  for (const event of events) {
    if (event.type !== "item.delta") {
      flush();
      joined.push(event);
      continue;
    }
    if (open && (open.index !== event.index || open.field !== event.field || open.part !== event.part)) flush();
    open ??= event;
    pieces.push(event.delta);
  }
  flush();
  return joined;
}
