/** The one list of where schemas are inside a schema, and what a local reference points to. */
import { isObject } from "../base/json.ts";

/** Keywords whose value is a map from names to schemas. */
const schemaMaps = [
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
] as const;
/** Keywords whose value is a list of schemas. */
const schemaLists = ["anyOf", "oneOf", "allOf", "prefixItems", "items"] as const;
/** Keywords whose value is one schema. */
const schemaOnes = [
  "items",
  "additionalProperties",
  "additionalItems",
  "propertyNames",
  "contains",
  "not",
  "if",
  "then",
  "else",
  "unevaluatedItems",
  "unevaluatedProperties",
] as const;

const holders: ReadonlySet<string> = new Set([...schemaMaps, ...schemaLists, ...schemaOnes]);

export interface Subschema {
  readonly keys: readonly string[];
  readonly schema: Record<string, unknown>;
}

/** The schemas one step below. Boolean schemas and other values are left out. */
export function subschemas(node: Record<string, unknown>): readonly Subschema[] {
  // Most schemas are leaves, and each is looked at several times before a first request.
  if (!Object.keys(node).some((keyword) => holders.has(keyword))) return [];
  const found: Subschema[] = [];
  const add = (keys: readonly string[], schema: unknown) => {
    if (isObject(schema)) found.push({ keys, schema });
  };
  for (const keyword of schemaMaps) {
    const map = node[keyword];
    if (isObject(map)) for (const name of Object.keys(map)) add([keyword, name], map[name]);
  }
  for (const keyword of schemaLists) {
    const list = node[keyword];
    if (Array.isArray(list)) list.forEach((schema, index) => add([keyword, String(index)], schema));
  }
  for (const keyword of schemaOnes) add([keyword], node[keyword]);
  return found;
}

/** What `#/a/b` points to, or undefined. Only own keys count. */
export function resolvePointer(root: unknown, ref: string): unknown {
  if (ref === "#" || ref === "#/") return root;
  if (!ref.startsWith("#/")) return undefined;
  let node: unknown = root;
  for (const raw of ref.slice(2).split("/")) {
    const key = decodeSegment(raw);
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, key)) return undefined;
    node = (node as Record<string, unknown>)[key];
  }
  return node;
}

function decodeSegment(segment: string): string {
  return decodePercent(segment).replaceAll("~1", "/").replaceAll("~0", "~");
}

function decodePercent(segment: string): string {
  try {
    return segment.includes("%") ? decodeURIComponent(segment) : segment;
  } catch {
    return segment; // A stray % is taken as it stands.
  }
}

/** The schema behind a chain of local references. `{}` if there is none, or the chain is a circle. */
export function follow(root: unknown, schema: unknown): Record<string, unknown> {
  let node = schema;
  for (let hops = 0; hops < 32 && isObject(node) && typeof node["$ref"] === "string"; hops++)
    node = resolvePointer(root, node["$ref"]);
  return isObject(node) && typeof node["$ref"] !== "string" ? node : {};
}
