/**
 * Converts text to the types that a schema asks for, for wires without types (XML, text dialects).
 * Only a text that reads completely as that type is changed, and each change is noted. The rest is
 * left to the validator.
 */
import { isObject } from "../base/json.ts";
import { toPath } from "./explain.ts";
import { follow } from "./subschema.ts";

export function coerce(value: unknown, schema: unknown, notes: string[]): unknown {
  return walk(value, schema, { root: schema, notes }, []);
}

interface Walk {
  readonly root: unknown;
  readonly notes: string[];
}

type Key = string | number;

function walk(value: unknown, schema: unknown, at: Walk, path: readonly Key[]): unknown {
  const node = follow(at.root, schema);
  const changed = convert(value, node, at, path);
  if (Array.isArray(changed)) return mapItems(changed, node, at, path);
  return isObject(changed) ? mapProperties(changed, node, at, path) : changed;
}

function mapItems(list: readonly unknown[], node: Record<string, unknown>, at: Walk, path: readonly Key[]): unknown {
  const items = branchWith(node, "items", at.root)?.["items"];
  return isObject(items) ? list.map((item, index) => walk(item, items, at, [...path, index])) : list;
}

function mapProperties(
  object: Record<string, unknown>,
  node: Record<string, unknown>,
  at: Walk,
  path: readonly Key[],
): unknown {
  const holder = branchWith(node, "properties", at.root) ?? node;
  const properties = isObject(holder["properties"]) ? holder["properties"] : {};
  const others = isObject(holder["additionalProperties"]) ? holder["additionalProperties"] : undefined;
  return Object.fromEntries(
    Object.entries(object).map(([key, inner]) => {
      const schema = Object.hasOwn(properties, key) ? properties[key] : others;
      return [key, schema === undefined ? inner : walk(inner, schema, at, [...path, key])];
    }),
  );
}

/** The node itself, or the one branch of its union that has the keyword. */
function branchWith(
  node: Record<string, unknown>,
  keyword: string,
  root: unknown,
): Record<string, unknown> | undefined {
  if (Object.hasOwn(node, keyword)) return node;
  const branches = unionOf(node)
    .map((branch) => follow(root, branch))
    .filter((branch) => Object.hasOwn(branch, keyword));
  return branches.length === 1 ? branches[0] : undefined;
}

function unionOf(node: Record<string, unknown>): readonly unknown[] {
  return ["anyOf", "oneOf", "allOf"].flatMap((keyword) =>
    Array.isArray(node[keyword]) ? (node[keyword] as unknown[]) : [],
  );
}

function convert(value: unknown, node: Record<string, unknown>, at: Walk, path: readonly Key[]): unknown {
  const types = typesOf(node, at.root, 0);
  if (types.size === 0) return value;
  const note = (result: unknown, type: string) => {
    at.notes.push(`${toPath(path) || "the arguments"}: ${typeof value} read as ${type}`);
    return result;
  };
  if (typeof value === "string") {
    if (types.has("string")) return value;
    for (const [type, read] of readers) {
      const result = types.has(type) ? read(value) : undefined;
      if (result) return note(result.value, type);
    }
    return types.has("array") ? note([value], "array of one") : value;
  }
  if (
    (typeof value === "number" || typeof value === "boolean") &&
    types.has("string") &&
    !types.has(typeof value) &&
    !types.has("integer")
  ) {
    return note(String(value), "string");
  }
  return value;
}

type Reader = (text: string) => { readonly value: unknown } | undefined;

/** A longer text is not a number that anybody meant, and the pattern would take quadratic time on it. */
const maxNumber = 400;

/** In the order in which they are tried. Each takes the whole text or nothing. */
const readers: readonly (readonly [string, Reader])[] = [
  ["integer", (text) => (/^\s*[+-]?\d{1,15}\s*$/.test(text) ? { value: Number(text) } : undefined)],
  [
    "number",
    (text) =>
      text.length <= maxNumber && /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$/.test(text)
        ? { value: Number(text) }
        : undefined,
  ],
  ["boolean", readBoolean],
  ["null", (text) => (/^(?:null|none|)$/i.test(text.trim()) ? { value: null } : undefined)],
  ["array", (text) => readJson(text, Array.isArray)],
  ["object", (text) => readJson(text, isObject)],
];

function readBoolean(text: string): { readonly value: boolean } | undefined {
  const word = text.trim().toLowerCase();
  return word === "true" || word === "false" ? { value: word === "true" } : undefined;
}

function readJson(text: string, fits: (value: unknown) => boolean): { readonly value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return fits(value) ? { value } : undefined;
  } catch {
    return undefined; // Not JSON: the validator says what was expected.
  }
}

/** The JSON types that a schema accepts. Empty if it does not say. */
export function typesOf(node: Record<string, unknown>, root: unknown, depth: number): ReadonlySet<string> {
  const type = node["type"];
  if (typeof type === "string") return new Set([type]);
  if (Array.isArray(type)) return new Set(type.filter((name) => typeof name === "string"));
  const values = Array.isArray(node["enum"])
    ? node["enum"]
    : Object.hasOwn(node, "const")
      ? [node["const"]]
      : undefined;
  if (values) return new Set(values.map(jsonType));
  if (isObject(node["properties"])) return new Set(["object"]);
  if (Object.hasOwn(node, "items")) return new Set(["array"]);
  if (depth > 8) return new Set();
  const branches = unionOf(node).map((branch) => typesOf(follow(root, branch), root, depth + 1));
  return branches.some((branch) => branch.size === 0) ? new Set() : new Set(branches.flatMap((branch) => [...branch]));
}

function jsonType(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
