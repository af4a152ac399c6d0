/** Operators between values, with Python's rules. */
import { formatPercent } from "./format.ts";
import { TemplateError, type Meter } from "./limits.ts";
import { float, Float, isList, isNumber, isTrue, runtime, toNumber, typeOf, type Value } from "./value.ts";

export function unary(operator: string, value: Value): Value {
  if (operator === "not") return !isTrue(value);
  if (!isNumber(value)) throw runtime(`'${operator}' on ${typeOf(value)}`);
  const number = operator === "-" ? -toNumber(value) : toNumber(value);
  return value instanceof Float ? float(number) : number;
}

export function concat(left: string, right: string, meter: Meter): string {
  meter.characters(left.length + right.length);
  return left + right;
}

export function arithmetic(operator: string, left: Value, right: Value, meter: Meter): Value {
  if (operator === "+" && typeof left === "string" && typeof right === "string") return concat(left, right, meter);
  if (operator === "+" && isList(left) && isList(right)) {
    meter.entries(left.length + right.length);
    return [...left, ...right];
  }
  if (operator === "%" && typeof left === "string") return formatPercent(left, right, meter);
  if (operator === "*" && isWhole(right) && (typeof left === "string" || isList(left)))
    return repeated(left, toNumber(right), meter);
  if (operator === "*" && isWhole(left) && (typeof right === "string" || isList(right)))
    return repeated(right, toNumber(left), meter);
  if (!isNumber(left) || !isNumber(right)) throw runtime(`'${operator}' between ${typeOf(left)} and ${typeOf(right)}`);
  const a = toNumber(left);
  const b = toNumber(right);
  if ((operator === "/" || operator === "//" || operator === "%") && b === 0) throw runtime("a division by zero");
  const isFloat =
    operator === "/" || [left, right].some((one) => one instanceof Float || !Number.isInteger(toNumber(one)));
  const value = calculate(operator, a, b);
  return isFloat ? float(value) : value;
}

/** An integer or a boolean. As in Python, a float cannot say how often something is repeated, not even 2.0. */
function isWhole(value: Value): value is number | boolean {
  return typeof value === "boolean" || (typeof value === "number" && Number.isInteger(value));
}

function repeated(value: string | readonly Value[], count: number, meter: Meter): Value {
  const times = Math.max(0, Math.trunc(count));
  if (typeof value === "string") {
    meter.characters(value.length * times);
    return value.repeat(times);
  }
  meter.entries(value.length * times);
  return Array.from({ length: times }, () => value).flat();
}

function calculate(operator: string, a: number, b: number): number {
  switch (operator) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return a / b;
    case "//":
      return Math.floor(a / b);
    case "%":
      return ((a % b) + b) % b;
    case "**":
      return a ** b;
    default:
      throw new TemplateError("syntax", `there is no operator '${operator}'`);
  }
}
