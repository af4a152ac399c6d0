/** Jinja's filters and tests, with the additions of transformers (`tojson` without HTML escapes). */
import type { Meter } from "./limits.ts";
import { formatPercent } from "./format.ts";
import { capitalize, joinText, replaceText, strip, titleCase } from "./methods.ts";
import {
  compare,
  counted,
  float,
  Float,
  isDict,
  isList,
  isNumber,
  isTrue,
  itemsOf,
  print,
  runtime,
  toJson,
  toNumber,
  toValue,
  typeOf,
  type Arguments,
  type Value,
} from "./value.ts";
import { argument, attribute, best, dictItems, selecting, sorted, unique, type Filter } from "./list-filters.ts";

export function findFilter(name: string): Filter {
  const filter = filters.get(name);
  if (filter === undefined) throw runtime(`there is no filter '${name}'`);
  return filter;
}

function textOf(value: Value, meter: Meter): string {
  return print(value, meter);
}

function length(value: Value): number {
  if (typeof value === "string") return Array.from(value).length;
  if (isList(value)) return value.length;
  if (isDict(value)) return value.size;
  if (value === undefined) return 0;
  throw runtime(`${typeOf(value)} has no length`);
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
