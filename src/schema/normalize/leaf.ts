/** The parts of a target's schema that contain no other schema: enums, bounds, null, and a schema that says nothing. */
import { defined, type Json, type JsonObject } from "../../base/json.ts";
import { describe, limitWords, valueWords } from "./describe.ts";
import type { TargetRules } from "./rules.ts";
import type { Shape, TypeName } from "./shape.ts";
import type { Trail } from "./trail.ts";

export type Written = Record<string, Json>;

export interface LeafContext {
  readonly rules: TargetRules;
  readonly trail: Trail;
  /** Product of the bounds around this place, for grammars. */
  readonly repeats: number;
}

/** The same schema that also accepts null, in the target's way. */
export function addNull(schema: JsonObject, nullable: boolean, rules: TargetRules): JsonObject {
  if (!nullable || rules.nulls === "drop") return schema;
  const union = schema["anyOf"] as readonly JsonObject[] | undefined;
  if (rules.nulls === "nullable")
    return union
      ? { ...schema, anyOf: [{ ...union[0], nullable: true }, ...union.slice(1)] }
      : { ...schema, nullable: true };
  if (union)
    return union.some((branch) => branch["type"] === "null")
      ? schema
      : { ...schema, anyOf: [...union, { type: "null" }] };
  const type = schema["type"];
  if (type === undefined) return "$ref" in schema ? { anyOf: [schema, { type: "null" }] } : schema;
  const types = Array.isArray(type) ? (type as readonly Json[]) : [type];
  const values = schema["enum"] as readonly Json[] | undefined;
  return {
    ...schema,
    type: types.includes("null") ? type : [...types, "null"],
    ...(values && !values.includes(null) ? { enum: [...values, null] } : {}),
  };
}

export function fits(value: Json, type: TypeName): boolean {
  if (value === null) return type === "null";
  if (Array.isArray(value)) return type === "array";
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}

export function inferTypes(shape: Shape): readonly TypeName[] | undefined {
  if (shape.enum) return [...new Set(shape.enum.map(typeOfValue))];
  if (
    shape.properties ||
    shape.required ||
    shape.additional !== undefined ||
    shape.limits.has("minProperties") ||
    shape.limits.has("maxProperties")
  )
    return ["object"];
  if (shape.items || shape.limits.has("minItems") || shape.limits.has("maxItems") || shape.limits.has("uniqueItems"))
    return ["array"];
  if (["minLength", "maxLength", "pattern", "format"].some((keyword) => shape.limits.has(keyword))) return ["string"];
  return shape.limits.size > 0 ? ["number"] : undefined;
}

function typeOfValue(value: Json): TypeName {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value as TypeName;
}

const limitsOf: Readonly<Record<string, readonly TypeName[]>> = {
  minLength: ["string"],
  maxLength: ["string"],
  pattern: ["string"],
  format: ["string"],
  minimum: ["number", "integer"],
  maximum: ["number", "integer"],
  exclusiveMinimum: ["number", "integer"],
  exclusiveMaximum: ["number", "integer"],
  multipleOf: ["number", "integer"],
  minItems: ["array"],
  maxItems: ["array"],
  uniqueItems: ["array"],
  minProperties: ["object"],
  maxProperties: ["object"],
};

export function lowerLimits(
  shape: Shape,
  types: readonly TypeName[],
  at: LeafContext,
): { readonly written: Written; readonly said: readonly string[] } {
  const written: Written = {};
  const said: string[] = [];
  for (const [keyword, value] of shape.limits) {
    if (!limitsOf[keyword]!.some((type) => types.includes(type))) {
      at.trail.change(`${shape.at}/${keyword}`, `${keyword} does not apply to ${types.join(" or ")} and was left out`);
      continue;
    }
    if (takesLimit(keyword, value, types, at)) {
      written[keyword] = value;
      continue;
    }
    at.trail.change(`${shape.at}/${keyword}`, `${keyword} was left out`);
    const words = limitWords(keyword, value);
    if (words !== undefined) said.push(words);
  }
  return { written, said };
}

function takesLimit(
  keyword: string,
  value: number | string | boolean,
  types: readonly TypeName[],
  { rules, repeats }: LeafContext,
): boolean {
  if (!rules.limits.has(keyword)) return false;
  if (keyword === "format") return rules.formats === "any" || (rules.formats.has(String(value)) && types.length === 1);
  if (keyword === "pattern") return takesPattern(String(value), rules);
  const counts = /Length|Items/.test(keyword);
  return !counts || Number(value) * repeats <= rules.largestBound;
}

/** One character class, repeated or not, from end to end. */
const plainPattern = /^\^\[[A-Za-z0-9_./: -]+\](?:[+*]|\{\d{1,2}(?:,\d{0,2})?\})?\$$/;

function takesPattern(pattern: string, rules: TargetRules): boolean {
  if (rules.patterns === "plain") return plainPattern.test(pattern);
  return rules.patterns === "any" || !/\(\?(?:[=!]|<[=!])/.test(pattern);
}

interface LoweredEnum {
  readonly type?: TypeName;
  readonly written: Written;
  readonly said: readonly string[];
}

export function lowerEnum(shape: Shape, types: readonly TypeName[], { rules, trail }: LeafContext): LoweredEnum {
  const values = shape.enum?.filter((value) => value !== null && types.some((type) => fits(value, type)));
  if (!shape.enum || !values) return { written: {}, said: [] };
  const leave = (what: string): LoweredEnum => {
    trail.change(`${shape.at}/enum`, what);
    return { written: {}, said: values.length === 0 ? [] : [valueWords(values)] };
  };
  if (values.length === 0) return leave("no value of the enum fits its type; it was left out");
  if (rules.enums === "words") return leave("the enum went into the description");
  if (values.length > rules.mostEnumValues) return leave("the enum is too long and went into the description");
  if (rules.closed && values.some((value) => typeof value === "object"))
    return leave("an enum of objects went into the description");
  if (rules.enums === "any") return { written: { enum: values }, said: [] };
  if (values.some((value) => typeof value === "object")) return leave("an enum of objects went into the description");
  // Writing a boolean as text would change its type, so the values are described and the type stays.
  if (values.every((value) => typeof value === "boolean"))
    return leave("an enum of booleans went into the description");
  if (values.some((value) => typeof value !== "string")) trail.change(`${shape.at}/enum`, "the values became text");
  const texts = [...new Set(values.map(String))].filter((value) => value !== "");
  return texts.length === 0
    ? leave("an enum of empty text went into the description")
    : { type: "string", written: { enum: texts }, said: [] };
}

export function descriptionOf(shape: Shape): Written {
  const words = describe(shape.description, shape.said);
  return words === "" ? {} : { description: words };
}

/** A schema that says nothing, in the target's way. */
export function untyped(shape: Shape, rules: TargetRules, trail: Trail): JsonObject {
  const words = descriptionOf(shape);
  if (rules.untyped === "empty") return { ...words, ...defined({ default: shape.default }) };
  trail.change(
    shape.at,
    rules.untyped === "string" ? "without a type; text is taken" : "without a type; it became alternatives",
  );
  if (rules.untyped === "string") return { type: "string", ...words };
  const scalars: readonly JsonObject[] = [{ type: "string" }, { type: "number" }, { type: "boolean" }];
  const others: readonly JsonObject[] = rules.closed
    ? [{ type: "null" }]
    : [{ type: "object" }, { type: "array", items: { type: "string" } }];
  return { ...words, anyOf: [...scalars, ...others] };
}
