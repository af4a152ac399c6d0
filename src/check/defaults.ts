/**
 * Fills in the `default` values that a schema gives for parameters a call leaves out. A value that
 * needs none is returned as the same object.
 */
import { isObject, type JsonObject } from "../base/json.ts";

/** Defaults of schemas nested deeper than this are left to the handler. */
const maxDepth = 8;

const known = new WeakMap<object, boolean>();

export function fillDefaults(value: unknown, schema: JsonObject, notes: string[]): unknown {
  let has = known.get(schema);
  if (has === undefined) known.set(schema, (has = hasDefaults(schema, 0)));
  return has ? fill(value, schema, notes, "", 0) : value;
}

function hasDefaults(schema: unknown, depth: number): boolean {
  if (!isObject(schema) || depth > maxDepth) return false;
  if (schema["default"] !== undefined) return true;
  const { properties, items } = schema;
  const inner = isObject(properties) ? Object.values(properties) : [];
  return [...inner, items].some((one) => hasDefaults(one, depth + 1));
}

function fill(value: unknown, schema: unknown, notes: string[], path: string, depth: number): unknown {
  if (!isObject(schema) || depth > maxDepth) return value;
  if (Array.isArray(value)) {
    const filled = value.map((one, index) => fill(one, schema["items"], notes, `${path}[${index}]`, depth + 1));
    return filled.some((one, index) => one !== value[index]) ? filled : value;
  }
  const { properties } = schema;
  if (!isObject(value) || !isObject(properties)) return value;
  const added = Object.entries(properties).flatMap(([name, property]): readonly (readonly [string, unknown])[] => {
    const at = path === "" ? name : `${path}.${name}`;
    if (Object.hasOwn(value, name)) {
      const filled = fill(value[name], property, notes, at, depth + 1);
      return filled === value[name] ? [] : [[name, filled]];
    }
    if (!isObject(property) || property["default"] === undefined) return [];
    notes.push(`'${at}' was left out: its default was taken`);
    return [[name, structuredClone(property["default"])]];
  });
  return added.length === 0 ? value : { ...value, ...Object.fromEntries(added) };
}
