/** What a setting may hold, as data: checked when a file is read, written out in the docs. */
import { isObject } from "../../base/json.ts";
import { nearest } from "../../base/text.ts";

export type Shape =
  | "string"
  | "number"
  | "boolean"
  | "strings"
  /** A table that somebody else reads and checks. */
  | "table"
  | { readonly oneOf: readonly string[] }
  /** Tables under names of the user's own. */
  | { readonly each: Shape }
  | { readonly list: Shape }
  | { readonly fields: Readonly<Record<string, Shape>>; readonly required?: readonly string[] };

export interface ShapeProblem {
  /** Names and numbers from the setting down to what is wrong. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** The first thing that does not fit, or undefined. */
export function checkShape(value: unknown, shape: Shape, path: readonly (string | number)[]): ShapeProblem | undefined {
  if (typeof shape === "string") return fitsType(value, shape) ? undefined : wrong(path, `must be ${words[shape]}`);
  if ("oneOf" in shape)
    return typeof value === "string" && shape.oneOf.includes(value)
      ? undefined
      : wrong(path, `must be one of ${shape.oneOf.join(", ")}`);
  if ("list" in shape) {
    if (!Array.isArray(value)) return wrong(path, "must be a list");
    return first(value.entries(), (entry, index) => checkShape(entry, shape.list, [...path, index]));
  }
  if (!isObject(value)) return wrong(path, "must be a table");
  if ("each" in shape)
    return first(Object.entries(value), (entry, name) => checkShape(entry, shape.each, [...path, name]));
  const missing = shape.required?.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return wrong(path, `needs '${missing}'`);
  return first(Object.entries(value), (entry, name) => {
    const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
    if (field !== undefined) return checkShape(entry, field, [...path, name]);
    const [guess] = nearest(name, Object.keys(shape.fields), 1);
    const full = [...path, name];
    const ask = guess === undefined ? "" : `; did you mean '${guess}'?`;
    return { path: full, message: `there is no setting '${describePath(full)}'${ask}` };
  });
}

/** How a shape is written in the docs. */
export function describeShape(shape: Shape): string {
  if (typeof shape === "string") return shape === "strings" ? "list of strings" : shape;
  if ("oneOf" in shape) return shape.oneOf.map((value) => `\`${value}\``).join(", ");
  if ("list" in shape) return `list of ${describeShape(shape.list)}`;
  if ("each" in shape) return `by name: ${describeShape(shape.each)}`;
  const fields = Object.entries(shape.fields).map(([name, field]) => {
    const optional = shape.required?.includes(name) ? "" : "?";
    return `\`${name}${optional}\` ${describeShape(field)}`;
  });
  return `table of ${fields.join("; ")}`;
}

/** `hooks.before[0].command` */
export function describePath(path: readonly (string | number)[]): string {
  return path
    .map((step, index) => (typeof step === "number" ? `[${step}]` : `${index === 0 ? "" : "."}${quote(step)}`))
    .join("");
}

function quote(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}

const words = {
  string: "a string",
  number: "a number",
  boolean: "true or false",
  strings: "a list of strings",
  table: "a table",
} as const;

function fitsType(value: unknown, type: keyof typeof words): boolean {
  if (type === "strings") return Array.isArray(value) && value.every((entry) => typeof entry === "string");
  return type === "table" ? isObject(value) : typeof value === type;
}

function wrong(path: readonly (string | number)[], message: string): ShapeProblem {
  return { path, message: `'${describePath(path)}' ${message}` };
}

function first<Key>(
  entries: Iterable<readonly [Key, unknown]>,
  check: (value: unknown, key: Key) => ShapeProblem | undefined,
): ShapeProblem | undefined {
  for (const [key, value] of entries) {
    const problem = check(value, key);
    if (problem) return problem;
  }
  return undefined;
}
