/**
 * A new object with the fields of both, the second's where both have one. The same as `{ ...a, ...b }`, for the way of
 * every call: on Node 20 that form makes a new hidden class each time, which costs ten times as much and more to collect.
 */
export function extend<A extends object, B extends object>(a: A, b: B): A & B {
  return Object.assign({}, a, b);
}
