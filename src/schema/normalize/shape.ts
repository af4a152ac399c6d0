/**
 * A JSON Schema as we understood it: what its writer meant, without drafts, booleans and misplaced
 * values. Reading never fails; what makes no sense is left out and reported.
 */
import { defined, isObject, type Json } from "../../base/json.ts";
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
  readonly limits: ReadonlyMap<string, number | string | boolean>;
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
const deepestValue = 20;

const limitTypes = new Map<string, "number" | "string" | "boolean">([
  ...(["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] as const).map(
    (key) => [key, "number"] as const,
  ),
  ...(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] as const).map(
    (key) => [key, "number"] as const,
  ),
  ["pattern", "string"],
  ["format", "string"],
  ["uniqueItems", "boolean"],
]);

const words = (text: string): readonly string[] => text.split(" ");
/** Keywords that only say something about the schema. */
const silent = words("$schema $id $comment $anchor id title examples example deprecated readOnly writeOnly");
const structural = words(
  "type description default enum const properties required additionalProperties items prefixItems additionalItems anyOf oneOf allOf $ref nullable $defs definitions",
);
const understood = new Set([...silent, ...structural, ...limitTypes.keys()]);
/** Known keywords that no target can express. They become words. */
const spoken = words(
  "not if then else patternProperties propertyNames dependentRequired dependentSchemas dependencies contains unevaluatedProperties unevaluatedItems",
);

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
    limits: readLimits(source, at, trail),
    said: readSaid(source, at, trail),
    ...readWords(source),
    ...readTypes(source, at, trail),
    ...readObject(source, at, trail, below),
    ...readArray(source, at, trail, below),
    ...readCombinators(source, at, trail, below),
  };
}

type Below = (inner: unknown, path: string) => Shape;

function readWords(source: Record<string, unknown>): Partial<Shape> {
  const words = [source["description"], source["title"]].find((text) => typeof text === "string" && text !== "");
  const value = source["default"];
  return {
    ...(typeof words === "string" ? { description: words } : {}),
    ...(isPlainValue(value) ? { default: value } : {}),
  };
}

function readTypes(source: Record<string, unknown>, at: string, trail: Trail): Partial<Shape> {
  const named = [source["type"]].flat().filter((name): name is TypeName => typeNames.includes(name as TypeName));
  const nullable = source["nullable"] === true && named.length > 0 ? ["null" as const] : [];
  const types = [...new Set([...named, ...nullable])];
  if (source["type"] !== undefined && named.length !== [source["type"]].flat().length)
    trail.change(`${at}/type`, "an unknown type was left out");
  const values = readValues(source, at, trail);
  return { ...(types.length > 0 ? { types } : {}), ...(values ? { enum: values } : {}) };
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

/** JSON that may be copied as it is. What is too deep to be written again may not. */
function isPlainValue(value: unknown): value is Json {
  if (value === undefined) return false;
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepestValue) return false;
    level = level.flatMap((inner) => (typeof inner === "object" && inner !== null ? Object.values(inner) : []));
  }
  return true;
}

function readObject(source: Record<string, unknown>, at: string, trail: Trail, below: Below): Partial<Shape> {
  const properties = source["properties"];
  const map = isObject(properties) ? readProperties(properties, at, trail, below) : undefined;
  if (properties !== undefined && !map)
    trail.change(`${at}/properties`, "properties is not an object and was left out");
  const required = Array.isArray(source["required"])
    ? [...new Set(source["required"].filter((name) => typeof name === "string"))]
    : undefined;
  if (source["required"] !== undefined && !required)
    trail.change(`${at}/required`, "required is not a list and was left out");
  const others = source["additionalProperties"];
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
  if (items === undefined) return {};
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

function readLimits(
  source: Record<string, unknown>,
  at: string,
  trail: Trail,
): ReadonlyMap<string, number | string | boolean> {
  const limits = new Map<string, number | string | boolean>();
  for (const [keyword, type] of limitTypes) {
    const value = source[keyword];
    if (value === undefined) continue;
    // Draft 4 wrote `minimum: 3, exclusiveMinimum: true`.
    const bound =
      keyword === "exclusiveMinimum"
        ? source["minimum"]
        : keyword === "exclusiveMaximum"
          ? source["maximum"]
          : undefined;
    if (value === true && typeof bound === "number") limits.set(keyword, bound);
    else if (isLimit(keyword, type, value)) limits.set(keyword, value);
    else trail.change(`${at}/${keyword}`, `${keyword} has no usable value and was left out`);
  }
  return limits;
}

function isLimit(keyword: string, type: string, value: unknown): value is number | string | boolean {
  if (typeof value !== type) return false;
  if (typeof value !== "number") return true;
  if (keyword === "multipleOf") return value > 0;
  return (
    Number.isFinite(value) && (!/Length|Items|Properties/.test(keyword) || (Number.isInteger(value) && value >= 0))
  );
}

function readSaid(source: Record<string, unknown>, at: string, trail: Trail): readonly string[] {
  const said: string[] = [];
  for (const keyword of spoken) {
    if (source[keyword] === undefined) continue;
    trail.change(`${at}/${keyword}`, `${keyword} was left out`);
    const words = shortText(source[keyword]);
    if (words !== undefined) said.push(`${keyword}: ${words}`);
  }
  for (const keyword of silent) {
    if (source[keyword] !== undefined) trail.change(`${at}/${keyword}`, `${keyword} was left out`);
  }
  for (const keyword of Object.keys(source)) {
    if (!understood.has(keyword) && !spoken.includes(keyword))
      trail.change(`${at}/${escapeKey(keyword)}`, "an unknown keyword was left out");
  }
  return said;
}

/** Short enough for a description, or left out. */
function shortText(value: unknown): string | undefined {
  if (!isPlainValue(value)) return undefined;
  const text = JSON.stringify(value);
  return text.length <= 200 ? text : undefined;
}

function escapeKey(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
