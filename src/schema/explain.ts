/**
 * A validator's errors as sentences that a model can act on: where the error is, what was there, what
 * is allowed, and the name it probably meant.
 */
import { typeName } from "../base/json.ts";
import { cutStart, nearest } from "../base/text.ts";
import { follow } from "./subschema.ts";

export interface Issue {
  /** `items[0].name`; empty for the arguments as a whole. */
  readonly path: string;
  readonly message: string;
}

/** The parts of typebox's errors that we read. */
export interface SchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
}

const shownIssues = 6;

export function explain(schema: unknown, value: unknown, errors: readonly SchemaError[]): readonly Issue[] {
  const issues = collapse(errors).map((error) => toIssue(schema, value, error));
  const found = issues.filter(
    (issue, index) =>
      issues.findIndex((other) => other.path === issue.path && other.message === issue.message) === index,
  );
  return found.length > 0 ? found.slice(0, shownIssues) : [{ path: "", message: "does not match the schema" }];
}

/** Of the errors below one anyOf or oneOf, those of the closest branch stand for all of them. */
function collapse(errors: readonly SchemaError[]): readonly SchemaError[] {
  const own = errors.filter((error) => branchOf(error) === undefined && error.keyword !== "boolean");
  const groups = groupBy(errors, (error) => branchOf(error)?.group);
  const chosen = [...groups.values()].flatMap(closestBranch);
  const covered = new Set(groups.keys());
  return [
    ...own.filter(
      (error) => !(isUnion(error) && covered.has(`${error.schemaPath}/${error.keyword}`) && chosen.length > 0),
    ),
    ...chosen,
  ];
}

function isUnion(error: SchemaError): boolean {
  return error.keyword === "anyOf" || error.keyword === "oneOf";
}

function branchOf(error: SchemaError): { readonly group: string; readonly branch: string } | undefined {
  const match = /^(.*?\/(?:anyOf|oneOf))\/(\d+)(?:\/|$)/.exec(error.schemaPath);
  return match ? { group: match[1]!, branch: match[2]! } : undefined;
}

/** In order of first appearance. Values without a key are left out. (Map.groupBy is not in Node 20.) */
function groupBy<T>(values: readonly T[], keyOf: (value: T) => string | undefined): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const value of values) {
    const key = keyOf(value);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return groups;
}

function closestBranch(errors: readonly SchemaError[]): readonly SchemaError[] {
  const branches = [...groupBy(errors, (error) => branchOf(error)?.branch).values()];
  const depth = (list: readonly SchemaError[]) =>
    Math.max(...list.map((error) => error.instancePath.split("/").length));
  // The place of the alternatives is the shallowest place that any of them complains about.
  const place = errors.map((error) => error.instancePath).reduce((a, b) => (b.length < a.length ? b : a));
  const wrongType = (list: readonly SchemaError[]) =>
    list.some((error) => error.keyword === "type" && error.instancePath === place);
  const fitting = branches.filter((list) => !wrongType(list));
  if (fitting.length === 0 && branches.length > 1) return [mergeTypes(branches)];
  return (
    (fitting.length > 0 ? fitting : branches).toSorted((a, b) => a.length - b.length || depth(b) - depth(a))[0] ?? []
  );
}

/** If no branch accepts this type at all: one sentence with all of them. */
function mergeTypes(branches: readonly (readonly SchemaError[])[]): SchemaError {
  const wrong = branches.map((list) => list.find((error) => error.keyword === "type")!);
  return {
    ...wrong[0]!,
    params: { type: [...new Set(wrong.flatMap((error) => (error.params as { type?: string | string[] }).type ?? []))] },
  };
}

function toIssue(schema: unknown, value: unknown, error: SchemaError): Issue {
  const keys = error.instancePath.split("/").slice(1).map(decodeKey);
  const found = valueAt(value, keys);
  const path = toPath(keys);
  return { path, message: sentence(error, found, () => schemaAt(schema, error.schemaPath)) };
}

function sentence(error: SchemaError, found: unknown, node: () => Record<string, unknown>): string {
  const params = error.params as Readonly<Record<string, unknown>>;
  switch (error.keyword) {
    case "type":
      return `must be ${listTypes(params["type"])}, but is ${show(found)}`;
    case "required":
      return missing(params["requiredProperties"], found, node());
    case "additionalProperties":
    case "unevaluatedProperties":
      return unknownKeys(params[error.keyword], node(), found);
    case "enum":
      return oneOfValues(params["allowedValues"], found);
    case "const":
      return `must be ${JSON.stringify(params["allowedValue"])}, but is ${show(found)}`;
    case "pattern":
      return `must match the pattern ${String(params["pattern"])}, but is ${show(found)}`;
    case "format":
      return `must be a valid ${String(params["format"])}, but is ${show(found)}`;
    case "anyOf":
    case "oneOf":
      return `${error.message}, but is ${show(found)}`;
    default:
      return `${error.message}; it is ${show(found)}`;
  }
}

function missing(names: unknown, found: unknown, node: Record<string, unknown>): string {
  const wanted = Array.isArray(names) ? names.map(String) : [];
  const declared = new Set(keysOf(node["properties"]));
  const extra = keysOf(found)
    .filter((key) => !declared.has(key))
    .slice(0, 200);
  return wanted
    .map((name) => {
      const [guess] = nearest(name, extra, 1);
      return guess === undefined
        ? `'${name}' is required and missing`
        : `'${name}' is required and missing (there is '${shortName(guess)}': did you mean '${name}'?)`;
    })
    .join("; ");
}

function unknownKeys(names: unknown, node: Record<string, unknown>, found: unknown): string {
  const declared = keysOf(node["properties"]);
  const given = new Set(keysOf(found));
  const free = declared.filter((key) => !given.has(key)).slice(0, 200);
  const unknown = Array.isArray(names) ? names.map(String) : [];
  const guesses = unknown.slice(0, 8).map((name) => {
    const [guess] = nearest(name, free, 1);
    const shown = shortName(name);
    return guess === undefined ? `'${shown}'` : `'${shown}' (did you mean '${guess}'?)`;
  });
  const allowed = declared.length === 0 ? "none are allowed" : `allowed: ${declared.slice(0, 40).join(", ")}`;
  return `has ${unknown.length === 1 ? "an unknown key" : "unknown keys"} ${guesses.join(", ")}; ${allowed}`;
}

function oneOfValues(values: unknown, found: unknown): string {
  const allowed = Array.isArray(values) ? values : [];
  const words = allowed.filter((value) => typeof value === "string");
  const [guess] = typeof found === "string" ? nearest(found, words, 1) : [];
  const listed = allowed
    .slice(0, 20)
    .map((value) => JSON.stringify(value))
    .join(", ");
  const more = allowed.length > 20 ? `, … (${allowed.length} in all)` : "";
  return `must be one of ${listed}${more}, but is ${show(found)}${guess === undefined ? "" : ` (did you mean ${JSON.stringify(guess)}?)`}`;
}

function listTypes(type: unknown): string {
  const names = Array.isArray(type) ? type.map(String) : [String(type)];
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

/** What was there: always the type, and the value if it is short. */
function show(found: unknown): string {
  if (found === undefined) return "missing";
  if (typeof found === "object" && found !== null)
    return Array.isArray(found) ? `an array of ${found.length}` : "an object";
  const words = JSON.stringify(found) ?? typeName(found);
  const short = words.length > 60 ? `${words.slice(0, 60)}…` : words;
  return found === null ? "null" : `the ${typeName(found)} ${short}`;
}

function shortName(name: string): string {
  return name.length > 80 ? `${cutStart(name, 80)}…` : name;
}

function keysOf(value: unknown): string[] {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
}

/** The schema that an error is about. Its path leaves references out, so they are followed here. */
function schemaAt(root: unknown, schemaPath: string): Record<string, unknown> {
  let node = follow(root, root);
  for (const key of schemaPath.split("/").slice(1).map(decodeKey)) {
    const below = Object.hasOwn(node, key) ? node[key] : undefined;
    node =
      typeof below === "object" && below !== null
        ? Array.isArray(below)
          ? (below as unknown as Record<string, unknown>)
          : followIfRef(root, below)
        : {};
  }
  return node;
}

function followIfRef(root: unknown, node: object): Record<string, unknown> {
  return "$ref" in node ? follow(root, node) : (node as Record<string, unknown>);
}

function valueAt(value: unknown, keys: readonly string[]): unknown {
  let node = value;
  for (const key of keys) {
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, key)) return undefined;
    node = (node as Record<string, unknown>)[key];
  }
  return node;
}

function decodeKey(key: string): string {
  return key.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Keys as a person writes them: `a.b[0]["c d"]`. */
export function toPath(keys: readonly PropertyKey[]): string {
  return keys
    .map((key, index) => {
      const word = String(key);
      if (typeof key === "number" || /^\d+$/.test(word)) return `[${word}]`;
      return /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(word)
        ? `${index === 0 ? "" : "."}${word}`
        : `[${JSON.stringify(word)}]`;
    })
    .join("");
}
