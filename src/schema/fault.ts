/**
 * What is wrong with a JSON Schema itself: a reference to nothing, a pattern that is not a regular
 * expression, a reference that leads back to itself without descending. Any of them would make a
 * validator throw, refuse everything or never end. Linear in the schema's size.
 */
import { isObject, type JsonObject } from "../base/json.ts";
import { findEndless, type Endless } from "./endless.ts";
import { withPlainReferences } from "./references.ts";
import { resolvePointer, subschemas } from "./subschema.ts";

export interface Fault {
  /** The keyword's place, as keys from the root. */
  readonly at: readonly string[];
  readonly what: string;
}

/** One schema inside the whole, with the way back up. */
interface Place {
  readonly node: Record<string, unknown>;
  readonly keys: readonly string[];
  readonly above: Place | undefined;
  readonly depth: number;
}

/** No real schema nests deeper, and a validator would run out of stack. */
const deepest = 200;
/** No real schema has so many parts. What lies beyond is not looked at. */
const mostPlaces = 20_000;

export interface FaultOptions {
  /** The schema comes from outside, so patterns that could take for ever on some text count as faults. */
  readonly foreign?: boolean;
}

/** The result of looking over a schema once. */
export interface Survey {
  readonly faults: readonly Fault[];
  /** Every schema inside it, itself included. */
  readonly nodes: readonly Readonly<Record<string, unknown>>[];
}

export function findFaults(root: JsonObject, options: FaultOptions = {}): readonly Fault[] {
  return isPlain(root) ? [] : surveySchema(withPlainReferences(root), options).faults;
}

/**
 * Whether nothing in it can be a fault: no reference, no pattern, no great depth. So are nearly all schemas of tools, and
 * each is asked about three times before a first request.
 */
function isPlain(root: JsonObject): boolean {
  let left = mostPlaces; // a schema may hold one object in many places, or itself
  const isPlainBelow = (value: unknown, depth: number): boolean => {
    if (typeof value !== "object" || value === null) return true;
    if (depth > deepest || left-- <= 0) return false;
    for (const key in value) {
      const inner = (value as Record<string, unknown>)[key]; // Lists have such keys too.
      if (faulty.has(key) && (key !== "pattern" || !isObject(inner))) return false;
      if (!isPlainBelow(inner, depth + 1)) return false;
    }
    return true;
  };
  return isPlainBelow(root, 0);
}

/** Keywords that can be faults, or change what a reference means. A property may be called `pattern` as well. */
const faulty: ReadonlySet<string> = new Set(["$ref", "$id", "$dynamicRef", "pattern", "patternProperties"]);

export function surveySchema(root: JsonObject, options: FaultOptions = {}): Survey {
  const { places, tooDeep } = collectPlaces(root);
  const nodes = [...places.keys()];
  const ids = new Set(nodes.map((node) => node["$id"]));
  const endless = findEndless(root, nodes);
  const faults: Fault[] = tooDeep.map((place) => ({ at: pathOf(place), what: "the schema nests too deep" }));
  for (const place of places.values()) {
    const found = refFault(root, place.node, ids, endless) ?? patternFault(place.node, options);
    if (found) faults.push({ at: [...pathOf(place), found.keyword], what: found.what });
  }
  return { faults, nodes };
}

function collectPlaces(root: JsonObject): {
  readonly places: ReadonlyMap<Record<string, unknown>, Place>;
  readonly tooDeep: readonly Place[];
} {
  const places = new Map<Record<string, unknown>, Place>();
  const tooDeep: Place[] = [];
  const stack: Place[] = [{ node: root, keys: [], above: undefined, depth: 0 }];
  for (let place = stack.pop(); place && places.size < mostPlaces; place = stack.pop()) {
    if (places.has(place.node)) continue;
    if (place.depth > deepest) {
      tooDeep.push(place);
      continue;
    }
    places.set(place.node, place);
    for (const { keys, schema } of subschemas(place.node))
      stack.push({ node: schema, keys, above: place, depth: place.depth + 1 });
  }
  return { places, tooDeep };
}

function pathOf(place: Place): readonly string[] {
  const parts: (readonly string[])[] = [];
  for (let at: Place | undefined = place; at; at = at.above) parts.push(at.keys);
  return parts.toReversed().flat();
}

/** The schema without its faulty keywords, so that the rest of it still counts. */
export function withoutFaults(root: JsonObject, faults: readonly Fault[]): JsonObject {
  if (faults.length === 0) return root;
  const copy: Record<string, unknown> = { ...root };
  const fresh = new Set<unknown>();
  for (const { at } of faults) dropAt(copy, at, fresh);
  return copy as JsonObject; // Keys were only removed, or a pattern compiled, which the validator takes as well.
}

/** Copies the objects on the way, each once. `fresh` holds the copies made so far. */
function dropAt(copy: Record<string, unknown>, at: readonly string[], fresh: Set<unknown>): void {
  let node: Record<string, unknown> = copy;
  for (const key of at.slice(0, -1)) {
    const child = node[key];
    if (typeof child !== "object" || child === null) return; // Something above it was dropped already.
    if (!fresh.has(child)) node[key] = Array.isArray(child) ? [...child] : { ...child };
    fresh.add(node[key]);
    node = node[key] as Record<string, unknown>; // Arrays are indexed by the same string keys.
  }
  const last = at.at(-1)!;
  // Without the u flag many real patterns do compile, and the validator accepts the expression itself.
  const loose = last === "pattern" && !explosive.test(String(node[last])) ? toRegExp(node[last], "") : undefined;
  if (loose) node[last] = loose;
  else if (Array.isArray(node)) node[Number(last)] = {};
  else delete node[last];
}

interface Found {
  readonly keyword: string;
  readonly what: string;
}

function refFault(
  root: JsonObject,
  node: Record<string, unknown>,
  ids: ReadonlySet<unknown>,
  endless: ReadonlyMap<unknown, Endless>,
): Found | undefined {
  const ref = node["$ref"];
  if (ref === undefined) return undefined;
  const fault = (what: string) => ({ keyword: "$ref", what });
  if (typeof ref !== "string") return fault("$ref is not text");
  // A reference by name is legal if something inside has that $id. The network is never used.
  if (!ref.startsWith("#"))
    return ids.size > 1 || ids.has(ref) ? undefined : fault(`$ref '${ref}' points outside the schema`);
  if (ref !== "#" && !ref.startsWith("#/")) return undefined; // An anchor: the validator's business.
  if (resolvePointer(root, ref) === undefined) return fault(`$ref '${ref}' points to nothing`);
  const reason = endless.get(node);
  return reason && fault(`$ref '${ref}' ${reason}`);
}

/** A repeated group that itself repeats, which is the form of every expression known to take exponential time. */
const explosive = /\((?:[^()\\]|\\.)*(?:[+*]|\{\d+,\d*\})(?:[^()\\]|\\.)*\)(?:[+*]|\{\d+,\d*\})/;

function patternFault(node: Record<string, unknown>, { foreign = false }: FaultOptions): Found | undefined {
  const pattern = node["pattern"];
  const keys = isObject(node["patternProperties"]) ? Object.keys(node["patternProperties"]) : [];
  const faultOf = (source: string) => {
    if (!toRegExp(source, "u")) return `'${source.slice(0, 80)}' is no regular expression`;
    return foreign && explosive.test(source) ? `'${source.slice(0, 80)}' could take for ever` : undefined;
  };
  const own = typeof pattern === "string" ? faultOf(pattern) : undefined;
  if (own !== undefined) return { keyword: "pattern", what: `pattern ${own}` };
  const other = keys.map(faultOf).find((what) => what !== undefined);
  return other === undefined ? undefined : { keyword: "patternProperties", what: `patternProperties key ${other}` };
}

function toRegExp(pattern: unknown, flags: string): RegExp | undefined {
  try {
    return new RegExp(String(pattern), flags);
  } catch {
    return undefined; // The question was whether it compiles.
  }
}
