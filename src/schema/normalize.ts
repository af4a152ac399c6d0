/**
 * Turns any JSON into a schema that a provider accepts, with a list of changes. Whatever comes in,
 * something valid for the target comes out. Arguments are still checked against the original.
 */
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { findFaults, withoutFaults } from "./fault.ts";
import { inferTypes } from "./normalize/leaf.ts";
import { isObjectShape, lower, resolve, type Lowering } from "./normalize/lower.ts";
import { mergeShapes, uniteObjects } from "./normalize/merge.ts";
import { createReferences } from "./normalize/reference.ts";
import { findTarget, schemaTargets, targetRules, type SchemaTarget } from "./normalize/rules.ts";
import { readShape, type Shape } from "./normalize/shape.ts";
import { shrink } from "./normalize/shrink.ts";
import { createTrail, type Change, type Trail } from "./normalize/trail.ts";
import { listDifferences } from "./normalize/difference.ts";
import { wrappedRootKey } from "./property.ts";

export { findTarget, schemaTargets, type SchemaTarget } from "./normalize/rules.ts";

/** A schema that a provider accepts, with everything that had to be changed. */
export interface NormalizedSchema {
  readonly schema: JsonObject;
  readonly changes: readonly Change[];
}

/** Options of `normalizeSchema`. */
export interface NormalizeSchemaOptions {
  /**
   * The maximal size of the result, as JSON. Descriptions are cut first, then depth, and each cut is
   * listed among the changes. Left out: no limit. One tool of many should stay below 5,000.
   */
  readonly maxBytes?: number;
}

/** Tools are sent with every request, so their schemas are lowered once. */
const known = new WeakMap<object, Map<SchemaTarget, NormalizedSchema>>();

/** Lowers a JSON Schema to what a provider's API accepts. Every change is listed with its path and reason. */
export function normalizeSchema(
  schema: unknown,
  target: SchemaTarget,
  options: NormalizeSchemaOptions = {},
): NormalizedSchema {
  if (!isObject(schema) || options.maxBytes !== undefined) return createNormalized(schema, target, options);
  let byTarget = known.get(schema);
  if (!byTarget) known.set(schema, (byTarget = new Map()));
  let result = byTarget.get(target);
  if (!result) byTarget.set(target, (result = createNormalized(schema, target, options)));
  return result;
}

function createNormalized(
  schema: unknown,
  target: SchemaTarget,
  { maxBytes }: NormalizeSchemaOptions,
): NormalizedSchema {
  const found = findTarget(target);
  if (found === undefined) throw new TypeError(`there is no target '${String(target)}' (${schemaTargets.join(", ")})`);
  const trail = createTrail();
  const source = readSource(schema, trail);
  const refs = createReferences(source, trail);
  const at: Lowering = { rules: targetRules[found], trail, refs, open: [], repeats: 1, depth: 0 };
  const root = lower(toRoot(readShape(source, "", trail), at), at);
  const table = lowerDefinitions(at);
  const whole = table ? { ...root, $defs: table } : root;
  const listAll = () => {
    if (isObject(schema)) listDifferences(schema, whole, trail);
    return trail.changes();
  };
  if (maxBytes === undefined) return withLateChanges(whole, listAll);
  listAll();
  return { schema: shrink(whole, maxBytes, at.rules, trail), changes: trail.changes() };
}

/** A request needs the schema only, and to compare it with the one that came takes a fifth of the time. */
function withLateChanges(schema: JsonObject, listAll: () => readonly Change[]): NormalizedSchema {
  let changes: readonly Change[] | undefined;
  return {
    schema,
    get changes() {
      return (changes ??= listAll());
    },
  };
}

/** The schema without its own faults. */
function readSource(schema: unknown, trail: Trail): JsonObject {
  if (!isObject(schema)) {
    trail.change("", "not an object schema; replaced by one without parameters");
    return {};
  }
  const source = schema as JsonObject; // An object that came from JSON.
  const faults = findFaults(source);
  for (const { at, what } of faults) trail.change(`/${at.join("/")}`, what);
  return withoutFaults(source, faults);
}

/** One entry for each reference that stays, and for those that its target brings along. */
function lowerDefinitions(at: Lowering): JsonObject | undefined {
  const table = new Map<string, Json>();
  for (let fresh = at.refs.takeNew(); fresh.length > 0; fresh = at.refs.takeNew()) {
    for (const { ref, name } of fresh) table.set(name, lower(at.refs.read(ref), { ...at, depth: 1 }));
  }
  return table.size === 0 ? undefined : Object.fromEntries([...table].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Every target requires one object at the root, without alternatives and with its properties visible. */
function toRoot(source: Shape, at: Lowering): Shape {
  const shape = flatten(source, at, 0);
  const types = rootTypes(shape);
  if (!types || types.includes("object")) return asObject(shape, at);
  at.trail.change("", `the root is not an object; wrapped as '${wrappedRootKey}'`);
  return {
    ...empty,
    types: ["object"],
    properties: new Map([[wrappedRootKey, { ...shape, types }]]),
    required: [wrappedRootKey],
    additional: false,
  };
}

const empty: Shape = { at: "", limits: new Map(), said: [] };

/**
 * The evident type of a root without a type; a bound alone does not make it one. The same rule unwraps
 * the arguments again.
 */
function rootTypes(shape: Shape): Shape["types"] {
  const isPlain = shape.types ?? shape.enum ?? shape.items;
  return isPlain && !shape.properties ? (shape.types ?? inferTypes({ ...shape, limits: new Map() })) : shape.types;
}

function asObject(shape: Shape, { trail }: Lowering): Shape {
  if (!shape.types) trail.change("", "type object was set at the root");
  else if (shape.types.length > 1) trail.change("/type", "only an object is taken at the root");
  if (shape.enum) trail.change("/enum", "an enum at the root was left out");
  const { enum: _, items: __, default: ___, never: ____, anyOf: _____, ...rest } = shape;
  const limits = new Map([...shape.limits].filter(([keyword]) => keyword.endsWith("Properties")));
  return { ...rest, limits, types: ["object"], properties: shape.properties ?? new Map() };
}

/**
 * Reduces references, allOf and alternatives at the root to one shape. Alternatives of other types are
 * wrapped later, as one.
 */
function flatten(source: Shape, at: Lowering, depth: number): Shape {
  const shape: Shape = resolve(source, at).shape ?? empty;
  if (!shape.anyOf || depth > 8) return shape;
  const { anyOf, ...own } = shape;
  const base: Shape = own;
  const branches = anyOf
    .filter((branch) => !branch.never)
    .map((branch) => flatten(mergeShapes(base, branch), at, depth + 1));
  const objects = branches.filter((branch) => isObjectShape(branch));
  if (objects.length > 0) {
    at.trail.change(source.at, "alternatives at the root were merged into one object");
    const united = uniteObjects(objects, source.at);
    return {
      ...united,
      ...(base.description === undefined ? {} : { description: base.description }),
      said: [...new Set([...base.said, ...united.said])],
    };
  }
  const types = branches.map(rootTypes);
  if (types.includes(undefined) || types.length === 0) return base;
  return { ...shape, types: [...new Set(types.flatMap((list) => list ?? []))] };
}
