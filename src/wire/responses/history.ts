/** The pairing this API enforces: every call with its output, every output with its call. Items keep their order. */
import { text } from "../../base/content.ts";
import type { CallItem, Item, ResultItem } from "../../spec/model.ts";
import { noResult } from "../history.ts";

/**
 * `keepsState`: the server holds earlier items, so an output whose call is not here is no orphan. Ids that
 * come back in a later turn (some servers count from zero each time) are told apart by a suffix.
 */
export function pairCalls(items: readonly Item[], keepsState: boolean): readonly Item[] {
  const isReferring = keepsState || items.some(isReference);
  const times = new Map<string, number>();
  const waiting = new Map<string, string[]>();
  const kept: Item[] = [];
  for (const item of items) {
    if (item.type === "call") {
      const time = (times.get(item.id) ?? 0) + 1;
      times.set(item.id, time);
      const id = time === 1 ? item.id : `${item.id}_${time}`;
      waiting.set(item.id, [...(waiting.get(item.id) ?? []), id]);
      kept.push(id === item.id ? item : { ...item, id });
    } else if (item.type === "result") {
      const callId = waiting.get(item.callId)?.shift();
      if (callId !== undefined) kept.push(callId === item.callId ? item : { ...item, callId });
      else if (isReferring) kept.push(item);
    } else {
      kept.push(item);
    }
  }
  const unanswered = new Set([...waiting.values()].flat());
  return kept.flatMap((item) => (item.type === "call" && unanswered.has(item.id) ? [item, aborted(item)] : [item]));
}

function isReference(item: Item): boolean {
  return item.type === "other" && item.raw["type"] === "item_reference";
}

function aborted(call: CallItem): ResultItem {
  return { type: "result", callId: call.id, kind: call.kind, content: [text(noResult)], ok: false };
}
