/**
 * State of one wire, carried by a client of another. Clients give back a provider's opaque strings
 * untouched, so a gateway that stores nothing finds the state again in the next request. What we put
 * into such a string is plain base64 (some clients drop anything else) and can be signed, so that no
 * client can forge it.
 */
import type { CallItem, Extra, Item, ReasoningItem } from "../spec/model.ts";
import { isObject } from "../base/json.ts";
import { array, json, jsonObject, object, objects, parseObject, string } from "./raw.ts";

/** A keyed hash of a text (HMAC), as text. The gateway has the key; this folder has no cryptography. */
export type Sign = (text: string) => string;

export interface Opaque {
  readonly wire: string;
  readonly kind: string;
  readonly value: string;
}

/** "callgate1" in base64: nine bytes, so that what follows is base64 as well. */
const mark = "Y2FsbGdhdGUx";
/** The beginning of strings that 0.1 sealed. */
const oldMark = "callgate1.";

/** Our own state, which belongs to no provider. */
const ours = "callgate";

interface Sealed extends Opaque {
  /** The text of the thought, for clients that give back only its state. */
  readonly text?: string | undefined;
}

function seal({ wire, kind, value, text }: Sealed, sign: Sign | undefined): string {
  const held = JSON.stringify(text === undefined ? [wire, kind, value] : [wire, kind, value, text]);
  return mark + textToBase64(sign === undefined ? held : JSON.stringify([held, sign(held)]));
}

function isSealed(value: string): boolean {
  return value.startsWith(mark) || value.startsWith(oldMark);
}

/** Undefined for a string that a client changed, or that was sealed with another key. */
function unseal(value: string, sign: Sign | undefined): Sealed | undefined {
  const isOld = value.startsWith(oldMark);
  const words = base64ToText(value.slice(isOld ? oldMark.length : mark.length));
  let list = parseList(words);
  const inner = list.length === 2 ? string(list[0]) : undefined;
  if (inner !== undefined) {
    if (sign !== undefined && sign(inner) !== list[1]) return undefined;
    list = parseList(inner);
  } else if (sign !== undefined) return undefined;
  const [wire, kind, held, text] = list.map(string);
  return wire === undefined || kind === undefined || held === undefined ? undefined : { wire, kind, value: held, text };
}

function parseList(text: string | undefined): readonly unknown[] {
  return text === undefined ? [] : array(parseObject(`{"list":${text}}`)?.["list"]);
}

/** The string for a wire's opaque field: its own value as it is, and another wire's value sealed. */
export function carry(opaque: Opaque | undefined, wire: string, sign?: Sign): string | undefined {
  if (opaque === undefined) return undefined;
  return opaque.wire === wire ? opaque.value : seal(opaque, sign);
}

/** The reverse of `carry`. A sealed string that is no longer valid is ignored. */
export function uncarry(value: string | undefined, wire: string, kind: string, sign?: Sign): Opaque | undefined {
  if (value === undefined || value === "") return undefined;
  if (!isSealed(value)) return { wire, kind, value };
  const opened = unseal(value, sign);
  return opened === undefined ? undefined : { wire: opened.wire, kind: opened.kind, value: opened.value };
}

/**
 * The opaque string of a thought for a client. A thought always has one, because clients show an
 * unsigned thought as text in their next request, or drop it. `text` is added for clients that give
 * back only the string.
 */
export function carryThought(item: ReasoningItem, wire: string, sign: Sign | undefined, text?: string): string {
  if (item.opaque?.wire === wire) return item.opaque.value;
  return seal({ ...(item.opaque ?? { wire: ours, kind: "thought", value: "" }), text }, sign);
}

/** The reverse of `carryThought`: the provider's state, and the text that travelled with it. */
export function uncarryThought(
  value: string | undefined,
  wire: string,
  kind: string,
  sign: Sign | undefined,
): { readonly opaque?: Opaque; readonly text?: string } {
  if (value === undefined || value === "") return {};
  if (!isSealed(value)) return { opaque: { wire, kind, value } };
  const opened = unseal(value, sign);
  if (opened === undefined) return {};
  const words = opened.text === undefined ? {} : { text: opened.text };
  return opened.wire === ours
    ? words
    : { opaque: { wire: opened.wire, kind: opened.kind, value: opened.value }, ...words };
}

const callKind = "call ";

/**
 * What another wire attached to a call and wants back with it (Gemini's thought signature), as a
 * separate thought before the call. Clients of Responses and Messages echo opaque thoughts, but drop
 * unknown fields of a call.
 */
export function withCarrier(item: Item, wire: string): readonly Item[] {
  if (item.type !== "call" || item.extra === undefined || item.extra.wire === wire) return [item];
  const opaque = { wire: item.extra.wire, kind: callKind + item.id, value: JSON.stringify(item.extra.fields) };
  return [{ type: "reasoning", opaque }, item];
}

/** The reverse of `withCarrier`, for what a client sent. */
export function unpackCarriers(items: readonly Item[]): readonly Item[] {
  const extras = new Map<string, Extra>();
  const rest = items.filter((item) => {
    if (item.type !== "reasoning" || item.opaque === undefined || !item.opaque.kind.startsWith(callKind)) return true;
    const fields = parseObject(item.opaque.value);
    if (fields !== undefined)
      extras.set(item.opaque.kind.slice(callKind.length), { wire: item.opaque.wire, fields: jsonObject(fields) });
    return false;
  });
  if (extras.size === 0) return rest;
  return rest.map((item) => {
    const extra = item.type === "call" && item.extra === undefined ? extras.get(item.id) : undefined;
    return item.type === "call" && extra !== undefined ? { ...item, extra } : item;
  });
}

/**
 * Seals the thoughts before a call and the call's own state in one string, for clients that give back nothing but a
 * call's signature (Chat and Gemini). Of the items in `before`, the texts are not sealed, but only whether there was
 * text after a thought. Undefined if this wire carries all of that by itself.
 */
export function sealTurn(
  before: readonly Item[],
  call: CallItem,
  wire: string,
  sign: Sign | undefined,
): string | undefined {
  const extra = call.extra?.wire === wire ? undefined : call.extra;
  const thoughts = before.filter(({ type }) => type === "reasoning");
  if (thoughts.length === 0 && extra === undefined) return undefined;
  const isSpoken = thoughts.length > 0 && before.at(-1)?.type === "message";
  const spoke = isSpoken ? { spoke: true } : {};
  return seal({ wire: ours, kind: "turn", value: JSON.stringify({ thoughts, extra, ...spoke }) }, sign);
}

/**
 * The items of one turn as a client sent them, with the thoughts that its calls carried put back where they stood.
 * `stateOf` finds the string of `sealTurn` in a call; thoughts that the client sent besides are the same ones, unsigned.
 */
export function openTurn(
  items: readonly Item[],
  stateOf: (call: CallItem) => string | undefined,
  sign: Sign | undefined,
): readonly Item[] {
  let hasThoughts = false;
  const opened: Item[] = [];
  for (const item of items) {
    const state = item.type === "call" ? stateOf(item) : undefined;
    if (item.type !== "call" || state === undefined || !isSealed(state)) {
      opened.push(item);
      continue;
    }
    const { extra: _state, ...call } = item;
    const turn = unseal(state, sign);
    if (turn?.wire !== ours || turn.kind !== "turn") {
      opened.push(call);
      continue;
    }
    const held = object(parseObject(turn.value));
    const thoughts = objects(held["thoughts"]).filter((one) => one["type"] === "reasoning");
    hasThoughts ||= thoughts.length > 0;
    const extra = held["extra"];
    // We wrote both ourselves, from values of these types.
    putThoughts(opened, json(thoughts) as unknown as readonly ReasoningItem[], held["spoke"] === true);
    opened.push(isObject(extra) ? { ...call, extra: extra as unknown as Extra } : call);
  }
  if (!hasThoughts) return opened;
  return opened.filter((item) => item.type !== "reasoning" || item.opaque !== undefined || !items.includes(item));
}

/** Puts thoughts at the end of a turn, or before the words at its end: providers want them where they stood. */
export function putThoughts(turn: Item[], thoughts: readonly ReasoningItem[], spoke: boolean): void {
  const isWords = (item: Item) => item.type === "message" && item.role === "assistant";
  turn.splice(spoke ? turn.findLastIndex((item) => !isWords(item)) + 1 : turn.length, 0, ...thoughts);
}

/** Text as base64 and back, by UTF-8, without Node. */
export function textToBase64(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Undefined if it is not base64. */
export function base64ToText(data: string): string | undefined {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(data), (character) => character.charCodeAt(0)));
  } catch {
    // It was changed on the way, or was never base64.
    return undefined;
  }
}
