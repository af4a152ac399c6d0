/**
 * The history as wires with turns require it: each turn of the model is directly followed by one
 * result per call. It is one pure function for all of these wires, so that no abort, crash, compaction
 * or change of model can leave a history that a provider refuses.
 */
import { text, type Part } from "../base/content.ts";
import type {
  CallItem,
  Item,
  MessageItem,
  ModelRequest,
  OtherItem,
  ReasoningItem,
  ResultItem,
  ServerCallItem,
} from "../spec/model.ts";
import { repeatedId } from "./ids.ts";

/** What a model said in one turn, in its order. */
export type SaidItem = MessageItem | ReasoningItem | CallItem | ServerCallItem | OtherItem;

export type Turn =
  | { readonly role: "system"; readonly message: MessageItem }
  | { readonly role: "user"; readonly message: MessageItem }
  | {
      readonly role: "assistant";
      readonly items: readonly SaidItem[];
      /** One per call, in the order of the calls. */
      readonly results: readonly ResultItem[];
    }
  | { readonly role: "other"; readonly item: OtherItem };

export interface History {
  /** All leading instructions as one text. */
  readonly system: string | undefined;
  readonly turns: readonly Turn[];
}

export interface HistoryOptions {
  /** Items of other wires are left out. */
  readonly wire: string;
  /** Later system and developer messages stay what they are, instead of becoming marked user text. */
  readonly laterSystem?: boolean;
  /** Which of this wire's own items belong inside a model's turn. The others stand between turns. */
  readonly isSaid?: (item: OtherItem) => boolean;
}

/** What the model is told about a call that was never answered. */
export const noResult = "aborted: the call was interrupted before it gave a result";

export function prepareHistory(
  request: Pick<ModelRequest, "instructions" | "input">,
  options: HistoryOptions,
): History {
  // An item that only another wire understands means nothing here, and does not end the instructions around it.
  const input = request.input.filter((item) => item.type !== "other" || item.wire === options.wire);
  const lead = leadingSystem(input);
  const system = [request.instructions ?? "", ...lead.map((message) => wordsOf(message.content))].filter(
    (words) => words !== "",
  );
  const items = pairUp(input.slice(lead.length));
  return { system: system.length === 0 ? undefined : system.join("\n\n"), turns: toTurns(items, options) };
}

function leadingSystem(items: readonly Item[]): readonly MessageItem[] {
  const end = items.findIndex((item) => !isSystem(item));
  return (end === -1 ? items : items.slice(0, end)).filter((item) => item.type === "message");
}

function isSystem(item: Item): item is MessageItem {
  return item.type === "message" && (item.role === "system" || item.role === "developer");
}

interface PairedCall {
  readonly type: "paired";
  readonly call: CallItem;
  readonly result: ResultItem;
}

/** `answered` marks the place of a result. What the model says after it belongs to a new turn. */
type Paired = Exclude<Item, CallItem | ResultItem> | PairedCall | { readonly type: "answered" };

/**
 * Gives every call exactly one result: the first one that names it and was not taken by an earlier
 * call with the same id, or a synthetic one. Results without a call are dropped. Ids that appear again
 * in a later turn (some servers count from zero each time) are made different by a suffix.
 */
function pairUp(items: readonly Item[]): readonly Paired[] {
  const waiting = new Map<string, ResultItem[]>();
  for (const item of items) {
    if (item.type !== "result") continue;
    const queue = waiting.get(item.callId);
    if (queue === undefined) waiting.set(item.callId, [item]);
    else queue.push(item);
  }
  const times = new Map<string, number>();
  const taken = new Set(items.flatMap((item) => (item.type === "call" ? [item.id] : [])));
  return items.map((item): Paired => {
    if (item.type === "result") return { type: "answered" };
    if (item.type !== "call") return item;
    const time = (times.get(item.id) ?? 0) + 1;
    times.set(item.id, time);
    const result = waiting.get(item.id)?.[time - 1] ?? unanswered(item);
    if (time === 1) return { type: "paired", call: item, result };
    const id = repeatedId(item.id, time, taken);
    return { type: "paired", call: { ...item, id }, result: { ...result, callId: id } };
  });
}

function unanswered(call: CallItem): ResultItem {
  return { type: "result", callId: call.id, kind: call.kind, name: call.name, content: [text(noResult)], ok: false };
}

function toTurns(items: readonly Paired[], options: HistoryOptions): readonly Turn[] {
  const turns: Turn[] = [];
  let said: SaidItem[] = [];
  let results: ResultItem[] = [];
  const close = (): void => {
    if (said.length > 0) turns.push({ role: "assistant", items: said, results });
    said = [];
    results = [];
  };
  for (const item of items) {
    switch (item.type) {
      case "paired":
        said.push(item.call);
        results.push(item.result);
        break;
      case "answered":
        close();
        break;
      case "reasoning":
        said.push(item);
        break;
      case "server_call":
        if (item.wire === options.wire) said.push(item);
        break;
      case "compaction":
        close();
        if (item.text !== undefined && item.text !== "") turns.push({ role: "user", message: userText(item.text) });
        break;
      case "message":
        if (item.role === "assistant") {
          said.push(item);
          break;
        }
        close();
        turns.push(isSystem(item) ? laterSystem(item, options) : { role: "user", message: item });
        break;
      case "other":
        if (options.isSaid?.(item) === true) {
          said.push(item);
          break;
        }
        close();
        turns.push({ role: "other", item });
        break;
    }
  }
  close();
  return turns;
}

/**
 * Chat templates accept one system message, at the beginning. A later one becomes a user message that
 * is marked as such.
 */
function laterSystem(message: MessageItem, options: HistoryOptions): Turn {
  if (options.laterSystem === true) return { role: "system", message };
  return { role: "user", message: userText(`[${message.role} message]\n${wordsOf(message.content)}`) };
}

function userText(words: string): MessageItem {
  return { type: "message", role: "user", content: [text(words)] };
}

function wordsOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}
