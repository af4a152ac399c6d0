/**
 * Property names for providers that accept only `[A-Za-z0-9_.-]{1,64}`. The same name always gets the
 * same spelling.
 */
import { hash8 } from "../spec/name.ts";

/** The property that a scalar or array root is put into, for providers that accept only objects. */
export const wrappedRootKey = "value";

export function spellProperty(name: string): string {
  if (/^[A-Za-z0-9_.-]{1,64}$/.test(name)) return name;
  const plain = Array.from(name.slice(0, 200), (char) => (/[A-Za-z0-9_.-]/.test(char) ? char : "_")).join("");
  return `${plain.slice(0, 55)}_${hash8(name)}`;
}
