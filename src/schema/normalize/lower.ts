/** Turns a shape into a target's schema. Recursion is bounded by the shape's depth and, for references, explicitly. */
import { defined, type Json, type JsonObject } from "../../base/json.ts";
import { lowerItems, lowerObject } from "./container.ts";
import { describe } from "./describe.ts";
import { addNull, descriptionOf, fits, inferTypes, lowerEnum, lowerLimits, untyped, type LeafContext } from "./leaf.ts";
import { mergeShapes, uniteObjects } from "./merge.ts";
import type { References } from "./reference.ts";
import type { TargetRules } from "./rules.ts";
import type { Shape, TypeName } from "./shape.ts";

export interface Lowering extends LeafContext {
  readonly refs: References;
  /** References that are being written in place right now, from the outside in. */
  readonly open: readonly string[];
  readonly depth: number;
}

const deepest = 60;
/** How deep references inside references are written in place. What lies further down is described instead. */
const deepestInline = 3;

export function lower(source: Shape, at: Lowering): JsonObject {
  const { rules, trail } = at;
  if (at.depth > deepest || !trail.spend("write")) {
    trail.change(source.at, "nested too deep or too large; cut here");
    return untyped(source, rules, trail);
  }
  if (at.open.length > 0) trail.spend("inline");
  const inner = { ...at, depth: at.depth + 1 };
  if (source.ref !== undefined && rules.refs === "keep" && isPlainRef(source))
    return lowerRef(source, source.ref, inner);
  const { shape, next } = resolve(source, inner);
  if (!shape) return cutRecursion(source, at);
  if (shape.anyOf) return lowerUnion(shape, shape.anyOf, next);
  return lowerTypes(shape, next);
}

/** Nothing but words beside the reference, so it can stay one. */
function isPlainRef(shape: Shape): boolean {
  return (
    !shape.types &&
    !shape.properties &&
    !shape.items &&
    !shape.anyOf &&
    !shape.allOf &&
    !shape.enum &&
    !shape.required &&
    shape.limits.size === 0
  );
}

function lowerRef(shape: Shape, ref: string, { rules, refs }: Lowering): JsonObject {
  const written = { $ref: `#/$defs/${refs.nameOf(ref)}` };
  return rules.refDescription && shape.description !== undefined
    ? { ...written, description: shape.description }
    : written;
}

/** Follows references and merges allOf, so that types, properties and alternatives are left. */
export function resolve(source: Shape, at: Lowering): { readonly shape: Shape | undefined; readonly next: Lowering } {
  let shape: Shape = source;
  let open = at.open;
  for (let steps = 0; shape.ref !== undefined || shape.allOf; steps++) {
    const { ref, allOf = [], ...own } = shape;
    if (ref !== undefined) {
      // Written in place, a schema that contains itself never ends, and one that repeats grows beyond use.
      if (steps > 100 || open.length >= deepestInline || open.includes(ref) || at.trail.spent("inline"))
        return { shape: undefined, next: at };
      open = [...open, ref];
    }
    if (allOf.length > 0) at.trail.change(source.at, "allOf was merged");
    const parts = [...(ref === undefined ? [] : [at.refs.read(ref)]), ...allOf];
    shape = parts.reduce((merged, part) => mergeShapes(merged, part), own as Shape);
  }
  return { shape, next: { ...at, open } };
}

function cutRecursion(source: Shape, { rules, trail }: Lowering): JsonObject {
  trail.change(source.at, "a recursive reference was cut");
  const words = describe(source.description, ["nested further in the same way"]);
  return {
    type: "object",
    description: words,
    ...(rules.emptyProperties ? { properties: {} } : {}),
    ...(rules.closed ? { required: [], additionalProperties: false } : {}),
  };
}

function lowerUnion(shape: Shape, alternatives: readonly Shape[], at: Lowering): JsonObject {
  const { anyOf: _, description, default: value, said, ...base } = shape;
  const nullable = alternatives.some(isNull) || (shape.types?.includes("null") ?? false);
  const branches = alternatives
    .filter((branch) => !isNull(branch) && !branch.never)
    .map((branch) =>
      isBare(base as Shape)
        ? branch
        : (resolve(mergeShapes(branch, { ...(base as Shape), said: [] }), at).shape ?? branch),
    );
  const words = {
    at: shape.at,
    ...defined({ description, default: value }),
    said,
  };
  if (branches.length === 0) return lower({ limits: new Map(), ...words, types: ["null"] }, at);
  if (branches.length === 1) return addNull(lower(withWords(branches[0]!, words), at), nullable, at.rules);
  const flat = branches.map((branch) => resolve(branch, at).shape).filter((branch) => branch !== undefined);
  // Properties beside the alternatives: one object holds all of them, because few targets accept both.
  if (shape.properties && flat.every(isObjectShape)) {
    at.trail.change(shape.at, "alternatives of one object were merged");
    return addNull(lower(withWords(uniteObjects(flat, shape.at), words), at), nullable, at.rules);
  }
  return at.rules.unions === "first" ? lowerFirst(flat, words, at) : lowerAlternatives(branches, words, nullable, at);
}

type Words = Pick<Shape, "at" | "description" | "default" | "said">;

function withWords(shape: Shape, words: Words): Shape {
  const description = words.description ?? shape.description;
  return {
    ...shape,
    ...defined({ description, default: words.default }),
    said: [...shape.said, ...words.said],
  };
}

function isNull(shape: Shape): boolean {
  return (
    (shape.types?.length === 1 && shape.types[0] === "null") || (shape.enum?.length === 1 && shape.enum[0] === null)
  );
}

function isBare(shape: Shape): boolean {
  return (
    !shape.types &&
    !shape.enum &&
    !shape.properties &&
    !shape.items &&
    !shape.required &&
    shape.additional === undefined &&
    shape.limits.size === 0
  );
}

export function isObjectShape(shape: Shape): boolean {
  return shape.types ? shape.types.includes("object") : Boolean(shape.properties ?? shape.required ?? shape.additional);
}

/** For targets without alternatives: objects are united; otherwise the first one stands for all. */
function lowerFirst(branches: readonly Shape[], words: Words, at: Lowering): JsonObject {
  at.trail.change(words.at, "of several alternatives one was kept");
  const [first] = branches;
  if (!first) return untyped({ limits: new Map(), ...words }, at.rules, at.trail);
  const one = branches.every((branch) => isObjectShape(branch) && branch.properties)
    ? uniteObjects(branches, words.at)
    : first;
  const types = branches.map((branch) => branch.types?.join(" or ") ?? "any");
  const said =
    one === first && new Set(types).size > 1 ? [`also: ${[...new Set(types.slice(1))].slice(0, 6).join(", ")}`] : [];
  return lower(withWords(one, { ...words, said: [...words.said, ...said] }), at);
}

function lowerAlternatives(branches: readonly Shape[], words: Words, takesNull: boolean, at: Lowering): JsonObject {
  const all = uniqueSchemas(branches.map((branch) => lower(branch, at)).flatMap(flattenUnion));
  // null comes last, however deep inside it was said.
  const written = all.filter((schema) => schema["type"] !== "null");
  const nullable = takesNull || written.length < all.length;
  const description = describe(words.description, [...words.said, ...defaultWords(words, at)]);
  if (written.length < 2)
    return addNull(withDescription(written[0] ?? { type: "null" }, description), nullable, at.rules);
  if (at.rules.unions === "anyOf-alone") {
    const [first, ...rest] = written;
    return addNull({ anyOf: [withDescription(first!, description), ...rest] }, nullable, at.rules);
  }
  const value = at.rules.default && words.default !== undefined ? { default: words.default } : {};
  return addNull({ ...(description === "" ? {} : { description }), anyOf: written, ...value }, nullable, at.rules);
}

/** `anyOf` directly inside `anyOf` is the same as one list. */
function flattenUnion(schema: JsonObject): readonly JsonObject[] {
  const keys = Object.keys(schema);
  return keys.length === 1 && keys[0] === "anyOf" ? (schema["anyOf"] as readonly JsonObject[]) : [schema];
}

function uniqueSchemas(schemas: readonly JsonObject[]): readonly JsonObject[] {
  return schemas.length > 100
    ? schemas
    : [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
}

function withDescription(schema: JsonObject, description: string): JsonObject {
  if (description === "" || "$ref" in schema) return schema;
  const own = schema["description"];
  return {
    ...schema,
    description: typeof own === "string" && own !== description ? `${description} ${own}` : description,
  };
}

function lowerTypes(shape: Shape, at: Lowering): JsonObject {
  const { rules, trail } = at;
  const all = shape.types ?? inferTypes(shape);
  if (!all) return untyped(shape, rules, trail);
  if (!shape.types && !shape.enum) trail.change(shape.at, `type ${all.join()} was inferred`);
  const nullable = all.includes("null");
  const named = all.filter((type) => type !== "null");
  const types = named.includes("number") ? named.filter((type) => type !== "integer") : named;
  if (types.length === 0)
    return rules.nulls === "type"
      ? { type: "null", ...descriptionOf(shape) }
      : addNull(untyped({ ...shape, enum: [] }, { ...rules, untyped: "string" }, trail), true, rules);
  if (types.length > 1 && !keepsList(types, shape, rules)) {
    trail.change(`${shape.at}/type`, "a list of types became alternatives");
    const { types: _, enum: values, ...rest } = shape;
    const branches = types.map((type) => onlyFor(type, rest as Shape, values));
    const words = {
      at: shape.at,
      said: shape.said,
      ...defined({ description: shape.description }),
    };
    return rules.unions === "first"
      ? lowerFirst(branches.slice(0, 1), words, at)
      : lowerAlternatives(branches, words, nullable, at);
  }
  if (rules.nulls === "drop" && nullable) trail.change(`${shape.at}/type`, "null was left out");
  return addNull(lowerNamed(shape, types, at), nullable, rules);
}

/** Scalars may share one schema if lists of types are accepted. Objects and arrays need their own keywords. */
function keepsList(types: readonly TypeName[], shape: Shape, rules: TargetRules): boolean {
  return rules.typeLists && !(types.includes("object") && types.includes("array")) && shape.properties === undefined;
}

function onlyFor(type: TypeName, shape: Shape, values: readonly Json[] | undefined): Shape {
  const { description: _, default: __, ...rest } = shape;
  const fitting = values?.filter((value) => fits(value, type));
  return { ...rest, said: [], types: [type], ...(fitting && fitting.length > 0 ? { enum: fitting } : {}) };
}

/** A default that the target cannot hold, in words. */
function defaultWords(shape: Pick<Shape, "at" | "default">, { rules, trail }: Lowering): readonly string[] {
  if (rules.default || shape.default === undefined) return [];
  trail.change(`${shape.at}/default`, "default went into the description");
  const text = JSON.stringify(shape.default);
  return text.length > 200 ? [] : [`default: ${text}`];
}

function lowerNamed(shape: Shape, types: readonly TypeName[], at: Lowering): JsonObject {
  const { rules, trail } = at;
  if (!rules.integer && types.includes("integer")) trail.change(`${shape.at}/type`, "integer became number");
  const names: readonly TypeName[] = rules.integer
    ? types
    : types.map((type) => (type === "integer" ? "number" : type));
  const values = lowerEnum(shape, names, at);
  // Values that became text have no bounds of numbers.
  const { written, said } = lowerLimits(shape, values.type === undefined ? names : [values.type], at);
  const words = describe(shape.description, [...shape.said, ...values.said, ...said, ...defaultWords(shape, at)]);
  const value = rules.default && shape.default !== undefined ? { default: shape.default } : {};
  return {
    type: values.type ?? (names.length === 1 ? names[0]! : [...names]),
    ...(words === "" ? {} : { description: words }),
    ...values.written,
    ...(names.includes("object") ? lowerObject(shape, at, lower) : {}),
    ...(names.includes("array") ? lowerItems(shape, at, lower) : {}),
    ...written,
    ...value,
  };
}
