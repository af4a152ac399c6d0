/**
 * One wire's opaque state inside another's. Clients give back a provider's opaque strings untouched, so a
 * gateway that has nothing to remember finds the state again in the next request.
 */
import { base64ToText, textToBase64 } from "./base64.ts";
import type { Extra, Item } from "../spec/model.ts";
import { jsonObject, parseObject, string } from "./raw.ts";

export interface Opaque {
  readonly wire: string;
  readonly kind: string;
  readonly value: string;
}

const mark = "callgate1.";

function seal(opaque: Opaque): string {
  return mark + textToBase64(JSON.stringify([opaque.wire, opaque.kind, opaque.value]));
}

/** What we sealed, or undefined for a string that is the provider's own or that a client changed. */
function unseal(value: string): Opaque | undefined {
  if (!value.startsWith(mark)) return undefined;
  const text = base64ToText(value.slice(mark.length));
  const held = text === undefined ? undefined : parseObject(`{"held":${text}}`)?.["held"];
  const [wire, kind, inner] = Array.isArray(held) ? held.map(string) : [];
  return wire !== undefined && kind !== undefined && inner !== undefined ? { wire, kind, value: inner } : undefined;
}

/** The string for a wire's opaque field: its own value as it is, another's sealed. */
export function carry(opaque: Opaque | undefined, wire: string): string | undefined {
  if (opaque === undefined) return undefined;
  return opaque.wire === wire ? opaque.value : seal(opaque);
}

/** The way back of `carry`. */
export function uncarry(value: string | undefined, wire: string, kind: string): Opaque | undefined {
  if (value === undefined || value === "") return undefined;
  return unseal(value) ?? { wire, kind, value };
}

const callKind = "call ";

/**
 * What another wire said of a call and wants back with it (Gemini's thought signature), as a thought of its own
 * before the call: clients echo opaque thoughts, and drop fields of a call they do not know.
 */
export function withCarrier(item: Item, wire: string): readonly Item[] {
  if (item.type !== "call" || item.extra === undefined || item.extra.wire === wire) return [item];
  const opaque = { wire: item.extra.wire, kind: callKind + item.id, value: JSON.stringify(item.extra.fields) };
  return [{ type: "reasoning", opaque }, item];
}

/** The way back of `withCarrier`, for what a client sent. */
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
