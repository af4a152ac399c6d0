/**
 * Clients give back a provider's opaque strings untouched. So another wire's state can travel inside one,
 * and a gateway that has nothing to remember finds it again in the next request.
 */
import { base64ToText, textToBase64 } from "./base64.ts";
import { parseObject, string } from "./raw.ts";

export interface Opaque {
  readonly wire: string;
  readonly kind: string;
  readonly value: string;
}

const mark = "callgate1.";

export function seal(opaque: Opaque): string {
  return mark + textToBase64(JSON.stringify([opaque.wire, opaque.kind, opaque.value]));
}

/** What we sealed, or undefined for a string that is the provider's own or that a client changed. */
export function unseal(value: string): Opaque | undefined {
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
