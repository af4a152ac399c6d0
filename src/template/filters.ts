/** Jinja's filters and tests, with the additions of transformers (`tojson` without HTML escapes). */
import type { Meter } from "./limits.ts";
import { formatPercent } from "./format.ts";
import { capitalize, joinText, replaceText, strip } from "./methods.ts";
import {
  compare,
  counted,
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
import {
  argument,
  attribute,
  batched,
  best,
  dictItems,
  selecting,
  sorted,
  unique,
  type Filter,
} from "./list-filters.ts";
import { absolute, rounded, summed, toFloat, toInteger } from "./number-filters.ts";

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

/** Words begin after spaces, hyphens and brackets. The method `title()` has other rules. */
function titleWords(text: string): string {
  return text
    .split(/([-\s({[<]+)/)
    .map((word) => capitalize(word))
    .join("");
}

function mapped(value: Value, args: Arguments, meter: Meter): readonly Value[] {
  const key = args.named.get("attribute");
  const items = isTrue(value) ? itemsOf(value, meter) : [];
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
  ["safe", (value, _args, meter) => textOf(value, meter)],
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
  ["batch", batched],
  ["upper", (value, _args, meter) => textOf(value, meter).toUpperCase()],
  ["lower", (value, _args, meter) => textOf(value, meter).toLowerCase()],
  ["title", (value, _args, meter) => titleWords(textOf(value, meter))],
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
  ["abs", absolute],
  ["round", rounded],
  ["min", best(-1)],
  ["max", best(1)],
  ["sum", summed],
  ["default", defaulted],
  ["d", defaulted],
  ["items", dictItems],
  [
    "dictsort",
    (value, args, meter) => {
      if (value === undefined) throw runtime("a value that is missing cannot be sorted");
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
