/**
 * Whether the target would accept this schema: a strict reading of each provider's published rules. It
 * was written without looking at the normaliser, so that the two can be compared.
 */
import { isObject } from "../../base/json.ts";
import type { SchemaTarget } from "./rules.ts";

interface Place {
  readonly node: unknown;
  readonly path: string;
  readonly depth: number;
}

interface TargetCheck {
  readonly keywords: ReadonlySet<string>;
  readonly rootForbids: readonly string[];
  readonly node: (node: Record<string, unknown>, root: Record<string, unknown>) => readonly (string | false)[];
}

const deepestTaken = 100;

/** Why a provider would refuse a schema: the reasons, or none if it would accept it. */
export function checkSchema(schema: unknown, target: SchemaTarget): string[] {
  if (!isObject(schema)) return ["the root is not an object"];
  const rules = checks[target];
  const found: string[] = [];
  if (schema["type"] !== "object") found.push("the root's type is not 'object'");
  if (!isObject(schema["properties"])) found.push("the root has no properties");
  for (const keyword of rules.rootForbids) if (keyword in schema) found.push(`${keyword} at the root`);
  const stack: Place[] = [{ node: schema, path: "", depth: 0 }];
  for (let place = stack.pop(); place && found.length < 100; place = stack.pop()) {
    const { node, path, depth } = place;
    const complain = (what: string) => found.push(`${path || "/"}: ${what}`);
    if (!isObject(node)) complain("a schema that is not an object");
    else if (depth > deepestTaken) complain("nested too deep");
    else {
      for (const what of [
        ...invalid(node, schema),
        ...unknownKeywords(node, rules, depth),
        ...rules.node(node, schema),
      ])
        if (what !== false) complain(what);
      stack.push(...children(node, path, depth + 1));
    }
  }
  return found;
}

function children(node: Record<string, unknown>, path: string, depth: number): readonly Place[] {
  const maps = ["properties", "$defs", "definitions"].flatMap((keyword) =>
    isObject(node[keyword])
      ? Object.entries(node[keyword]).map(([key, inner]) => ({ node: inner, path: `${path}/${keyword}/${key}`, depth }))
      : [],
  );
  const lists = ["anyOf", "oneOf", "allOf", "prefixItems"].flatMap((keyword) =>
    Array.isArray(node[keyword])
      ? node[keyword].map((inner, index) => ({ node: inner as unknown, path: `${path}/${keyword}/${index}`, depth }))
      : [],
  );
  const single = ["items", "additionalProperties", "not", "propertyNames"]
    .filter((keyword) => node[keyword] !== undefined && typeof node[keyword] !== "boolean")
    .map((keyword) => ({ node: node[keyword], path: `${path}/${keyword}`, depth }));
  return [...maps, ...lists, ...single];
}

function unknownKeywords(node: Record<string, unknown>, { keywords }: TargetCheck, depth: number): readonly string[] {
  return Object.keys(node)
    .filter((keyword) => !keywords.has(keyword) || (keyword === "$defs" && depth > 0))
    .map((keyword) => `the keyword ${keyword}`);
}

const jsonTypes = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/** Draft 2020-12: keywords with values of the wrong kind, references to nothing. */
function invalid(node: Record<string, unknown>, root: Record<string, unknown>): readonly (string | false)[] {
  const types = typesOf(node);
  const isCount = (value: unknown) => value === undefined || (Number.isInteger(value) && (value as number) >= 0);
  const isNumber = (value: unknown) => value === undefined || (typeof value === "number" && Number.isFinite(value));
  const { enum: values, required, $ref: ref, pattern, description } = node;
  return [
    node["type"] !== undefined &&
      (types.length === 0 || types.some((type) => !jsonTypes.has(type)) || new Set(types).size !== types.length) &&
      "type is not a JSON type",
    values !== undefined && (!Array.isArray(values) || values.length === 0) && "enum is empty or not a list",
    required !== undefined &&
      !(
        Array.isArray(required) &&
        required.every((name) => typeof name === "string") &&
        new Set(required).size === required.length
      ) &&
      "required is not a list of names",
    Array.isArray(required) &&
      required.some((name) => !isObject(node["properties"]) || !Object.hasOwn(node["properties"], String(name))) &&
      "required names a property that is not there",
    node["properties"] !== undefined && !isObject(node["properties"]) && "properties is not an object",
    ...["anyOf", "oneOf", "allOf"].map(
      (keyword) =>
        node[keyword] !== undefined &&
        (!Array.isArray(node[keyword]) || node[keyword].length === 0) &&
        `${keyword} is empty or not a list`,
    ),
    ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"].map(
      (keyword) => !isCount(node[keyword]) && `${keyword} is not a count`,
    ),
    ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"].map(
      (keyword) => !isNumber(node[keyword]) && `${keyword} is not a number`,
    ),
    ref !== undefined && !pointsSomewhere(ref, root) && "a reference to nothing",
    pattern !== undefined && !isPattern(pattern) && "pattern is no regular expression",
    description !== undefined && typeof description !== "string" && "description is not text",
    types.includes("array") && !isObject(node["items"]) && "an array without items",
    Array.isArray(node["items"]) && "a tuple",
  ];
}

function typesOf(node: Record<string, unknown>): readonly string[] {
  return node["type"] === undefined ? [] : [node["type"]].flat().map(String);
}

function pointsSomewhere(ref: unknown, root: Record<string, unknown>): boolean {
  const name = typeof ref === "string" ? /^#\/(\$defs|definitions)\/([^/~%]+)$/.exec(ref) : null;
  const table = name ? root[name[1]!] : undefined;
  return isObject(table) && Object.hasOwn(table, name![2]!);
}

function isPattern(pattern: unknown): boolean {
  try {
    return typeof pattern === "string" && new RegExp(pattern).source !== "";
  } catch {
    return false; // The question was whether it compiles.
  }
}

const plainName = /^[a-zA-Z0-9_.-]{1,64}$/;
const oddName = (node: Record<string, unknown>) =>
  isObject(node["properties"]) &&
  Object.keys(node["properties"]).some((name) => !plainName.test(name)) &&
  "a property name outside [A-Za-z0-9_.-]{1,64}";
const lists = ["anyOf", "oneOf", "allOf"];
const words = ["type", "description", "properties", "required", "items", "enum"];
const numbers = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const general = new Set([
  ...words,
  ...lists,
  ...numbers,
  "$ref",
  "$defs",
  "additionalProperties",
  "default",
  "not",
  "const",
  "title",
  "minLength",
  "maxLength",
  "pattern",
  "format",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
]);
const says = (node: Record<string, unknown>) => ["type", "anyOf", "$ref"].some((keyword) => keyword in node);

const checks: Readonly<Record<SchemaTarget, TargetCheck>> = {
  basic: {
    keywords: new Set([
      ...words.filter((word) => word !== "enum"),
      "default",
      "minimum",
      "maximum",
      "minItems",
      "maxItems",
      "additionalProperties",
    ]),
    rootForbids: [],
    node: (node) => [
      !["string", "number", "boolean", "object", "array"].includes(String(node["type"])) && "not one of the five types",
      node["type"] === "object" && !isObject(node["properties"]) && "an object without properties",
    ],
  },
  openai: { keywords: general, rootForbids: [...lists, "enum", "not", "$ref"], node: () => [] },
  anthropic: { keywords: general, rootForbids: [...lists, "$ref"], node: (node) => [oddName(node)] },
  "openai-strict": {
    keywords: new Set([
      ...words,
      ...numbers,
      "anyOf",
      "$ref",
      "$defs",
      "additionalProperties",
      "pattern",
      "format",
      "minItems",
      "maxItems",
    ]),
    rootForbids: [...lists, "enum", "not", "$ref"],
    node: checkStrict,
  },
  gemini: {
    keywords: new Set([...words, "anyOf", "nullable", "format", "minimum", "maximum", "minItems", "maxItems"]),
    rootForbids: lists,
    node: checkGemini,
  },
  "llama-cpp": { keywords: general, rootForbids: lists, node: checkLlama },
};

function checkStrict(node: Record<string, unknown>): readonly (string | false)[] {
  const types = typesOf(node);
  const names = isObject(node["properties"]) ? Object.keys(node["properties"]) : [];
  const required = new Set<unknown>(Array.isArray(node["required"]) ? node["required"] : []);
  const formats = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
  return [
    !says(node) && "neither type nor anyOf nor $ref",
    "$ref" in node && Object.keys(node).length > 1 && "something beside $ref",
    types.includes("object") && node["additionalProperties"] !== false && "an open object",
    types.includes("object") &&
      (names.length !== required.size || names.some((name) => !required.has(name))) &&
      "a property that is not required",
    typeof node["pattern"] === "string" && /\(\?(?:[=!]|<[=!])/.test(node["pattern"]) && "a pattern that looks around",
    node["format"] !== undefined && !formats.includes(String(node["format"])) && `format ${String(node["format"])}`,
    Array.isArray(node["enum"]) && node["enum"].length > 1000 && "too many enum values",
    Array.isArray(node["enum"]) &&
      node["enum"].some((value) => typeof value === "object" && value !== null) &&
      "an enum of objects",
  ];
}

function checkGemini(node: Record<string, unknown>): readonly (string | false)[] {
  return [
    oddName(node),
    !("type" in node) && !("anyOf" in node) && "neither type nor anyOf",
    "anyOf" in node && Object.keys(node).length > 1 && "something beside anyOf",
    Array.isArray(node["type"]) && "a list of types",
    node["type"] === "null" && "the type null",
    node["nullable"] !== undefined && typeof node["nullable"] !== "boolean" && "nullable is not true or false",
    Array.isArray(node["enum"]) &&
      (node["type"] !== "string" || node["enum"].some((value) => typeof value !== "string" || value === "")) &&
      "an enum that is not of text",
    node["format"] !== undefined &&
      !["enum", "date-time"].includes(String(node["format"])) &&
      `format ${String(node["format"])}`,
  ];
}

/** Its grammar: no bare `{}`, bounds that multiply, patterns it cannot read. */
function checkLlama(node: Record<string, unknown>): readonly (string | false)[] {
  const pattern = node["pattern"];
  return [
    !says(node) && !("enum" in node) && !("allOf" in node) && !("oneOf" in node) && "an unrecognised schema (no type)",
    ...["minLength", "maxLength", "minItems", "maxItems"].map(
      (keyword) => Number(node[keyword] ?? 0) >= 2000 && `${keyword} of 2000 or more`,
    ),
    typeof pattern === "string" &&
      (!pattern.startsWith("^") || !pattern.endsWith("$") || /\(\?|\\[dDsSwWbB]/.test(pattern)) &&
      "a pattern its grammar cannot read",
    node["additionalProperties"] !== undefined &&
      typeof node["additionalProperties"] !== "boolean" &&
      !isObject(node["additionalProperties"]) &&
      "additionalProperties",
  ];
}
