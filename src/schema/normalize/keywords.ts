/**
 * The keywords of a JSON Schema that hold no schema of their own: bounds, which a target may take, and those that no target
 * can express, which become words.
 */
import type { Json } from "../../base/json.ts";
import type { Trail } from "./trail.ts";

/** Bounds, pattern, format: keyword to value. */
export type Limits = ReadonlyMap<string, number | string | boolean>;

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
const structural: ReadonlySet<string> = new Set(
  words(
    "type description default enum const properties required additionalProperties items prefixItems additionalItems anyOf oneOf allOf $ref nullable $defs definitions",
  ),
);
const understood = new Set([...silent, ...structural, ...limitTypes.keys()]);
/** Known keywords that no target can express. They become words. */
const spoken = words(
  "not if then else patternProperties propertyNames dependentRequired dependentSchemas dependencies contains unevaluatedProperties unevaluatedItems",
);

/** Neither bounds nor words are in most schemas, and each would be asked about forty keywords. */
export function readKeywords(
  source: Record<string, unknown>,
  at: string,
  trail: Trail,
): { readonly limits: Limits; readonly said: readonly string[] } {
  if (Object.keys(source).every((keyword) => structural.has(keyword))) return none;
  return { limits: readLimits(source, at, trail), said: readSaid(source, at, trail) };
}

const none = { limits: new Map(), said: [] };

export function readLimits(source: Record<string, unknown>, at: string, trail: Trail): Limits {
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

export function escapeKey(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** JSON that may be copied as it is. What is too deep to be written again may not. */
export function isPlainValue(value: unknown): value is Json {
  if (value === undefined) return false;
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepestValue) return false;
    level = level.flatMap((inner) => (typeof inner === "object" && inner !== null ? Object.values(inner) : []));
  }
  return true;
}
