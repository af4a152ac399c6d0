/**
 * Limits the work of one check. A foreign schema may double with each level of a value, or check
 * thousands of alternatives against thousands of items, and no validator knows when to stop. So a
 * validator reads such a schema through a counter, and is stopped when it has read too much.
 */
import { isObject, type JsonObject } from "../base/json.ts";

export interface Metered {
  /** The same schema, but reading it is counted. */
  readonly schema: JsonObject;
  /** Begins a check of this value. Throws if even its size is too much. */
  begin(value: unknown): void;
}

/** Thrown out of the validator when a check has cost too much. */
export class TooMuchWork extends Error {
  override readonly name = "TooMuchWork";
  constructor() {
    super("it would take too long");
  }
}

/** How many reads one check may make, which takes a second or two. Real ones need some thousands. */
const mostReads = 2_000_000;
/** More for values that are large themselves. */
const readsPerNode = 200;
/** Keys of one object times the names that its schema declares, because validators may compare each with each. */
const mostPairs = 10_000_000;

/** Schemas with fewer parts and no references cost no more than the size of their value. */
const plainNodes = 500;

type Nodes = readonly Readonly<Record<string, unknown>>[];

/** `nodes` are the schemas inside the schema. Undefined if nothing needs watching. */
export function createMeter(schema: JsonObject, nodes: Nodes): Metered | undefined {
  if (!isDemanding(nodes)) return undefined;
  const declared = mostDeclared(nodes);
  let left = 0;
  // A copy, because a proxy cannot change what a frozen schema returns.
  const shown = watch(structuredClone(schema), () => {
    if (left-- <= 0) throw new TooMuchWork();
  });
  return {
    schema: shown,
    begin(value) {
      const size = sizeOf(value);
      if (size.widest * declared > mostPairs) throw new TooMuchWork();
      left = mostReads + size.nodes * readsPerNode;
    },
  };
}

/** A large schema, or one with references. */
function isDemanding(nodes: Nodes): boolean {
  if (nodes.length > plainNodes) return true;
  return nodes.some((node) => "$ref" in node || "$dynamicRef" in node || "$recursiveRef" in node);
}

/** The most names one object declares. */
function mostDeclared(nodes: Nodes): number {
  let most = 0;
  for (const node of nodes) most = Math.max(most, keysOf(node["properties"]), keysOf(node["patternProperties"]));
  return most;
}

function keysOf(value: unknown): number {
  return isObject(value) ? Object.keys(value).length : 0;
}

/** Everything below is watched as well, and each object gives the same proxy each time. */
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

/** Lists and objects of JSON. A compiled pattern works only as itself. */
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
