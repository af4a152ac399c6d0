/**
 * A JSON Schema as we understood it: what its writer meant, without drafts, booleans and misplaced
 * values. Reading never fails; what makes no sense is left out and reported.
 */
import { defined, isObject, type Json } from "../../base/json.ts";
import { escapeKey, isPlainValue, type Limits, readKeywords, readLimits } from "./keywords.ts";
import type { Trail } from "./trail.ts";

const typeNames = ["string", "number", "integer", "boolean", "object", "array", "null"] as const;
export type TypeName = (typeof typeNames)[number];

export interface Shape {
  readonly description?: string;
  readonly default?: Json;
  /** Undefined: nothing was said. */
  readonly types?: readonly TypeName[];
  readonly enum?: readonly Json[];
  readonly properties?: ReadonlyMap<string, Shape>;
  readonly required?: readonly string[];
  readonly additional?: boolean | Shape;
  readonly items?: Shape;
  /** Bounds, pattern, format: keyword to value. */
  readonly limits: Limits;
  readonly anyOf?: readonly Shape[];
  readonly allOf?: readonly Shape[];
  readonly ref?: string;
  /** Accepts nothing: the schema `false`. */
  readonly never?: true;
  /** What no target can express, in words. */
  readonly said: readonly string[];
  /** Where it was, for the list of changes. */
  readonly at: string;
}

/** Real schemas nest at most 13 deep, and no provider accepts 40. */
const deepest = 40;

export function readShape(source: unknown, at: string, trail: Trail, depth = 0): Shape {
  const empty: Shape = { limits: new Map(), said: [], at };
  if (source === true) return empty;
  if (source === false) return { ...empty, never: true };
  if (!isObject(source)) {
    trail.change(at, "not a schema; anything is taken");
    return empty;
  }
  if (depth > deepest || !trail.spend("read")) {
    trail.change(at, "nested too deep or too large; anything is taken");
    return empty;
  }
  const below = (inner: unknown, path: string) => readShape(inner, `${at}/${path}`, trail, depth + 1);
  return {
    at,
    ...readKeywords(source, at, trail),
    ...readWords(source),
    ...readTypes(source, at, trail),
    ...readObject(source, at, trail, below),
    ...readArray(source, at, trail, below),
    ...readCombinators(source, at, trail, below),
  };
}

/** Most parts of a schema say nothing of most kinds. */
const nothing: Partial<Shape> = {};
const combining = ["anyOf", "oneOf", "allOf", "$ref"] as const;

type Below = (inner: unknown, path: string) => Shape;

function readWords(source: Record<string, unknown>): Partial<Shape> {
  const { description, title, default: value } = source;
  const words = isText(description) ? description : isText(title) ? title : undefined;
  return {
    ...(words === undefined ? nothing : { description: words }),
    ...(isPlainValue(value) ? { default: value } : nothing),
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function readTypes(source: Record<string, unknown>, at: string, trail: Trail): Partial<Shape> {
  const { type } = source;
  // Nearly every schema.
  if (
    isTypeName(type) &&
    source["nullable"] !== true &&
    source["enum"] === undefined &&
    !Object.hasOwn(source, "const")
  )
    return { types: [type] };
  const named = [type].flat().filter(isTypeName);
  const nullable = source["nullable"] === true && named.length > 0 ? ["null" as const] : [];
  const types = [...new Set([...named, ...nullable])];
  if (type !== undefined && named.length !== [type].flat().length)
    trail.change(`${at}/type`, "an unknown type was left out");
  const values = readValues(source, at, trail);
  return { ...(types.length > 0 ? { types } : {}), ...(values ? { enum: values } : {}) };
}

function isTypeName(name: unknown): name is TypeName {
  return typeNames.includes(name as TypeName);
}

function readValues(source: Record<string, unknown>, at: string, trail: Trail): readonly Json[] | undefined {
  if (Object.hasOwn(source, "const")) {
    trail.change(`${at}/const`, "const became an enum of one value");
    return isPlainValue(source["const"]) ? [source["const"]] : undefined;
  }
  const list = source["enum"];
  if (list === undefined) return undefined;
  const values = Array.isArray(list) ? list.filter(isPlainValue) : [];
  if (values.length === 0) trail.change(`${at}/enum`, "an enum without values was left out");
  return values.length === 0 ? undefined : uniqueValues(values);
}

function uniqueValues(values: readonly Json[]): readonly Json[] {
  const seen = new Map(values.map((value) => [JSON.stringify(value), value]));
  return [...seen.values()];
}

function readObject(source: Record<string, unknown>, at: string, trail: Trail, below: Below): Partial<Shape> {
  const { properties, required: named, additionalProperties: others } = source;
  if (properties === undefined && named === undefined && others === undefined) return nothing;
  const map = isObject(properties) ? readProperties(properties, at, trail, below) : undefined;
  if (properties !== undefined && !map)
    trail.change(`${at}/properties`, "properties is not an object and was left out");
  const required = Array.isArray(named) ? [...new Set(named.filter((name) => typeof name === "string"))] : undefined;
  if (named !== undefined && !required) trail.change(`${at}/required`, "required is not a list and was left out");
  const additional =
    typeof others === "boolean" ? others : isObject(others) ? below(others, "additionalProperties") : undefined;
  return {
    ...(map ? { properties: map } : {}),
    ...(required ? { required } : {}),
    ...defined({ additional }),
  };
}

function readProperties(
  properties: Record<string, unknown>,
  at: string,
  trail: Trail,
  below: Below,
): ReadonlyMap<string, Shape> {
  const map = new Map<string, Shape>();
  for (const key of Object.keys(properties)) {
    if (trail.spent("read")) {
      trail.change(`${at}/properties`, "too many properties; the rest was left out");
      break;
    }
    if (key === "__proto__")
      trail.change(`${at}/properties/__proto__`, "a property that no program can use safely was left out");
    else map.set(key, below(properties[key], `properties/${escapeKey(key)}`));
  }
  return map;
}

function readArray(source: Record<string, unknown>, at: string, trail: Trail, below: Below): Partial<Shape> {
  const { items, prefixItems } = source;
  const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : undefined;
  if (tuple)
    return readTuple(tuple, Array.isArray(prefixItems) ? "prefixItems" : "items", source, { at, trail, below });
  if (items === undefined) return nothing;
  if (isObject(items) || typeof items === "boolean") return { items: below(items, "items") };
  trail.change(`${at}/items`, "items is not a schema and was left out");
  return {};
}

/** Most targets have no tuples, so it becomes an array whose items are any of its members. */
function readTuple(
  tuple: readonly unknown[],
  keyword: string,
  source: Record<string, unknown>,
  { at, trail, below }: { at: string; trail: Trail; below: Below },
): Partial<Shape> {
  trail.change(`${at}/${keyword}`, "a tuple became an array of any of its members");
  const members = tuple.map((member, index) => below(member, `${keyword}/${index}`));
  const rest = keyword === "prefixItems" ? source["items"] : source["additionalItems"];
  if (isObject(rest)) members.push(below(rest, keyword === "prefixItems" ? "items" : "additionalItems"));
  const closed = rest === false && members.length > 0 ? [["maxItems", tuple.length] as const] : [];
  const unique = [...new Map(members.map((member) => [fingerprint(member), member])).values()];
  const items: Shape =
    unique.length === 1
      ? unique[0]!
      : { limits: new Map(), said: [], at: `${at}/${keyword}`, ...(unique.length > 0 ? { anyOf: unique } : {}) };
  return { items, limits: new Map([...readLimits(source, at, trail), ...closed]) };
}

/** Enough to see that two simple members are equal. Anything beyond a type is told apart by its place. */
function fingerprint(shape: Shape): string {
  const simple =
    !shape.properties &&
    !shape.items &&
    !shape.anyOf &&
    !shape.allOf &&
    !shape.enum &&
    shape.limits.size === 0 &&
    !shape.description;
  return simple ? `${shape.ref ?? ""}:${shape.types?.join() ?? ""}` : shape.at;
}

function readCombinators(source: Record<string, unknown>, at: string, trail: Trail, below: Below): Partial<Shape> {
  if (!combining.some((keyword) => source[keyword] !== undefined)) return nothing;
  const list = (keyword: string) =>
    Array.isArray(source[keyword])
      ? source[keyword].map((branch: unknown, index) => below(branch, `${keyword}/${index}`))
      : [];
  const any = list("anyOf");
  const one = list("oneOf");
  if (one.length > 0) trail.change(`${at}/oneOf`, "oneOf became anyOf");
  // Both at once means both must hold.
  const extra: readonly Shape[] =
    any.length > 0 && one.length > 0 ? [{ limits: new Map(), said: [], at: `${at}/oneOf`, anyOf: one }] : [];
  const all = [...list("allOf"), ...extra];
  const union = any.length > 0 ? any : one;
  const ref = typeof source["$ref"] === "string" ? source["$ref"] : undefined;
  return {
    ...(union.length > 0 ? { anyOf: union } : {}),
    ...(all.length > 0 ? { allOf: all } : {}),
    ...defined({ ref }),
  };
}
