/**
 * Most tools take an object of a few texts and numbers. For such schemas this knows the values that are surely
 * right, without loading or asking the library, which is needed as soon as there is anything to explain.
 */
import { isObject } from "../base/json.ts";

/** True for values that the schema surely accepts. False says nothing. */
export type SurelyAccepts = (value: unknown) => boolean;

/** Undefined for a schema with anything in it that is not known here. */
export function createPlainCheck(schema: unknown, depth = 0): SurelyAccepts | undefined {
  if (!isObject(schema) || depth > deepest) return undefined;
  const kind = schema["type"];
  const isKnown = (key: string) =>
    key === "type" || annotations.has(key) || (typeof kind === "string" && keywords.get(kind)?.includes(key) === true);
  if (!Object.keys(schema).every(isKnown)) return undefined;
  switch (kind) {
    case "object":
      return objectCheck(schema, depth);
    case "array":
      return arrayCheck(schema, depth);
    case "string":
      return stringCheck(schema);
    case "integer":
    case "number":
      return numberCheck(schema, kind === "integer");
    case "boolean":
      return (value) => typeof value === "boolean";
    default:
      return undefined;
  }
}

const deepest = 8;
const mostNames = 100;
/** What says nothing about the value. */
const annotations: ReadonlySet<string> = new Set(["title", "description", "default", "examples", "deprecated"]);
const keywords: ReadonlyMap<string, readonly string[]> = new Map([
  ["object", ["properties", "required", "additionalProperties"]],
  ["array", ["items", "minItems", "maxItems"]],
  ["string", ["enum", "minLength", "maxLength"]],
  ["integer", ["minimum", "maximum"]],
  ["number", ["minimum", "maximum"]],
]);

function objectCheck(schema: Record<string, unknown>, depth: number): SurelyAccepts | undefined {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  if (!isObject(properties) || typeof additionalProperties !== "boolean" || !isTexts(required)) return undefined;
  const checks = new Map<string, SurelyAccepts>();
  if (Object.keys(properties).length > mostNames) return undefined;
  for (const [name, inner] of Object.entries(properties)) {
    const check = createPlainCheck(inner, depth + 1);
    // The library has rules of its own for names that every object has, such as `constructor`.
    if (check === undefined || name in Object.prototype) return undefined;
    checks.set(name, check);
  }
  return (value) => {
    if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return false;
    for (const name of required) if (!Object.hasOwn(value, name)) return false;
    for (const name of Object.keys(value)) {
      const check = checks.get(name);
      if (check === undefined ? !additionalProperties : !check(value[name])) return false;
    }
    return true;
  };
}

function arrayCheck(schema: Record<string, unknown>, depth: number): SurelyAccepts | undefined {
  const inRange = rangeOf(schema["minItems"], schema["maxItems"]);
  const item = schema["items"] === undefined ? () => true : createPlainCheck(schema["items"], depth + 1);
  if (inRange === undefined || item === undefined) return undefined;
  return (value) => Array.isArray(value) && inRange(value.length) && value.every(item);
}

function stringCheck({ enum: allowed, minLength, maxLength }: Record<string, unknown>): SurelyAccepts | undefined {
  const inRange = rangeOf(minLength, maxLength);
  if (inRange === undefined || (allowed !== undefined && !isTexts(allowed))) return undefined;
  const names = allowed && new Set(allowed);
  // Letters are counted in more than one way, which differ in texts that are not plain.
  const isMeasured = minLength !== undefined || maxLength !== undefined;
  return (value) =>
    typeof value === "string" &&
    (names === undefined || names.has(value)) &&
    (!isMeasured || (inRange(value.length) && /^[ -~]*$/.test(value)));
}

function numberCheck({ minimum, maximum }: Record<string, unknown>, isWhole: boolean): SurelyAccepts | undefined {
  const inRange = rangeOf(minimum, maximum);
  if (inRange === undefined) return undefined;
  return (value) =>
    typeof value === "number" && (isWhole ? Number.isSafeInteger(value) : Number.isFinite(value)) && inRange(value);
}

function rangeOf(least: unknown = -Infinity, most: unknown = Infinity): ((value: number) => boolean) | undefined {
  if (typeof least !== "number" || typeof most !== "number") return undefined;
  return (value) => value >= least && value <= most;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
