/**
 * What a setting or an option may hold, as data. Settings files, options given in code, rules and
 * hooks are checked by this one function, and the docs are written from the same values.
 */
import { isObject } from "./json.ts";
import { nearest } from "./text.ts";

export type Shape =
  | "string"
  | "number"
  | "boolean"
  | "strings"
  | "function"
  /** A table that somebody else reads and checks. */
  | "table"
  /** Whatever the owner of the option makes of it. */
  | "any"
  /** `also`: words that are accepted but not listed. */
  | { readonly oneOf: readonly string[]; readonly also?: readonly string[] }
  /** A number above this one. */
  | { readonly above: number }
  /** Tables under names of the user's own. */
  | { readonly each: Shape }
  | { readonly list: Shape }
  | { readonly either: readonly Shape[]; readonly words: string }
  /** An object with these functions; it may have more, since its author made it. */
  | { readonly methods: readonly string[]; readonly words: string }
  /** `noun`: what a key is called in a message. */
  | {
      readonly fields: Readonly<Record<string, Shape>>;
      readonly required?: readonly string[];
      readonly noun?: string;
    };

export interface ShapeProblem {
  /** Names and numbers from the setting down to what is wrong. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

type Path = readonly (string | number)[];

/** The first thing that does not fit, or undefined. A field that is `undefined` counts as left out. */
export function checkShape(value: unknown, shape: Shape, path: Path): ShapeProblem | undefined {
  if (typeof shape === "string") return fitsType(value, shape) ? undefined : wrong(path, `must be ${words[shape]}`);
  if ("oneOf" in shape) return checkWord(value, shape, path);
  if ("above" in shape)
    return typeof value === "number" && value > shape.above
      ? undefined
      : wrong(path, `must be a number above ${shape.above}`);
  if ("either" in shape) {
    if (shape.either.some((one) => isPlainFit(value, one))) return undefined;
    const problems = shape.either.map((one) => checkShape(value, one, path));
    if (problems.includes(undefined)) return undefined;
    // If one of the forms was meant and something inside it is wrong, that is reported.
    return (
      problems.find((problem) => problem !== undefined && problem.path.length > path.length) ??
      wrong(path, `must be ${shape.words}`)
    );
  }
  if ("methods" in shape) {
    const fits = isObjectLike(value) && shape.methods.every((name) => typeof value[name] === "function");
    return fits ? undefined : wrong(path, `must be ${shape.words}`);
  }
  if ("list" in shape) {
    if (!Array.isArray(value)) return wrong(path, "must be a list");
    return first(value.entries(), (entry, index) => checkShape(entry, shape.list, [...path, index]));
  }
  if (!isObject(value)) return wrong(path, "must be a table");
  if ("each" in shape)
    return first(Object.entries(value), (entry, name) => checkShape(entry, shape.each, [...path, name]));
  return checkFields(value, shape, path);
}

function checkFields(
  value: Record<string, unknown>,
  shape: Extract<Shape, { readonly fields: unknown }>,
  path: Path,
): ShapeProblem | undefined {
  for (const name of Object.keys(value)) {
    const entry = value[name];
    const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
    // Most fields are of a plain type and fit, and need no path: a start checks hundreds.
    if (field !== undefined && (entry === undefined || isPlainFit(entry, field))) continue;
    const full = [...path, name];
    const problem =
      field === undefined
        ? {
            path: full,
            message: `there is no ${shape.noun ?? "setting"} '${describePath(full)}'${guess(name, Object.keys(shape.fields))}`,
          }
        : checkShape(entry, field, full);
    if (problem !== undefined) return problem;
  }
  const missing = (shape.required ?? []).filter((name) => value[name] === undefined).map((name) => `'${name}'`);
  return missing.length === 0 ? undefined : wrong(path, `needs ${missing.join(", ")}`);
}

function checkWord(value: unknown, { oneOf, also = [] }: Extract<Shape, { readonly oneOf: unknown }>, path: Path) {
  if (typeof value === "string" && (oneOf.includes(value) || also.includes(value))) return undefined;
  const given = typeof value === "string" ? guess(value, [...oneOf, ...also]) : "";
  return wrong(path, `must be one of ${oneOf.join(", ")}${given}`);
}

function guess(word: string, known: readonly string[]): string {
  const [best] = nearest(word, known, 1);
  return best === undefined ? "" : `; did you mean '${best}'?`;
}

/** Misuse by a programmer: a TypeError that names the function, the path of the option and the nearest right word. */
export function checkOptions(owner: string, value: unknown, shape: Shape): void {
  const problem = checkShape(value, shape, []);
  if (problem) throw new TypeError(`${owner}: ${problem.message}`);
}

/** The options of one function: a shape for each name its type has, and no other name. */
export function optionsShape<Options>(
  fields: { readonly [Name in keyof Required<Options>]: Shape },
  ...required: readonly (keyof Options & string)[]
): Shape {
  return { fields, required, noun: "option" };
}

/** How a shape is written in the docs. */
export function describeShape(shape: Shape): string {
  if (typeof shape === "string") return shape === "strings" ? "list of strings" : shape;
  if ("oneOf" in shape) return shape.oneOf.map((value) => `\`${value}\``).join(", ");
  if ("above" in shape) return `number above ${shape.above}`;
  if ("either" in shape || "methods" in shape) return shape.words;
  if ("list" in shape) return `list of ${describeShape(shape.list)}`;
  if ("each" in shape) return `by name: ${describeShape(shape.each)}`;
  const fields = Object.entries(shape.fields).map(([name, field]) => {
    const optional = shape.required?.includes(name) ? "" : "?";
    return `\`${name}${optional}\` ${describeShape(field)}`;
  });
  return `table of ${fields.join("; ")}`;
}

/** Writes a path as people do: `hooks.before[0].command`. */
function describePath(path: Path): string {
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
  function: "a function",
  table: "a table",
  any: "given",
} as const;

function fitsType(value: unknown, type: keyof typeof words): boolean {
  if (type === "any") return true;
  if (type === "strings") return Array.isArray(value) && value.every((entry) => typeof entry === "string");
  if (type === "number") return typeof value === "number" && !Number.isNaN(value);
  return type === "table" ? isObject(value) : typeof value === type;
}

function isPlainFit(value: unknown, shape: Shape): boolean {
  return typeof shape === "string" && fitsType(value, shape);
}

function isObjectLike(value: unknown): value is Record<string, unknown> {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function wrong(path: Path, message: string): ShapeProblem {
  return {
    path,
    message:
      path.length === 0
        ? `its options ${message.replace("must be a table", "must be an object").replace("needs", "need")}`
        : `'${describePath(path)}' ${message}`,
  };
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
