/** The pairing this API enforces: every call with its output, every output with its call. Items keep their order. */
import { text } from "../../base/content.ts";
import type { CallItem, Item, ResultItem } from "../../spec/model.ts";
import { noResult } from "../history.ts";

/** `keepsState`: the server holds earlier items, so an output whose call is not here is no orphan. */
export function pairCalls(items: readonly Item[], keepsState: boolean): readonly Item[] {
  const isReferring =
    keepsState || items.some((item) => item.type === "other" && item.raw["type"] === "item_reference");
  const { matched, waiting } = match(items);
  return items
    .toReversed()
    .flatMap((item): readonly Item[] => {
      if (item.type === "result") return matched.has(item) || isReferring ? [item] : [];
      const left = item.type === "call" ? (waiting.get(item.id) ?? 0) : 0;
      if (item.type !== "call" || left === 0) return [item];
      waiting.set(item.id, left - 1);
      return [unanswered(item), item];
    })
    .toReversed();
}

/** Which outputs have their call before them, and how many of the last calls of an id have no output. */
function match(items: readonly Item[]): { matched: ReadonlySet<Item>; waiting: Map<string, number> } {
  const waiting = new Map<string, number>();
  const matched = new Set<Item>();
  for (const item of items) {
    if (item.type === "call") waiting.set(item.id, (waiting.get(item.id) ?? 0) + 1);
    if (item.type !== "result") continue;
    const open = waiting.get(item.callId) ?? 0;
    if (open === 0) continue;
    waiting.set(item.callId, open - 1);
    matched.add(item);
  }
  return { matched, waiting };
}

function unanswered(call: CallItem): ResultItem {
  return { type: "result", callId: call.id, kind: call.kind, content: [text(noResult)], ok: false };
}
