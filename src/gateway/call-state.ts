/**
 * Repairs what a client may lose between its requests: call ids that an upstream uses again, and the
 * sealed thoughts before a call if the client's API has no place for them.
 */
import { isObject, type Json } from "../base/json.ts";
import type { CallItem, Item, ModelEvent, ModelRequest, ReasoningItem } from "../spec/model.ts";
import type { WireName } from "../wire/codec.ts";
import { putThoughts } from "../wire/envelope.ts";
import { legalId } from "../wire/ids.ts";
import { digest } from "./clients.ts";
import { sameJson } from "./conversations.ts";
import type { StateStore } from "./state.ts";

/**
 * Gives a new id to a call whose id was used before in this conversation. Some servers number their
 * calls from the start in each answer. Agents then overwrite one result with another and ask again
 * without end.
 */
export function createIdKeeper(request: ModelRequest, wire: WireName): (event: ModelEvent) => ModelEvent {
  // Anthropic's and OpenAI's own clients refuse other characters and longer ids. Chat clients give back whatever they
  // got.
  const rule = { max: 64, anyCharacter: wire === "chat" || wire === "gemini" };
  const used = new Set(request.input.flatMap((item) => (item.type === "call" ? [item.id] : [])));
  const given = new Map<number, string>();
  const idFor = (index: number, said: string): string => {
    const known = given.get(index);
    if (known !== undefined) return known;
    const id = legalId(said, rule);
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

interface CallState {
  readonly thoughts: readonly ReasoningItem[];
  /** The model wrote text between its thoughts and the call. */
  readonly spoke?: boolean;
  readonly caller?: CallItem["caller"];
  readonly extra?: CallItem["extra"];
}

/** Remembers the thoughts before each call, for a client that will send the call back without them. */
export function keepThoughts(items: readonly Item[], conversation: string, state: StateStore): void {
  let thoughts: ReasoningItem[] = [];
  let spoke = false;
  for (const item of items) {
    if (item.type === "message") spoke = thoughts.length > 0;
    if (item.type === "reasoning" && (item.opaque ?? item.text ?? item.extra) !== undefined) thoughts.push(item);
    if (item.type !== "call") continue;
    const { caller, extra } = item;
    if (thoughts.length === 0 && caller === undefined && extra === undefined) continue;
    // Items contain nothing but JSON.
    state.put(keyOf(conversation, item), structuredClone({ thoughts, spoke, caller, extra }) as unknown as Json);
    thoughts = [];
    spoke = false;
  }
}

/**
 * Puts those thoughts back before their calls. What the client itself sent of them is their text
 * without their state.
 */
export function restoreThoughts(request: ModelRequest, conversation: string, state: StateStore): ModelRequest {
  const input: Item[] = [];
  let turn: Item[] = [];
  let changed = false;
  const endTurn = () => {
    const kept = turn.map((item) =>
      item.type === "call" ? readState(state.get(keyOf(conversation, item))) : undefined,
    );
    const isKnown = kept.some((one) => (one?.thoughts.length ?? 0) > 0);
    const hasState = turn.some((item) => item.type === "reasoning" && item.opaque !== undefined);
    changed ||= kept.some((one) => one !== undefined);
    turn.forEach((item, index) => {
      const known = kept[index];
      if (item.type === "reasoning" && isKnown && !hasState) return;
      if (known === undefined) return void input.push(item);
      const { thoughts, spoke, ...rest } = known;
      if (!hasState) putThoughts(input, thoughts, spoke === true);
      input.push({ ...rest, ...item } as Item);
    });
    turn = [];
  };
  for (const item of request.input) {
    const isAnswer =
      item.type === "reasoning" || item.type === "call" || (item.type === "message" && item.role === "assistant");
    if (isAnswer) turn.push(item);
    else {
      endTurn();
      input.push(item);
    }
  }
  endTurn();
  return changed ? { ...request, input } : request;
}

/** What `keepThoughts` wrote. Entries of earlier versions held one thought. */
function readState(value: Json | undefined): CallState | undefined {
  if (!isObject(value) || !Array.isArray(value["thoughts"])) return undefined;
  return value as unknown as CallState;
}

/** An id alone is not enough, because some servers number their calls from the start in each answer. */
function keyOf(conversation: string, { id, name, arguments: args }: CallItem): string {
  return `call ${conversation} ${id} ${digest([name, sameJson(args)])}`;
}
