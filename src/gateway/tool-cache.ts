/**
 * Clients send the same tools with every request, and translating them is most of a request's work. A list that was
 * seen before is the same object again, so that everything that was worked out for it is still known.
 */
import type { ToolSpec } from "../spec/model.ts";

export type ToolCache = (raw: unknown, read: () => readonly ToolSpec[]) => readonly ToolSpec[];

const maxLists = 64;

export function createToolCache(): ToolCache {
  const known = new Map<string, readonly ToolSpec[]>();
  return (raw, read) => {
    const key = JSON.stringify(raw) ?? "";
    const list = known.get(key) ?? read();
    known.delete(key);
    known.set(key, list);
    for (const oldest of known.keys()) {
      if (known.size <= maxLists) break;
      known.delete(oldest);
    }
    return list;
  };
}
