/**
 * The values of a template, which print, compare and count as true as in Python. They are plain data and
 * never JavaScript objects with methods.
 */
import type { Meter } from "./limits.ts";
import { TemplateError } from "./limits.ts";

export type Value =
  | string
  | number
  | boolean
  | null
  | undefined
  | Float
  | readonly Value[]
  | Dict
  | Namespace
  | Callable;

/** A float with a whole value, which Python prints as `1.0`; other floats are plain numbers. */
export class Float {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export type Dict = Map<Value, Value>;

/** `namespace(…)`, the only kind of value that a template may assign to from inside a loop. */
export class Namespace {
  readonly fields: Map<string, Value>;
  constructor(fields: Map<string, Value>) {
    this.fields = fields;
  }
}

export interface Arguments {
  readonly list: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

export class Callable {
  readonly call: (args: Arguments) => Value;
  constructor(call: (args: Arguments) => Value) {
    this.call = call;
  }
}

export function isDict(value: Value): value is Dict {
  return value instanceof Map;
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

export function isNumber(value: Value): value is number | boolean | Float {
  return typeof value === "number" || typeof value === "boolean" || value instanceof Float;
}

export function toNumber(value: number | boolean | Float): number {
  return value instanceof Float ? value.value : Number(value);
}

/** Makes a float, which stays one even if its value is whole. */
export function float(value: number): number | Float {
  return Number.isInteger(value) ? new Float(value) : value;
}

export function isTrue(value: Value): boolean {
  if (isList(value)) return value.length > 0;
  if (isDict(value)) return value.size > 0;
  if (value instanceof Float) return value.value !== 0;
  return Boolean(value);
}

export function isEqual(a: Value, b: Value): boolean {
  if (isNumber(a) && isNumber(b)) return toNumber(a) === toNumber(b);
  if (isList(a)) return isList(b) && a.length === b.length && a.every((value, index) => isEqual(value, b[index]));
  if (isDict(a))
    return isDict(b) && a.size === b.size && [...a].every(([key, value]) => b.has(key) && isEqual(value, b.get(key)));
  return a === b;
}

/** Whether `value in container` is true. */
export function contains(container: Value, value: Value): boolean {
  if (typeof container === "string") {
    if (typeof value !== "string") throw runtime(`'in <string>' wants a string, not ${typeOf(value)}`);
    return container.includes(value);
  }
  if (isList(container)) return container.some((item) => isEqual(item, value));
  if (isDict(container)) return container.has(value);
  if (container === undefined) return false;
  throw runtime(`'in' on ${typeOf(container)}`);
}

export function compare(a: Value, b: Value): number {
  if (isNumber(a) && isNumber(b)) return toNumber(a) - toNumber(b);
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  if (isList(a) && isList(b)) {
    for (let index = 0; index < Math.min(a.length, b.length); index++) {
      const order = compare(a[index], b[index]);
      if (order !== 0) return order;
    }
    return a.length - b.length;
  }
  throw runtime(`${typeOf(a)} and ${typeOf(b)} have no order`);
}

/** The items that a loop visits. */
export function itemsOf(value: Value, meter: Meter): readonly Value[] {
  if (isList(value)) return value;
  if (value === undefined) return [];
  const items = isDict(value) ? [...value.keys()] : typeof value === "string" ? Array.from(value) : undefined;
  if (items === undefined) throw runtime(`${typeOf(value)} cannot be gone through`);
  meter.entries(items.length);
  return items;
}

export function typeOf(value: Value): string {
  if (value === undefined) return "an undefined value";
  if (value === null) return "None";
  if (isList(value)) return "a list";
  if (isDict(value)) return "an object";
  if (value instanceof Namespace) return "a namespace";
  if (value instanceof Callable) return "a function";
  return typeof value === "string" ? "a string" : typeof value === "boolean" ? "a boolean" : "a number";
}

export function runtime(message: string): TemplateError {
  return new TemplateError("runtime", message);
}

/** `str(value)`, as `{{ value }}` prints it. */
export function print(value: Value, meter: Meter): string {
  if (typeof value === "string") return value;
  if (value === undefined) return "";
  return repr(value, meter);
}

/** Python's `repr`. */
export function repr(value: Value, meter: Meter): string {
  if (value === null || value === undefined) return value === null ? "None" : "Undefined";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return numberText(value);
  if (value instanceof Float) return `${value.value}.0`;
  if (value instanceof Namespace || value instanceof Callable) return "<object>";
  if (typeof value === "string") return counted(quote(value), meter);
  meter.enter();
  const parts = isList(value)
    ? value.map((item) => repr(item, meter))
    : Array.from(value, ([key, item]) => `${repr(key, meter)}: ${repr(item, meter)}`);
  meter.leave();
  const text = parts.join(", ");
  return counted(isList(value) ? `[${text}]` : `{${text}}`, meter);
}

function numberText(value: number): string {
  const text = String(value);
  return text.includes("e") ? text.replace(/e([+-])(\d)$/, "e$10$2") : text;
}

/** Single quotes, unless the text contains a single quote and no double one, as in Python. */
function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inner = text.replace(/[\\\n\r\t]|'/g, (char) => {
    if (char === "'") return mark === "'" ? "\\'" : char;
    return { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" }[char]!;
  });
  return mark + inner + mark;
}

export function counted(text: string, meter: Meter): string {
  meter.characters(text.length);
  return text;
}

export interface JsonStyle {
  readonly indent?: number | undefined;
  readonly ascii?: boolean | undefined;
  readonly sort?: boolean | undefined;
  readonly separators?: readonly [string, string] | undefined;
}

/** Python's `json.dumps`. */
export function toJson(value: Value, style: JsonStyle, meter: Meter, level = 0): string {
  if (value === null) return "null";
  if (value === undefined) throw runtime("an undefined value is no JSON");
  if (typeof value === "boolean") return String(value);
  if (typeof value === "number" || value instanceof Float) return repr(value, meter);
  if (typeof value === "string") return counted(jsonString(value, style), meter);
  if (!isList(value) && !isDict(value)) throw runtime(`${typeOf(value)} is no JSON`);
  meter.enter();
  const [between, colon] = style.separators ?? [style.indent === undefined ? ", " : ",", ": "];
  const keys = isDict(value) ? sortedKeys(value, style.sort === true) : [];
  const parts = isList(value)
    ? value.map((item) => toJson(item, style, meter, level + 1))
    : keys.map(
        (key) => `${jsonString(print(key, meter), style)}${colon}${toJson(value.get(key), style, meter, level + 1)}`,
      );
  meter.leave();
  const [open, close] = isList(value) ? ["[", "]"] : ["{", "}"];
  if (style.indent === undefined || parts.length === 0) return counted(`${open}${parts.join(between)}${close}`, meter);
  meter.characters((level + 1) * style.indent);
  const line = `\n${" ".repeat(style.indent * (level + 1))}`;
  const last = `\n${" ".repeat(style.indent * level)}`;
  meter.characters(parts.length * line.length);
  return counted(`${open}${line}${parts.join(`${between}${line}`)}${last}${close}`, meter);
}

function sortedKeys(value: Dict, sort: boolean): readonly Value[] {
  const keys = [...value.keys()];
  return sort ? keys.toSorted(compare) : keys;
}

function jsonString(text: string, style: JsonStyle): string {
  const json = JSON.stringify(text);
  if (style.ascii !== true) return json;
  // eslint-disable-next-line no-control-regex
  return json.replace(/[^\x00-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Converts data from outside to values of a template. Functions and classes are refused. */
export function toValue(data: unknown, meter: Meter): Value {
  if (typeof data === "string" || typeof data === "boolean" || data === null || data === undefined) return data;
  if (typeof data === "number") return data;
  if (data instanceof Map || data instanceof Float || data instanceof Callable) return data as Value;
  if (typeof data !== "object") throw runtime(`a ${typeof data} cannot be given to a template`);
  meter.enter();
  let value: Value;
  if (Array.isArray(data)) {
    meter.entries(data.length);
    value = data.map((item) => toValue(item, meter));
  } else {
    const fields = Object.entries(data);
    meter.entries(fields.length);
    value = new Map(fields.map(([key, item]) => [key, toValue(item, meter)] as const));
  }
  meter.leave();
  return value;
}

/** The same as Python's slice. */
export function slice<T>(
  items: readonly T[],
  start: number | undefined,
  stop: number | undefined,
  step: number | undefined,
): readonly T[] {
  const by = step ?? 1;
  if (by === 0) throw runtime("a slice cannot step by 0");
  const size = items.length;
  const clamp = (index: number) =>
    Math.min(Math.max(index < 0 ? index + size : index, by < 0 ? -1 : 0), by < 0 ? size - 1 : size);
  const from = start === undefined ? (by < 0 ? size - 1 : 0) : clamp(start);
  const to = stop === undefined ? (by < 0 ? -1 : size) : clamp(stop);
  const taken: T[] = [];
  for (let at = from; by < 0 ? at > to : at < to; at += by) taken.push(items[at]!);
  return taken;
}
