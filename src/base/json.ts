/**
 * JSON as the whole engine sees it. `base/` holds what every folder needs and knows none of them.
 * Nothing here touches Node, so it runs in a browser too.
 */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json;
}

export function isObject(value: Json | undefined): value is JsonObject;
export function isObject(value: unknown): value is Record<string, unknown>;
export function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a value is called in a message to a model. */
export function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

export type Parsed =
  | { readonly ok: true; readonly value: Json }
  | { readonly ok: false; readonly message: string; readonly position: number };

/**
 * Parses complete JSON only. A prefix, a repair or a comment is never accepted. The position says
 * where reading stopped.
 */
export function parseJson(text: string): Parsed {
  try {
    return { ok: true, value: JSON.parse(text) as Json };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const at = /position (\d+)/.exec(message);
    return { ok: false, message, position: at ? Number(at[1]) : text.length };
  }
}

/** The same text for equal values, whatever the order of their keys. */
export function stableStringify(value: unknown): string {
  return JSON.stringify(inOrder(value));
}

/** A copy with sorted keys. A function that `JSON.stringify` calls for each value would cost more than all the rest. */
function inOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return holdsObjects(value) ? value.map(inOrder) : value;
  if ("toJSON" in value && typeof value.toJSON === "function") return inOrder(value.toJSON());
  const inner = value as Record<string, unknown>;
  const keys = Object.keys(inner).toSorted();
  if (keys.includes("__proto__")) return Object.fromEntries(keys.map((key) => [key, inOrder(inner[key])]));
  const copy: Record<string, unknown> = {};
  for (const key of keys) copy[key] = inOrder(inner[key]);
  return copy;
}

function holdsObjects(list: readonly unknown[]): boolean {
  for (const one of list) if (typeof one === "object") return true;
  return false;
}

type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** The same object without its undefined fields, so that equal values compare and print alike. */
export function defined<T extends object>(fields: T): Defined<T> {
  const kept: Record<string, unknown> = {};
  for (const key of Object.keys(fields)) {
    // No pairs are made, because every item of every request passes here
    const value = (fields as Record<string, unknown>)[key];
    if (value !== undefined) kept[key] = value;
  }
  return kept as Defined<T>; // exactly the fields that are not undefined
}
