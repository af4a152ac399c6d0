/** A server's form as questions: what each field may hold, and whether an answer is valid. Pure. */
import { defined, isObject, type Json, type JsonObject } from "../../base/json.ts";
import { toVisibleLine } from "../../gate/show.ts";
import type { Choice } from "../chat/person.ts";

export type FormValue = string | number | boolean | string[];

export interface Field {
  readonly name: string;
  /** The words for the person, with nothing invisible in them. */
  readonly label: string;
  readonly about?: string;
  readonly kind: "text" | "number" | "yes-no" | "one" | "many";
  readonly required: boolean;
  readonly default?: FormValue;
  /** What can be chosen, for the kinds `one` and `many`. */
  readonly options: readonly Choice[];
  /** It seems to ask for something that must not go through a form. */
  readonly isSecret: boolean;
  /** What is wrong with a value, or undefined. */
  check(value: FormValue): string | undefined;
}

/** The fields of a form, in the order in which the server gives them. */
export function readFields(schema: JsonObject): readonly Field[] {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(properties).map(([name, property]) =>
    readField(name, isObject(property) ? property : {}, required.includes(name)),
  );
}

const secretWords =
  /pass(word|phrase|code)|secret|\btokens?\b|api.?key|credential|private.?key|\bpin\b|\bcvv?\b|card.?number|\bssn\b|\b2fa\b|\botp\b/i;

function readField(name: string, property: JsonObject, required: boolean): Field {
  const { title, description } = property;
  const about = typeof description === "string" ? toVisibleLine(description) : undefined;
  const label = toVisibleLine(typeof title === "string" ? title : name);
  const given = property["default"];
  const kind = kindOf(property);
  const field = {
    name,
    label,
    kind,
    required,
    options: readOptions(property),
    isSecret: kind === "text" && secretWords.test(`${name.replaceAll("_", " ")} ${label} ${about ?? ""}`),
    ...defined({ about }),
  };
  const check = (value: FormValue) => problemOf(value, field, property);
  const usable = isFormValue(given) && check(given) === undefined;
  return { ...field, check, ...(usable ? { default: given } : {}) };
}

function kindOf({ type, items, ...property }: JsonObject): Field["kind"] {
  if (type === "boolean") return "yes-no";
  if (type === "number" || type === "integer") return "number";
  if (type === "array" && isObject(items)) return "many";
  return Array.isArray(property["enum"]) || Array.isArray(property["oneOf"]) ? "one" : "text";
}

/** `enum` with `enumNames`, or `oneOf`/`anyOf` of constants with titles; for lists inside `items`. */
function readOptions(property: JsonObject): readonly Choice[] {
  const source = isObject(property["items"]) ? property["items"] : property;
  const names = Array.isArray(source["enumNames"]) ? source["enumNames"] : [];
  const toChoice = (value: unknown, label: unknown): readonly Choice[] =>
    typeof value === "string" ? [{ value, label: toVisibleLine(typeof label === "string" ? label : value) }] : [];
  if (Array.isArray(source["enum"])) return source["enum"].flatMap((value, n) => toChoice(value, names[n]));
  const titled = source["oneOf"] ?? source["anyOf"];
  if (!Array.isArray(titled)) return [];
  return titled.flatMap((entry: Json) => (isObject(entry) ? toChoice(entry["const"], entry["title"]) : []));
}

type Limited = Pick<Field, "kind" | "options">;

function problemOf(value: FormValue, { kind, options }: Limited, property: JsonObject): string | undefined {
  const known = (text: unknown) => options.some((option) => option.value === text);
  if (kind === "yes-no") return typeof value === "boolean" ? undefined : "yes or no";
  if (kind === "one") return known(value) ? undefined : "one of the choices";
  if (kind === "number") return numberProblem(value, property);
  if (kind === "text") return textProblem(value, property);
  if (!Array.isArray(value) || !value.every(known)) return "some of the choices";
  return outside(value.length, property["minItems"], property["maxItems"], "choices");
}

function numberProblem(value: FormValue, property: JsonObject): string | undefined {
  if (typeof value !== "number" || !Number.isFinite(value)) return "a number";
  if (property["type"] === "integer" && !Number.isInteger(value)) return "a whole number";
  return outside(value, property["minimum"], property["maximum"], "");
}

const formats: Readonly<Record<string, { readonly words: string; fits(text: string): boolean }>> = {
  email: { words: "an e-mail address", fits: (text) => /^[^\s@]+@[^\s@]+$/.test(text) },
  uri: { words: "an address such as https://…", fits: (text) => URL.canParse(text) },
  date: { words: "a date such as 2026-01-31", fits: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDate(text) },
  "date-time": {
    words: "a time such as 2026-01-31T12:00:00Z",
    fits: (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) && isDate(text),
  },
};

function isDate(text: string): boolean {
  return !Number.isNaN(Date.parse(text));
}

function textProblem(value: FormValue, property: JsonObject): string | undefined {
  if (typeof value !== "string") return "text";
  const { format } = property;
  const known = typeof format === "string" && Object.hasOwn(formats, format) ? formats[format] : undefined;
  if (known && !known.fits(value)) return known.words;
  return outside(Array.from(value).length, property["minLength"], property["maxLength"], "characters");
}

function outside(amount: number, least: unknown, most: unknown, unit: string): string | undefined {
  const words = (limit: string) => `${limit} ${unit}`.trim();
  if (typeof least === "number" && amount < least) return words(`at least ${least}`);
  if (typeof most === "number" && amount > most) return words(`at most ${most}`);
  return undefined;
}

function isFormValue(value: unknown): value is FormValue {
  if (Array.isArray(value)) return value.every((entry) => typeof entry === "string");
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
