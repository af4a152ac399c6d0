/**
 * The text of one parameter as the JSON that its schema asks for. Types come only from the schema: a
 * string stays unchanged to the last character, a text that does not read completely as the wanted
 * type stays text, and an integer too long for a double keeps its digits.
 */
import { isObject } from "../base/json.ts";
import { typesOf } from "../schema/coerce.ts";
import { follow } from "../schema/subschema.ts";
import { readAll, skipSpace } from "./input.ts";
import { readLiteral } from "./literal.ts";
import { declarationsOf, propertiesOf, propertyIn } from "./schema.ts";
import type { Notes, Repair } from "./repairs.ts";

/**
 * The types that a parameter may have, and in quotes those words of its enum that are text although
 * they look like something else. `any` if its schema does not say, undefined if there is no schema.
 */
export type Wanted = ReadonlySet<string> | "any" | undefined;

const spellings = new Map([
  ["float", "number"],
  ["double", "number"],
  ["int", "integer"],
  ["long", "integer"],
  ["bool", "boolean"],
  ["str", "string"],
  ["dict", "object"],
  ["list", "array"],
  ["tuple", "array"],
  ["none", "null"],
]);

/** A schema is read once per parameter, not once per call. */
const known = new WeakMap<object, Map<string, Wanted>>();

/** `given`: what other parameters were given before, which may rule out branches of a union. */
export function wantedOf(parameters: unknown, name: string, given: ReadonlyMap<string, string> = nothing): Wanted {
  if (!isObject(parameters)) return undefined;
  const names = known.get(parameters) ?? new Map<string, Wanted>();
  known.set(parameters, names);
  if (names.has(name)) return names.get(name);
  const all = declarationsOf(parameters, name, nothing);
  // Undeclared names come from the model: they are not kept.
  if (all.length === 0) return wantedBy(propertyIn(parameters, name, parameters), parameters);
  if (all.length === 1) {
    names.set(name, wantedBy(all[0], parameters));
    return names.get(name);
  }
  const left = declarationsOf(parameters, name, given);
  return unionOf((left.length === 0 ? all : left).map((property) => wantedBy(property, parameters)));
}

const nothing: ReadonlyMap<string, string> = new Map();

function unionOf(each: readonly Wanted[]): Wanted {
  const types = new Set<string>();
  for (const wanted of each) {
    if (wanted === undefined || wanted === "any") return "any";
    for (const type of wanted) types.add(type);
  }
  return types;
}

function wantedBy(property: unknown, parameters: unknown): Wanted {
  if (property === undefined) return undefined;
  if (property === true) return "any";
  const types = typesOf(follow(parameters, property), parameters, 0);
  if (types.size === 0) return "any";
  const named = new Set([...types].map((type) => spellings.get(type) ?? type));
  if (!isObject(property)) return named;
  if (property["nullable"] === true) named.add("null");
  const { enum: list } = property;
  if (Array.isArray(list) && named.size > 1)
    for (const word of list) if (typeof word === "string") named.add(JSON.stringify(word));
  return named;
}

/** Whether a tool's schema declares this parameter. */
export function declares(parameters: unknown, name: string): boolean {
  return Object.hasOwn(propertiesOf(parameters, parameters), name);
}

export function propertyNames(parameters: unknown): readonly string[] {
  return Object.keys(propertiesOf(parameters, parameters));
}

/** True if the text is the value, so that it can be passed on as it comes. */
export function isPlainText(wanted: Wanted): boolean {
  return wanted === undefined || (wanted !== "any" && wanted.size === 1 && wanted.has("string"));
}

export function textToJson(text: string, wanted: Wanted, notes: Notes): string {
  if (isPlainText(wanted) || wanted === undefined) return JSON.stringify(text);
  const word = text.trim();
  if (wanted === "any")
    return /^[[{]/.test(word) ? (containerToJson(word, wanted, notes) ?? JSON.stringify(text)) : JSON.stringify(text);
  if (wanted.has(JSON.stringify(word))) return JSON.stringify(word);
  return (
    scalarToJson(word, wanted) ??
    (wanted.has("object") || wanted.has("array") ? containerToJson(word, wanted, notes) : undefined) ??
    JSON.stringify(text)
  );
}

function scalarToJson(word: string, wanted: ReadonlySet<string>): string | undefined {
  const lower = word.toLowerCase();
  if (lower === "null" && (wanted.has("null") || !wanted.has("string"))) return "null";
  // Templates in Python print `None` for null, so models write it.
  if ((word === "None" || (lower === "none" && !wanted.has("string"))) && wanted.has("null")) return "null";
  if ((lower === "true" || lower === "false") && wanted.has("boolean")) return lower;
  if ((wanted.has("integer") || wanted.has("number")) && /^[+-]?\d{1,400}$/.test(word)) return plainInteger(word);
  if (wanted.has("number") && /^[+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,4})?$/.test(word)) {
    return finite(Number(word), word);
  }
  if (wanted.has("integer") && /^[+-]?\d{1,15}\.0{1,15}$/.test(word)) return String(Number(word));
  return undefined;
}

/** Digits pass unchanged, because a double would round numbers beyond 2^53. */
function plainInteger(word: string): string {
  const sign = word.startsWith("-") ? "-" : "";
  return sign + word.replace(/^[+-]/, "").replace(/^0+(?=\d)/, "");
}

function finite(value: number, word: string): string | undefined {
  if (!Number.isFinite(value)) return undefined;
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(word) ? word : String(value);
}

function containerToJson(word: string, wanted: Wanted, notes: Notes): string | undefined {
  return (
    literalOf(word, wanted, notes) ??
    fromEncoded(word, wanted, notes) ??
    // Quotes escaped although nothing is around them: one layer of encoding lost its own quotes.
    (word.includes('\\"') ? fromEncoded(`"${word}"`, wanted, notes) : undefined)
  );
}

function literalOf(word: string, wanted: Wanted, notes: Notes): string | undefined {
  const first = word.charAt(0);
  const fits = (first === "{" && allows(wanted, "object")) || (first === "[" && allows(wanted, "array"));
  return fits ? normalizeLiteral(word, notes) : undefined;
}

function allows(wanted: Wanted, type: string): boolean {
  return wanted === "any" || (wanted !== undefined && wanted.has(type));
}

function fromEncoded(word: string, wanted: Wanted, notes: Notes): string | undefined {
  if (!word.startsWith('"')) return undefined;
  try {
    const inner: unknown = JSON.parse(word);
    const json = typeof inner === "string" ? literalOf(inner.trim(), wanted, notes) : undefined;
    if (json !== undefined) notes.add("double-encoded");
    return json;
  } catch {
    return undefined; // Not a JSON string: nothing was encoded twice.
  }
}

/** A whole literal as JSON, or undefined. */
export function normalizeLiteral(text: string, notes: Notes): string | undefined {
  let json = "";
  const repairs: Repair[] = [];
  const { value, rest } = readAll(text, function* (input) {
    yield* skipSpace(input);
    return yield* readLiteral(input, (piece) => (json += piece), {}, { add: (name) => repairs.push(name) });
  });
  if (value !== "ok" || rest.trim() !== "") return undefined;
  for (const repair of repairs) notes.add(repair);
  return json;
}
