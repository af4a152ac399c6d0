/**
 * Fits a lowered schema into a size: descriptions are cut first, and then what lies deep. Every cut is
 * listed. A schema that cannot be made small enough is reported as too large, and not changed further.
 */
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { TargetRules } from "./rules.ts";
import type { Trail } from "./trail.ts";

type Node = Record<string, Json>;

/** One pass over a schema: what becomes of a node before its children are visited. */
type Cut = (node: Node, path: string, depth: number) => Node;

export function shrink(schema: JsonObject, maxBytes: number, rules: TargetRules, trail: Trail): JsonObject {
  const cuts = [
    shortenDescriptions(200, 0, trail),
    shortenDescriptions(60, 0, trail),
    shortenDescriptions(0, 2, trail),
    shortenDescriptions(0, 1, trail),
    // A closed object without properties accepts nothing at all, so depth cannot be cut there.
    ...(rules.closed ? [] : [4, 3, 2].map((deepest) => flatten(deepest, rules, trail))),
  ];
  let small = schema;
  for (const cut of cuts) {
    if (sizeOf(small) <= maxBytes) return small;
    small = withoutUnused(rewrite(small, "", 0, cut));
  }
  const left = sizeOf(small);
  if (left > maxBytes) trail.change("", `still ${left} bytes, more than the ${maxBytes} wanted`);
  return small;
}

function sizeOf(schema: JsonObject): number {
  return new TextEncoder().encode(JSON.stringify(schema)).length;
}

/** From `depth` on, descriptions of at most `most` characters. */
function shortenDescriptions(most: number, depth: number, trail: Trail): Cut {
  return (node, path, at) => {
    const { description, ...rest } = node;
    if (at < depth || typeof description !== "string" || description.length <= most) return node;
    trail.change(`${path}/description`, most === 0 ? "left out for size" : `cut to ${most} characters for size`);
    return most === 0 ? rest : { ...node, description: `${description.slice(0, most - 1).trimEnd()}…` };
  };
}

/** From `deepest` on, objects no longer list their properties. Arguments are still checked against all of them. */
function flatten(deepest: number, rules: TargetRules, trail: Trail): Cut {
  return (node, path, depth) => {
    const { properties, required: _required, additionalProperties: _additional, ...rest } = node;
    if (depth < deepest || !isObject(properties) || Object.keys(properties).length === 0) return node;
    trail.change(`${path}/properties`, "left out for size");
    return rules.emptyProperties ? { ...rest, properties: {} } : rest;
  };
}

/** Where schemas are in a lowered schema, and how many steps into the value that is. Alternatives count as none. */
const places = [
  { keyword: "properties", steps: 1, isMap: true },
  { keyword: "$defs", steps: 2, isMap: true },
  { keyword: "items", steps: 1, isMap: false },
  { keyword: "additionalProperties", steps: 1, isMap: false },
  { keyword: "anyOf", steps: 0, isMap: false },
] as const;

function rewrite(schema: JsonObject, path: string, depth: number, cut: Cut): Node {
  const node: Node = { ...cut({ ...schema }, path, depth) };
  for (const { keyword, steps, isMap } of places) {
    const next = (value: Json, at: string): Json =>
      isObject(value) ? rewrite(value, `${path}/${at}`, depth + steps, cut) : value;
    const held = node[keyword];
    if (held === undefined) continue;
    if (Array.isArray(held)) node[keyword] = held.map((value: Json, place) => next(value, `${keyword}/${place}`));
    else if (!isMap) node[keyword] = next(held, keyword);
    else
      node[keyword] = Object.fromEntries(
        Object.entries(held as JsonObject).map(([name, value]) => [name, next(value, `${keyword}/${name}`)]),
      );
  }
  return node;
}

/** Definitions that nothing refers to any more. */
function withoutUnused(schema: Node): JsonObject {
  const table = schema["$defs"];
  if (!isObject(table)) return schema;
  const { $defs: _table, ...rest } = schema;
  const used = new Set<string>();
  const waiting = namesIn(rest);
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (used.has(name) || !Object.hasOwn(table, name)) continue;
    used.add(name);
    waiting.push(...namesIn(table[name]));
  }
  const kept = Object.entries(table).filter(([name]) => used.has(name));
  return kept.length === 0 ? rest : { ...rest, $defs: Object.fromEntries(kept) };
}

function namesIn(schema: Json | undefined): string[] {
  return [...JSON.stringify(schema ?? null).matchAll(/"\$ref":"#\/\$defs\/([^"]+)"/g)].map(([, name]) => name!);
}
