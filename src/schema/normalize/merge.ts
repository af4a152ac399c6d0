/**
 * Joins two shapes that must both hold. If they cannot both hold, the first is kept, because the
 * original schema still decides.
 */
import { defined, type Json } from "../../base/json.ts";
import type { Shape, TypeName } from "./shape.ts";

/** `depth` bounds the recursion. What lies deeper is taken from the first. */
export function mergeShapes(a: Shape, b: Shape, depth = 0): Shape {
  if (depth > 20) return a;
  if (a.never || b.never) return { ...a, never: true };
  const types = mergeTypes(a.types, b.types);
  const values = mergeValues(a.enum, b.enum);
  const additional = a.additional === false || b.additional === false ? false : (a.additional ?? b.additional);
  const items = a.items && b.items ? mergeShapes(a.items, b.items, depth + 1) : (a.items ?? b.items);
  const properties = mergeProperties(a, b, depth);
  const required = a.required || b.required ? [...new Set([...(a.required ?? []), ...(b.required ?? [])])] : undefined;
  const description = a.description ?? b.description;
  const value = a.default ?? b.default;
  const ref = a.ref ?? b.ref;
  const allOf = [
    ...(a.allOf ?? []),
    ...(b.allOf ?? []),
    ...(a.ref !== undefined && b.ref !== undefined && a.ref !== b.ref ? [{ ...bare(b), ref: b.ref }] : []),
  ];
  // Two sets of alternatives would multiply, so the first is kept.
  const anyOf = a.anyOf ?? b.anyOf;
  return {
    at: a.at,
    said: [...new Set([...a.said, ...b.said])],
    limits: mergeLimits(a.limits, b.limits),
    ...defined({ description, default: value }),
    ...(types ? { types } : {}),
    ...(values ? { enum: values } : {}),
    ...(properties ? { properties } : {}),
    ...(required ? { required } : {}),
    ...defined({ additional }),
    ...(items ? { items } : {}),
    ...(anyOf ? { anyOf } : {}),
    ...(allOf.length > 0 ? { allOf } : {}),
    ...defined({ ref }),
  };
}

function bare(shape: Shape): Shape {
  return { at: shape.at, limits: new Map(), said: [] };
}

function mergeTypes(
  a: readonly TypeName[] | undefined,
  b: readonly TypeName[] | undefined,
): readonly TypeName[] | undefined {
  if (!a || !b) return a ?? b;
  const both = a.filter((type) => b.includes(type) || (type === "integer" && b.includes("number")));
  const narrowed =
    b.includes("integer") && a.includes("number") && !a.includes("integer") ? [...both, "integer" as const] : both;
  return narrowed.length > 0 ? narrowed : a;
}

function mergeValues(a: readonly Json[] | undefined, b: readonly Json[] | undefined): readonly Json[] | undefined {
  if (!a || !b) return a ?? b;
  const wanted = new Set(b.map((value) => JSON.stringify(value)));
  const both = a.filter((value) => wanted.has(JSON.stringify(value)));
  return both.length > 0 ? both : a;
}

function mergeProperties(a: Shape, b: Shape, depth: number): ReadonlyMap<string, Shape> | undefined {
  if (!a.properties || !b.properties) return a.properties ?? b.properties;
  const merged = new Map(a.properties);
  for (const [name, shape] of b.properties) {
    const own = merged.get(name);
    merged.set(name, own ? mergeShapes(own, shape, depth + 1) : shape);
  }
  return merged;
}

/** The tighter bound of each. */
function mergeLimits(a: Shape["limits"], b: Shape["limits"]): Shape["limits"] {
  const merged = new Map(a);
  for (const [keyword, value] of b) {
    const own = merged.get(keyword);
    if (typeof own === "number" && typeof value === "number")
      merged.set(keyword, /^(min|exclusiveMin)/.test(keyword) ? Math.max(own, value) : Math.min(own, value));
    else if (own === undefined) merged.set(keyword, value);
  }
  return merged;
}

/**
 * Joins objects that are alternatives into one that accepts any of them: it has all properties, and
 * requires what all of them require.
 */
export function uniteObjects(branches: readonly Shape[], at: string): Shape {
  const properties = new Map<string, Shape>();
  for (const branch of branches) {
    for (const [name, shape] of branch.properties ?? []) {
      const own = properties.get(name);
      properties.set(name, own ? uniteProperty(own, shape) : shape);
    }
  }
  const demanded = branches.map((branch) => new Set(branch.required));
  const required = [...properties.keys()].filter((name) => demanded.every((names) => names.has(name)));
  const isClosed = branches.every((branch) => branch.additional === false);
  return {
    at,
    limits: new Map(),
    said: [...variantWords(branches)],
    types: ["object"],
    properties,
    required,
    ...(isClosed ? { additional: false } : {}),
  };
}

/** One name in two branches: discriminators become one enum, and the rest become alternatives. */
function uniteProperty(a: Shape, b: Shape): Shape {
  if (a.enum && b.enum)
    return { ...a, enum: [...new Map([...a.enum, ...b.enum].map((value) => [JSON.stringify(value), value])).values()] };
  if (isSimple(a) && isSimple(b) && a.types?.join() === b.types?.join()) return a.description === undefined ? b : a;
  const options = [...(a.anyOf && isUnion(a) ? a.anyOf : [a]), b];
  return {
    at: a.at,
    limits: new Map(),
    said: [],
    ...defined({ description: a.description }),
    anyOf: options.slice(0, 8),
  };
}

function isSimple(shape: Shape): boolean {
  return !shape.enum && !shape.properties && !shape.items && !shape.anyOf && !shape.allOf && shape.ref === undefined;
}

function isUnion(shape: Shape): boolean {
  return !shape.types && !shape.properties && !shape.enum && shape.ref === undefined && !shape.allOf;
}

/** Which parameters belong together, for the description. */
function variantWords(branches: readonly Shape[]): readonly string[] {
  const sets = [...new Set(branches.map((branch) => (branch.required ?? []).join(", ")))].filter((set) => set !== "");
  return sets.length < 2
    ? []
    : [
        `give one of these sets: ${sets
          .slice(0, 8)
          .map((set) => `(${set})`)
          .join(" or ")}`,
      ];
}
