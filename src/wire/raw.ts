/** Reading what somebody else's server or client wrote, where every field may be missing, null or of another type. */
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { Extra } from "../spec/model.ts";

export type Raw = Record<string, unknown>;

/** A frame's JSON object, or undefined for anything else (`[DONE]`, broken text, a bare value). */
export function parseObject(data: string): Raw | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isObject(value) ? value : undefined;
  } catch {
    // Not JSON, so the caller skips the frame, as every reader of these streams does.
    return undefined;
  }
}

export function object(value: unknown): Raw {
  return isObject(value) ? value : {};
}

export function string(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A string that is not empty. */
export function word(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.trunc(value) : undefined;
}

export function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

export function boolean(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

export function array(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function objects(value: unknown): readonly Raw[] {
  return array(value).filter(isObject);
}

/** The value came from JSON.parse, or was built from such values, which the compiler cannot know. */
export function json(value: unknown): Json {
  return value as Json;
}

/** As `json`, for what is known to be an object. */
export function jsonObject(value: Raw): JsonObject {
  return value as JsonObject;
}

/** What a wire said beyond the fields that have a neutral name. Nulls are ignored. */
export function extraFields(wire: string, raw: Raw, known: ReadonlySet<string>): Extra | undefined {
  let fields: Raw | undefined;
  for (const key of Object.keys(raw)) {
    if (known.has(key) || raw[key] === null || raw[key] === undefined) continue;
    fields ??= {};
    fields[key] = raw[key];
  }
  return fields === undefined ? undefined : { wire, fields: jsonObject(fields) };
}

/** Adds fields to an extra, or makes one. */
export function withFields(wire: string, extra: Extra | undefined, fields: Raw): Extra {
  return { wire, fields: jsonObject({ ...extra?.fields, ...fields }) };
}

/** The fields to send back: only those that this wire itself once sent. */
export function echoed(extra: Extra | undefined, wire: string): JsonObject {
  return extra !== undefined && extra.wire === wire ? extra.fields : {};
}

/** Undefined instead of an object without fields. */
export function nonEmpty<T extends object>(value: T): T | undefined {
  return Object.keys(value).length === 0 ? undefined : value;
}

/** Whether the text is complete JSON, which the arguments of a function call must be before it may run. */
export function isWhole(text: string): boolean {
  if (text.trim() === "") return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
