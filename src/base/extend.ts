/**
 * A new object with the fields of both; the second wins. It is the same as `{ ...a, ...b }`, for the
 * path of every call: on Node 20 that form makes a new hidden class each time, which costs ten times
 * as much, and more to collect.
 */
export function extend<A extends object, B extends object>(a: A, b: B): A & B {
  return Object.assign({}, a, b);
}
