/** Filters over lists and objects: sorting, choosing, taking fields. */
import type { Meter } from "./limits.ts";
import { findTest, type Test } from "./tests.ts";
import {
  compare,
  isDict,
  isEqual,
  isList,
  isNumber,
  isTrue,
  itemsOf,
  Namespace,
  runtime,
  toNumber,
  typeOf,
  type Arguments,
  type Value,
} from "./value.ts";

export type Filter = (value: Value, args: Arguments, meter: Meter) => Value;

export function argument(args: Arguments, at: number, name: string): Value {
  return args.list[at] ?? args.named.get(name);
}

/** A field of an object, `a.b` and `0` included. */
export function attribute(value: Value, path: Value): Value {
  let found = value;
  for (const part of String(path).split(".")) {
    if (isDict(found)) found = found.get(part);
    else if (found instanceof Namespace) found = found.fields.get(part);
    else found = isList(found) && /^\d{1,9}$/.test(part) ? found[Number(part)] : undefined;
  }
  return found;
}

/**
 * What items are compared by: the item itself or one of its fields. Case is ignored unless the template
 * asks for it.
 */
function keyed(key: Value, exact: Value): (item: Value) => Value {
  return (item) => {
    const found = key === undefined || key === null ? item : attribute(item, key);
    return typeof found === "string" && !isTrue(exact) ? found.toLowerCase() : found;
  };
}

export function sorted(value: Value, args: Arguments, meter: Meter): readonly Value[] {
  const keyOf = keyed(argument(args, 2, "attribute"), argument(args, 1, "case_sensitive"));
  const items = itemsOf(value, meter).toSorted((a, b) => compare(keyOf(a), keyOf(b)));
  return isTrue(argument(args, 0, "reverse")) ? items.toReversed() : items;
}

export function selecting(keep: boolean, byAttribute: boolean): Filter {
  return (value, args, meter) => {
    const [key, ...rest] = byAttribute ? args.list : [undefined, ...args.list];
    const [name, ...given] = rest;
    const test: Test = name === undefined ? (item) => isTrue(item) : findTest(String(name));
    // A value that counts as false has no items, as in Jinja.
    if (!isTrue(value)) return [];
    return itemsOf(value, meter).filter((item) => test(byAttribute ? attribute(item, key) : item, given) === keep);
  };
}

export function best(sign: number): Filter {
  return (value, args, meter) => {
    const keyOf = keyed(argument(args, 1, "attribute"), argument(args, 0, "case_sensitive"));
    const [first, ...others] = itemsOf(value, meter);
    return others.reduce<Value>((found, item) => (compare(keyOf(item), keyOf(found)) * sign > 0 ? item : found), first);
  };
}

export function unique(value: Value, args: Arguments, meter: Meter): readonly Value[] {
  const keyOf = keyed(argument(args, 1, "attribute"), argument(args, 0, "case_sensitive"));
  const seen: Value[] = [];
  return itemsOf(value, meter).filter((item) => {
    meter.step();
    const key = keyOf(item);
    if (isList(key) || isDict(key)) throw runtime(`${typeOf(key)} cannot be told apart from others of its kind`);
    if (seen.some((other) => isEqual(other, key))) return false;
    seen.push(key);
    return true;
  });
}

/** Splits a list into rows of a given length. The last row is filled up if a filling value is given. */
export function batched(value: Value, args: Arguments, meter: Meter): readonly Value[] {
  const size = argument(args, 0, "linecount");
  if (!isNumber(size) || toNumber(size) < 1) throw runtime("a row has one item or more");
  const items = itemsOf(value, meter);
  const filler = argument(args, 1, "fill_with");
  const rows: Value[][] = [];
  for (let at = 0; at < items.length; at += toNumber(size)) rows.push(items.slice(at, at + toNumber(size)));
  if (filler !== undefined && filler !== null)
    while ((rows.at(-1)?.length ?? Infinity) < toNumber(size)) rows.at(-1)?.push(filler);
  meter.entries(items.length + rows.length);
  return rows;
}

export function dictItems(value: Value, _args: Arguments, meter: Meter): readonly Value[] {
  if (value === undefined) return [];
  if (!isDict(value)) throw runtime(`${typeOf(value)} has no items`);
  meter.entries(value.size);
  return Array.from(value, ([key, item]) => [key, item]);
}
