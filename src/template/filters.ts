/** Jinja's filters and tests, with the additions of transformers (`tojson` without HTML escapes). */
import type { Meter } from "./limits.ts";
import { capitalize, formatPercent, joinText, replaceText, strip, titleCase } from "./methods.ts";
import {
  Callable,
  compare,
  contains,
  counted,
  float,
  Float,
  isDict,
  isEqual,
  isList,
  isNumber,
  isTrue,
  itemsOf,
  Namespace,
  print,
  runtime,
  toJson,
  toNumber,
  toValue,
  typeOf,
  type Arguments,
  type Value,
} from "./value.ts";

export type Filter = (value: Value, args: Arguments, meter: Meter) => Value;
export type Test = (value: Value, args: readonly Value[]) => boolean;

export function findFilter(name: string): Filter {
  const filter = filters.get(name);
  if (filter === undefined) throw runtime(`there is no filter '${name}'`);
  return filter;
}

export function findTest(name: string): Test {
  const test = tests.get(name);
  if (test === undefined) throw runtime(`there is no test '${name}'`);
  return test;
}

function argument(args: Arguments, at: number, name: string): Value {
  return args.list[at] ?? args.named.get(name);
}

function textOf(value: Value, meter: Meter): string {
  return print(value, meter);
}

/** A field of an object, `a.b` and `0` included. */
function attribute(value: Value, path: Value): Value {
  let found = value;
  for (const part of String(path).split(".")) {
    if (isDict(found)) found = found.get(part);
    else if (found instanceof Namespace) found = found.fields.get(part);
    else found = isList(found) && /^\d{1,9}$/.test(part) ? found[Number(part)] : undefined;
  }
  return found;
}

function length(value: Value): number {
  if (typeof value === "string") return Array.from(value).length;
  if (isList(value)) return value.length;
  if (isDict(value)) return value.size;
  if (value === undefined) return 0;
  throw runtime(`${typeOf(value)} has no length`);
}

function sorted(value: Value, args: Arguments, meter: Meter): readonly Value[] {
  const key = argument(args, 2, "attribute");
  const exact = isTrue(argument(args, 1, "case_sensitive"));
  const keyOf = (item: Value) => {
    const found = key === undefined || key === null ? item : attribute(item, key);
    return typeof found === "string" && !exact ? found.toLowerCase() : found;
  };
  const items = itemsOf(value, meter).toSorted((a, b) => compare(keyOf(a), keyOf(b)));
  return isTrue(argument(args, 0, "reverse")) ? items.toReversed() : items;
}

function selecting(keep: boolean, byAttribute: boolean): Filter {
  return (value, args, meter) => {
    const [key, ...rest] = byAttribute ? args.list : [undefined, ...args.list];
    const [name, ...given] = rest;
    const test: Test = name === undefined ? (item) => isTrue(item) : findTest(String(name));
    return itemsOf(value, meter).filter((item) => test(byAttribute ? attribute(item, key) : item, given) === keep);
  };
}

function best(sign: number): Filter {
  return (value, args, meter) => {
    const key = args.named.get("attribute");
    const keyOf = (item: Value) => (key === undefined ? item : attribute(item, key));
    const items = itemsOf(value, meter);
    return items.reduce<Value>(
      (found, item) => (found === undefined || compare(keyOf(item), keyOf(found)) * sign > 0 ? item : found),
      undefined,
    );
  };
}

function indent(value: Value, args: Arguments, meter: Meter): string {
  const width = argument(args, 0, "width") ?? 4;
  const size = isNumber(width) ? toNumber(width) : 0;
  meter.characters(size);
  const space = typeof width === "string" ? width : " ".repeat(size);
  const first = isTrue(argument(args, 1, "first"));
  const blank = isTrue(argument(args, 2, "blank"));
  const lines = textOf(value, meter).split("\n");
  meter.characters(lines.length * space.length);
  return lines
    .map((line, index) => ((index === 0 && !first) || (line === "" && !blank && index > 0) ? line : space + line))
    .join("\n");
}

function toJsonFilter(value: Value, args: Arguments, meter: Meter): string {
  const wanted = argument(args, 0, "indent");
  const size = isNumber(wanted) ? toNumber(wanted) : undefined;
  const given = args.named.get("separators");
  const [between, colon] = isList(given) ? given : [];
  return toJson(
    value,
    {
      indent: size,
      ascii: isTrue(args.named.get("ensure_ascii")),
      sort: isTrue(args.named.get("sort_keys")),
      separators: typeof between === "string" && typeof colon === "string" ? [between, colon] : undefined,
    },
    meter,
  );
}

function fromJson(value: Value, _args: Arguments, meter: Meter): Value {
  if (typeof value !== "string") throw runtime(`${typeOf(value)} is no JSON text`);
  try {
    return toValue(JSON.parse(value), meter);
  } catch {
    throw runtime("the text is no JSON");
  }
}

function toInteger(value: Value, args: Arguments): Value {
  const number = isNumber(value) ? toNumber(value) : typeof value === "string" ? Number.parseFloat(value) : Number.NaN;
  return Number.isFinite(number) ? Math.trunc(number) : (argument(args, 0, "default") ?? 0);
}

function toFloat(value: Value, args: Arguments): Value {
  const number = isNumber(value) ? toNumber(value) : typeof value === "string" ? Number.parseFloat(value) : Number.NaN;
  return Number.isFinite(number) ? float(number) : (argument(args, 0, "default") ?? new Float(0));
}

function mapped(value: Value, args: Arguments, meter: Meter): readonly Value[] {
  const key = args.named.get("attribute");
  const items = itemsOf(value, meter);
  meter.entries(items.length);
  if (key !== undefined) return items.map((item) => attribute(item, key) ?? args.named.get("default"));
  const [name, ...rest] = args.list;
  const filter = findFilter(String(name));
  return items.map((item) => filter(item, { list: rest, named: args.named }, meter));
}

const htmlEscapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

function escape(value: Value, _args: Arguments, meter: Meter): string {
  return counted(
    textOf(value, meter).replace(/[&<>"']/g, (char) => htmlEscapes[char]!),
    meter,
  );
}

function defaulted(value: Value, args: Arguments): Value {
  const useFor = isTrue(argument(args, 1, "boolean"));
  return value === undefined || (useFor && !isTrue(value)) ? (argument(args, 0, "default_value") ?? "") : value;
}

function dictItems(value: Value, _args: Arguments, meter: Meter): readonly Value[] {
  if (value === undefined) return [];
  if (!isDict(value)) throw runtime(`${typeOf(value)} has no items`);
  meter.entries(value.size);
  return Array.from(value, ([key, item]) => [key, item]);
}

function unique(value: Value, _args: Arguments, meter: Meter): readonly Value[] {
  const seen: Value[] = [];
  for (const item of itemsOf(value, meter)) {
    meter.step();
    if (!seen.some((other) => isEqual(other, item))) seen.push(item);
  }
  return seen;
}

const filters: ReadonlyMap<string, Filter> = new Map<string, Filter>([
  ["tojson", toJsonFilter],
  ["from_json", fromJson],
  ["fromjson", fromJson],
  ["safe", (value) => value],
  ["escape", escape],
  ["e", escape],
  ["string", (value, _args, meter) => textOf(value, meter)],
  ["list", (value, _args, meter) => [...itemsOf(value, meter)]],
  ["first", (value, _args, meter) => itemsOf(value, meter)[0]],
  ["last", (value, _args, meter) => itemsOf(value, meter).at(-1)],
  ["length", (value) => length(value)],
  ["count", (value) => length(value)],
  [
    "reverse",
    (value, _args, meter) =>
      typeof value === "string" ? Array.from(value).toReversed().join("") : itemsOf(value, meter).toReversed(),
  ],
  ["sort", sorted],
  [
    "join",
    (value, args, meter) => {
      const key = argument(args, 1, "attribute");
      const items = itemsOf(value, meter);
      return joinText(
        key === undefined ? items : items.map((item) => attribute(item, key)),
        textOf(argument(args, 0, "d") ?? args.named.get("separator") ?? "", meter),
        meter,
      );
    },
  ],
  ["unique", unique],
  ["upper", (value, _args, meter) => textOf(value, meter).toUpperCase()],
  ["lower", (value, _args, meter) => textOf(value, meter).toLowerCase()],
  ["title", (value, _args, meter) => titleCase(textOf(value, meter))],
  ["capitalize", (value, _args, meter) => capitalize(textOf(value, meter))],
  [
    "trim",
    (value, args, meter) => {
      const characters = argument(args, 0, "chars");
      return strip(textOf(value, meter), typeof characters === "string" ? characters : undefined, true, true);
    },
  ],
  ["indent", indent],
  ["int", toInteger],
  ["float", toFloat],
  ["bool", (value) => isTrue(value)],
  ["abs", (value) => (isNumber(value) ? Math.abs(toNumber(value)) : 0)],
  [
    "round",
    (value, args) => {
      const digits = argument(args, 0, "precision") ?? 0;
      return isNumber(value) && isNumber(digits)
        ? float(Number(toNumber(value).toFixed(Math.min(20, Math.max(0, toNumber(digits))))))
        : value;
    },
  ],
  ["min", best(-1)],
  ["max", best(1)],
  [
    "sum",
    (value, args, meter) => {
      const key = argument(args, 0, "attribute");
      return itemsOf(value, meter).reduce<number>((sum, item) => {
        const found = key === undefined ? item : attribute(item, key);
        return sum + (isNumber(found) ? toNumber(found) : 0);
      }, 0);
    },
  ],
  ["default", defaulted],
  ["d", defaulted],
  ["items", dictItems],
  [
    "dictsort",
    (value, args, meter) => {
      const by = argument(args, 1, "by") === "value" ? 1 : 0;
      const lower = (item: Value) =>
        typeof item === "string" && !isTrue(argument(args, 0, "case_sensitive")) ? item.toLowerCase() : item;
      const rows = dictItems(value, args, meter).toSorted((a, b) =>
        compare(lower(isList(a) ? a[by] : a), lower(isList(b) ? b[by] : b)),
      );
      return isTrue(argument(args, 2, "reverse")) ? rows.toReversed() : rows;
    },
  ],
  ["select", selecting(true, false)],
  ["reject", selecting(false, false)],
  ["selectattr", selecting(true, true)],
  ["rejectattr", selecting(false, true)],
  ["map", mapped],
  ["attr", (value, args) => attribute(value, args.list[0])],
  [
    "replace",
    (value, args, meter) => {
      const count = argument(args, 2, "count");
      return replaceText(
        textOf(value, meter),
        textOf(args.list[0], meter),
        textOf(args.list[1], meter),
        isNumber(count) ? toNumber(count) : -1,
        meter,
      );
    },
  ],
  [
    "format",
    (value, args, meter) =>
      formatPercent(textOf(value, meter), args.named.size > 0 ? new Map(args.named) : args.list, meter),
  ],
  ["wordcount", (value, _args, meter) => textOf(value, meter).split(/\s+/).filter(Boolean).length],
  [
    "truncate",
    (value, args, meter) => {
      const size = argument(args, 0, "length") ?? 255;
      const text = textOf(value, meter);
      const most = isNumber(size) ? toNumber(size) : 255;
      return text.length <= most ? text : `${text.slice(0, Math.max(0, most - 3))}...`;
    },
  ],
]);

const isText: Test = (value) => typeof value === "string";
const equal: Test = (value, [other]) => isEqual(value, other);

const tests: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["defined", (value) => value !== undefined],
  ["undefined", (value) => value === undefined],
  ["none", (value) => value === null],
  ["string", isText],
  ["number", (value) => isNumber(value)],
  ["integer", (value) => typeof value === "number" && Number.isInteger(value)],
  ["float", (value) => value instanceof Float || (typeof value === "number" && !Number.isInteger(value))],
  ["boolean", (value) => typeof value === "boolean"],
  ["true", (value) => value === true],
  ["false", (value) => value === false],
  ["mapping", (value) => isDict(value)],
  ["sequence", (value) => isText(value, []) || isList(value) || isDict(value)],
  ["iterable", (value) => isText(value, []) || isList(value) || isDict(value) || value === undefined],
  ["callable", (value) => value instanceof Callable],
  ["odd", (value) => isNumber(value) && Math.abs(toNumber(value) % 2) === 1],
  ["even", (value) => isNumber(value) && toNumber(value) % 2 === 0],
  ["divisibleby", (value, [by]) => isNumber(value) && isNumber(by) && toNumber(value) % toNumber(by) === 0],
  ["lower", (value) => typeof value === "string" && value === value.toLowerCase()],
  ["upper", (value) => typeof value === "string" && value === value.toUpperCase()],
  ["equalto", equal],
  ["eq", equal],
  ["==", equal],
  ["ne", (value, [other]) => !isEqual(value, other)],
  ["!=", (value, [other]) => !isEqual(value, other)],
  ["sameas", (value, [other]) => value === other],
  ["in", (value, [container]) => contains(container, value)],
  ["gt", (value, [other]) => compare(value, other) > 0],
  ["ge", (value, [other]) => compare(value, other) >= 0],
  ["lt", (value, [other]) => compare(value, other) < 0],
  ["le", (value, [other]) => compare(value, other) <= 0],
]);
