/**
 * A limit to the work of one check. A stranger's schema may double with each level of a value, or hold
 * thousands of alternatives against thousands of items, and no validator knows when to stop. So such
 * schemas are shown to it through a counter: whoever reads too much of one is stopped.
 */
import type { JsonObject } from "../base/json.ts";
import { subschemas } from "./subschema.ts";

export interface Metered {
  /** The same schema; reading it costs. */
  readonly schema: JsonObject;
  /** Begins a check of this value. Throws where even its size is too much. */
  begin(value: unknown): void;
}

/** Thrown out of the validator when a check has cost too much. */
export class TooMuchWork extends Error {
  override readonly name = "TooMuchWork";
  constructor() {
    super("it would take too long");
  }
}

/** Reads of one check: a second or two. Real ones need some thousands. */
const mostReads = 2_000_000;
/** More for values that are large themselves. */
const readsPerNode = 200;
/** Keys of one object times the names its schema declares: validators may hold each against each. */
const mostPairs = 10_000_000;

/** Schemas with fewer parts and no references cost no more than their value is large. */
const plainNodes = 500;

/** Undefined for schemas that need no watching. */
export function createMeter(schema: JsonObject): Metered | undefined {
  const declared = measure(schema);
  if (declared === undefined) return undefined;
  let left = 0;
  // A copy, because a frozen schema cannot be shown through anything.
  const shown = watch(structuredClone(schema), () => {
    if (left-- <= 0) throw new TooMuchWork();
  });
  return {
    schema: shown,
    begin(value) {
      const { nodes, widest } = sizeOf(value);
      if (widest * declared > mostPairs) throw new TooMuchWork();
      left = mostReads + nodes * readsPerNode;
    },
  };
}

/** The most names one object declares; undefined for a small schema without references. */
function measure(root: JsonObject): number | undefined {
  const seen = new Set<unknown>();
  let widest = 0;
  let hasReference = false;
  const stack: Record<string, unknown>[] = [root];
  for (let node = stack.pop(); node; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    hasReference ||= "$ref" in node || "$dynamicRef" in node || "$recursiveRef" in node;
    for (const keyword of ["properties", "patternProperties"])
      widest = Math.max(widest, Object.keys(node[keyword] ?? {}).length);
    for (const { schema } of subschemas(node)) stack.push(schema);
  }
  return hasReference || seen.size > plainNodes ? widest : undefined;
}

/** Everything below comes out watched as well, the same thing each time. */
function watch<T extends object>(root: T, read: () => void): T {
  const watched = new WeakMap<object, object>();
  const show = (node: object): object => {
    let shown = watched.get(node);
    if (!shown) watched.set(node, (shown = new Proxy(node, { get })));
    return shown;
  };
  const get = (node: object, key: PropertyKey): unknown => {
    read();
    const value: unknown = Reflect.get(node, key);
    return isPlain(value) ? show(value) : value;
  };
  return show(root) as T; // what it shows has the same fields
}

/** Lists and objects of JSON; a compiled pattern works only as itself. */
function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && !(value instanceof RegExp);
}

function sizeOf(value: unknown): { readonly nodes: number; readonly widest: number } {
  let nodes = 0;
  let widest = 0;
  const stack: unknown[] = [value];
  while (stack.length > 0) {
    const node = stack.pop();
    nodes++;
    if (typeof node !== "object" || node === null) continue;
    const children: readonly unknown[] = Object.values(node);
    if (!Array.isArray(node)) widest = Math.max(widest, children.length);
    for (const child of children) stack.push(child);
  }
  return { nodes, widest };
}
