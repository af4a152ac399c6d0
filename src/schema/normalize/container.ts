/** Objects and arrays of a target's schema. What they hold is lowered by the function they are given. */
import type { JsonObject } from "../../base/json.ts";
import { spellProperty } from "../property.ts";
import { addNull, untyped, type LeafContext, type Written } from "./leaf.ts";
import type { Shape } from "./shape.ts";

type Lower<At> = (shape: Shape, at: At) => JsonObject;

export function lowerObject<At extends LeafContext>(shape: Shape, at: At, lower: Lower<At>): Written {
  const { rules, trail } = at;
  const properties: Written = {};
  const required: string[] = [];
  const demanded = new Set(shape.required);
  for (const [name, inner] of shape.properties ?? []) {
    if (inner.never) {
      trail.change(inner.at, "a property that takes nothing was left out");
      continue;
    }
    const key = rules.plainNames ? spellProperty(name) : name;
    if (key !== name) trail.change(inner.at, `renamed to '${key}'`);
    const isRequired = demanded.has(name);
    const lowered = lower(inner, at);
    if (rules.closed && !isRequired) trail.change(inner.at, "optional, so it may be null");
    properties[key] = rules.closed && !isRequired ? addNull(lowered, true, rules) : lowered;
    if (isRequired || rules.closed) required.push(key);
  }
  for (const name of demanded) {
    if (!shape.properties?.has(name)) trail.change(`${shape.at}/required`, `'${name}' is required but not described`);
  }
  const isNamed = shape.properties !== undefined || rules.emptyProperties;
  return {
    ...(isNamed ? { properties } : {}),
    ...(required.length > 0 || rules.closed ? { required } : {}),
    ...lowerAdditional(shape, at, lower),
  };
}

function lowerAdditional<At extends LeafContext>(shape: Shape, at: At, lower: Lower<At>): Written {
  const { rules, trail } = at;
  if (rules.closed) {
    if (shape.additional !== false)
      trail.change(
        shape.at,
        typeof shape.additional === "object"
          ? "a free map cannot be written; the object was closed"
          : "the object was closed",
      );
    return { additionalProperties: false };
  }
  if (shape.additional === undefined) return {};
  if (!rules.additional) {
    if (shape.additional !== true)
      trail.change(`${shape.at}/additionalProperties`, "additionalProperties was left out");
    return {};
  }
  if (typeof shape.additional === "boolean") return { additionalProperties: shape.additional };
  return { additionalProperties: shape.additional.never ? false : lower(shape.additional, at) };
}

export function lowerItems<At extends LeafContext>(shape: Shape, at: At, lower: Lower<At>): Written {
  const bound = [shape.limits.get("maxItems"), shape.limits.get("minItems")].find(
    (limit) => typeof limit === "number" && limit * at.repeats <= at.rules.largestBound,
  );
  const next = { ...at, repeats: at.repeats * Math.max(1, Number(bound ?? 1)) };
  if (!shape.items) at.trail.change(shape.at, "an array without items got some");
  return {
    items:
      shape.items && !shape.items.never
        ? lower(shape.items, next)
        : untyped({ limits: new Map(), said: [], at: `${shape.at}/items` }, at.rules, at.trail),
  };
}
