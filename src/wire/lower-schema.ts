import type { JsonObject } from "../base/json.ts";
import { normalize, type SchemaTarget } from "../spec/normalize.ts";

/** Lowered once per schema and target: every request of a session carries the same tools. */
const lowered = new WeakMap<JsonObject, Map<SchemaTarget, JsonObject>>();

export function lowerSchema(schema: JsonObject, target: SchemaTarget): JsonObject {
  let byTarget = lowered.get(schema);
  if (byTarget === undefined) lowered.set(schema, (byTarget = new Map()));
  let result = byTarget.get(target);
  if (result === undefined) byTarget.set(target, (result = normalize(schema, target).schema));
  return result;
}
