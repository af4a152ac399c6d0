/**
 * Clients send the same tools with every request, and translating them is most of a request's work. A
 * list that was seen before becomes the same object again, so that everything derived from it is
 * reused.
 */
import { isObject } from "../base/json.ts";
import type { ToolSpec } from "../spec/model.ts";
import type { WireName } from "../wire/codec.ts";

export type ToolCache = (wire: WireName, raw: unknown, read: () => readonly ToolSpec[]) => readonly ToolSpec[];

interface KnownList {
  readonly wire: WireName;
  readonly raw: unknown;
  readonly tools: readonly ToolSpec[];
}

const maxLists = 64;

export function createToolCache(): ToolCache {
  /** The lists that were used last, the latest one first. */
  const known: KnownList[] = [];
  return (wire, raw, read) => {
    // Compared instead of written as text, because a list may have a hundred kilobytes and most differ early.
    const at = known.findIndex((list) => list.wire === wire && isSame(list.raw, raw));
    const [list = { wire, raw, tools: read() }] = at < 0 ? [] : known.splice(at, 1);
    known.unshift(list);
    if (known.length > maxLists) known.pop();
    return list.tools;
  };
}

/** Both are JSON, in the same order of fields. */
function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((value, index) => isSame(value, b[index]));
  if (!isObject(a) || !isObject(b)) return a === b;
  const names = Object.keys(a);
  const others = Object.keys(b);
  return names.length === others.length && names.every((name, at) => name === others[at] && isSame(a[name], b[name]));
}
