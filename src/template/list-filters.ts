/** Filters over lists and objects: sorting, choosing, taking fields. */
import type { Meter } from "./limits.ts";
import { findTest, type Test } from "./tests.ts";
import {
  compare,
  isDict,
  isEqual,
  isList,
  isTrue,
  itemsOf,
  Namespace,
  runtime,
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

export function sorted(value: Value, args: Arguments, meter: Meter): readonly Value[] {
  const key = argument(args, 2, "attribute");
  const exact = isTrue(argument(args, 1, "case_sensitive"));
  const keyOf = (item: Value) => {
    const found = key === undefined || key === null ? item : attribute(item, key);
    return typeof found === "string" && !exact ? found.toLowerCase() : found;
  };
  const items = itemsOf(value, meter).toSorted((a, b) => compare(keyOf(a), keyOf(b)));
  return isTrue(argument(args, 0, "reverse")) ? items.toReversed() : items;
}

export function selecting(keep: boolean, byAttribute: boolean): Filter {
  return (value, args, meter) => {
    const [key, ...rest] = byAttribute ? args.list : [undefined, ...args.list];
    const [name, ...given] = rest;
    const test: Test = name === undefined ? (item) => isTrue(item) : findTest(String(name));
    return itemsOf(value, meter).filter((item) => test(byAttribute ? attribute(item, key) : item, given) === keep);
  };
}

export function best(sign: number): Filter {
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

export function unique(value: Value, _args: Arguments, meter: Meter): readonly Value[] {
  const seen: Value[] = [];
  for (const item of itemsOf(value, meter)) {
    meter.step();
    if (!seen.some((other) => isEqual(other, item))) seen.push(item);
  }
  return seen;
}

export function dictItems(value: Value, _args: Arguments, meter: Meter): readonly Value[] {
  if (value === undefined) return [];
  if (!isDict(value)) throw runtime(`${typeOf(value)} has no items`);
  meter.entries(value.size);
  return Array.from(value, ([key, item]) => [key, item]);
}
