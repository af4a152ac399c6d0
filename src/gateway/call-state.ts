/**
 * Three things a client may lose on the way, mended between its requests: call ids that an upstream uses again, and
 * the sealed thoughts before a call where the client's API has no place for them.
 */
import { isObject, type Json } from "../base/json.ts";
import type { CallItem, Item, ModelEvent, ModelRequest, ReasoningItem } from "../spec/model.ts";
import type { StateStore } from "./state.ts";

/**
 * Gives a new id to a call whose id was used before in this conversation. Some servers number their calls anew in
 * each answer; agents then write one result over another and ask again without end.
 */
export function createIdKeeper(request: ModelRequest): (event: ModelEvent) => ModelEvent {
  const used = new Set(request.input.flatMap((item) => (item.type === "call" ? [item.id] : [])));
  const given = new Map<number, string>();
  const idFor = (index: number, id: string): string => {
    const known = given.get(index);
    if (known !== undefined) return known;
    let free = id;
    for (let copy = 2; used.has(free); copy++) free = `${id.slice(0, 56)}_${copy}`;
    used.add(free);
    given.set(index, free);
    return free;
  };
  return (event) => {
    if ((event.type !== "item.started" && event.type !== "item.done") || event.item.type !== "call") return event;
    return { ...event, item: { ...event.item, id: idFor(event.index, event.item.id) } };
  };
}

/** Remembers the thought before each call, for a client that will send the call back without it. */
export function keepThoughts(items: readonly Item[], conversation: string, state: StateStore): void {
  let thought: ReasoningItem | undefined;
  for (const item of items) {
    if (item.type === "reasoning") thought = item.opaque === undefined && item.text === undefined ? undefined : item;
    if (item.type !== "call") continue;
    const { caller, extra } = item;
    if (thought === undefined && caller === undefined && extra === undefined) continue;
    // Plain JSON by construction: items hold nothing else.
    state.put(keyOf(conversation, item.id), structuredClone({ thought, caller, extra }) as unknown as Json);
    thought = undefined;
  }
}

/** Puts those thoughts back before their calls, where the client sent none. */
export function restoreThoughts(request: ModelRequest, conversation: string, state: StateStore): ModelRequest {
  if (request.input.some((item) => item.type === "reasoning")) return request;
  let changed = false;
  const input = request.input.flatMap((item): readonly Item[] => {
    if (item.type !== "call") return [item];
    const kept = state.get(keyOf(conversation, item.id));
    if (!isObject(kept)) return [item];
    changed = true;
    // What keepThoughts wrote.
    const { thought, ...rest } = kept as { readonly thought?: ReasoningItem } & Partial<
      Pick<CallItem, "caller" | "extra">
    >;
    return [...(thought === undefined ? [] : [thought]), { ...rest, ...item }];
  });
  return changed ? { ...request, input } : request;
}

function keyOf(conversation: string, id: string): string {
  return `call ${conversation} ${id}`;
}
