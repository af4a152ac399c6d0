/** One look over parsed arguments before anything recursive touches them. Uses its own stack. */
export interface Inspection {
  readonly depth: number;
  readonly hasNull: boolean;
  /** Objects that carry `__proto__` as a key of their own: JSON allows it, most code does not expect it. */
  readonly poisoned: readonly object[];
}

/** No real argument nests deeper; recursive code, the JSON writer among it, breaks at some thousands. */
export const deepestInput = 1000;

export function inspect(value: unknown): Inspection {
  let depth = 0;
  let hasNull = value === null;
  const poisoned: object[] = [];
  let level: object[] = typeof value === "object" && value !== null ? [value] : [];
  while (level.length > 0 && depth <= deepestInput) {
    depth++;
    const below: object[] = [];
    for (const node of level) {
      if (!Array.isArray(node) && Object.hasOwn(node, "__proto__")) poisoned.push(node);
      for (const child of Object.values(node)) {
        if (typeof child !== "object") continue;
        if (child === null) hasNull = true;
        else below.push(child as object);
      }
    }
    level = below;
  }
  return { depth, hasNull, poisoned };
}
