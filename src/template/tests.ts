/** Jinja's tests, which may follow `is` and are used by `select` and similar filters. */
import {
  Callable,
  compare,
  contains,
  Float,
  isDict,
  isEqual,
  isList,
  isNumber,
  runtime,
  toNumber,
  typeOf,
  type Value,
} from "./value.ts";

export type Test = (value: Value, args: readonly Value[]) => boolean;

export function findTest(name: string): Test {
  const test = tests.get(name);
  if (test === undefined) throw runtime(`there is no test '${name}'`);
  return test;
}

function numberOf(value: Value): number {
  if (!isNumber(value)) throw runtime(`${typeOf(value)} is no number`);
  return toNumber(value);
}

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
  ["sequence", (value) => isText(value, []) || isList(value) || isDict(value) || value === undefined],
  ["iterable", (value) => isText(value, []) || isList(value) || isDict(value) || value === undefined],
  ["callable", (value) => value instanceof Callable],
  ["odd", (value) => Math.abs(numberOf(value) % 2) === 1],
  ["even", (value) => numberOf(value) % 2 === 0],
  ["divisibleby", (value, [by]) => numberOf(value) % numberOf(by) === 0],
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
  ["greaterthan", (value, [other]) => compare(value, other) > 0],
  ["lessthan", (value, [other]) => compare(value, other) < 0],
  ["lt", (value, [other]) => compare(value, other) < 0],
  ["le", (value, [other]) => compare(value, other) <= 0],
]);
