/** Filters over numbers. A value that is not a number is an error of the template, as in Python. */
import type { Meter } from "./limits.ts";
import { argument, attribute } from "./list-filters.ts";
import { arithmetic } from "./operators.ts";
import { float, Float, isNumber, itemsOf, runtime, toNumber, typeOf, type Arguments, type Value } from "./value.ts";

/** Python's `float(text)`, which takes a text only if all of it is a number. */
const wholeNumber = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i;

function read(value: Value): number {
  if (value === undefined) throw runtime("a value that is missing is no number");
  if (isNumber(value)) return toNumber(value);
  return typeof value === "string" && wholeNumber.test(value) ? Number(value) : Number.NaN;
}

export function toInteger(value: Value, args: Arguments): Value {
  const number = read(value);
  return Number.isFinite(number) ? Math.trunc(number) : (argument(args, 0, "default") ?? 0);
}

export function toFloat(value: Value, args: Arguments): Value {
  const number = read(value);
  return Number.isFinite(number) ? float(number) : (argument(args, 0, "default") ?? new Float(0));
}

export function absolute(value: Value): Value {
  if (!isNumber(value)) throw runtime(`${typeOf(value)} has no absolute value`);
  return sameKind(value, Math.abs(toNumber(value)));
}

/** Halves are rounded to the even neighbour, as in Python. */
export function rounded(value: Value, args: Arguments): Value {
  const digits = argument(args, 0, "precision") ?? 0;
  if (!isNumber(value) || !isNumber(digits)) throw runtime(`${typeOf(value)} cannot be rounded`);
  const scale = 10 ** Math.min(20, Math.max(-20, toNumber(digits)));
  const scaled = toNumber(value) * scale;
  const isHalf = Math.abs(scaled % 1) === 0.5;
  const whole = isHalf ? 2 * Math.round(scaled / 2) : Math.round(scaled);
  return sameKind(value, whole / scale + 0);
}

export function summed(value: Value, args: Arguments, meter: Meter): Value {
  const key = argument(args, 0, "attribute");
  const start = argument(args, 1, "start") ?? 0;
  return itemsOf(value, meter).reduce<Value>(
    (sum, item) => arithmetic("+", sum, key === undefined ? item : attribute(item, key), meter),
    start,
  );
}

/** Integers stay integers, and floats stay floats. */
function sameKind(value: number | boolean | Float, result: number): Value {
  return value instanceof Float || !Number.isInteger(toNumber(value)) ? float(result) : result;
}
