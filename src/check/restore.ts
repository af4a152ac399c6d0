/**
 * Undoes in a call's arguments what normalisation did to the schema for a provider: a root wrapped
 * into `{value}`, renamed properties, optional properties made nullable, and enums written as text. A
 * value that needs no change is returned as the same object.
 */
import { isObject } from "../base/json.ts";
import { typesOf } from "../schema/coerce.ts";
import { toPath } from "../schema/explain.ts";
import { spellProperty, wrappedRootKey } from "../schema/property.ts";
import { follow, subschemas } from "../schema/subschema.ts";

interface Walk {
  readonly root: Record<string, unknown>;
  readonly notes: string[];
}

type Key = string | number;

export function restore(value: unknown, root: Record<string, unknown>, hasNull: boolean, notes: string[]): unknown {
  const traits = traitsOf(root);
  const inner = traits.wrapped ? unwrap(value, root, notes) : value;
  return hasNull || traits.renames || traits.textEnums ? walk(inner, root, { root, notes }, []) : inner;
}

function unwrap(value: unknown, root: Record<string, unknown>, notes: string[]): unknown {
  if (!isObject(value) || !Object.hasOwn(value, wrappedRootKey) || Object.keys(value).length !== 1) return value;
  if (typesOf(follow(root, root), root, 0).has("object")) return value;
  notes.push(`the arguments were unwrapped from '${wrappedRootKey}'`);
  return value[wrappedRootKey];
}

interface Traits {
  readonly wrapped: boolean;
  readonly renames: boolean;
  readonly textEnums: boolean;
}

const known = new WeakMap<object, Traits>();

/** Which changes normalisation could have made to a schema. Found once per schema. */
function traitsOf(root: Record<string, unknown>): Traits {
  const cached = known.get(root);
  if (cached) return cached;
  let renames = false;
  let textEnums = false;
  const seen = new Set<unknown>();
  const stack = [root];
  for (let node = stack.pop(); node; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    if (isObject(node["properties"]))
      renames ||= Object.keys(node["properties"]).some((key) => spellProperty(key) !== key);
    const values = Array.isArray(node["enum"]) ? node["enum"] : [node["const"]];
    textEnums ||= values.some((value) => typeof value === "number" || typeof value === "boolean");
    for (const { schema } of subschemas(node)) stack.push(schema);
  }
  const types = typesOf(follow(root, root), root, 0);
  const traits = { wrapped: types.size > 0 && !types.has("object"), renames, textEnums };
  known.set(root, traits);
  return traits;
}

function walk(value: unknown, schema: unknown, at: Walk, path: readonly Key[]): unknown {
  const node = plainBranch(at.root, schema);
  if (Array.isArray(value)) return walkList(value, node, at, path);
  if (isObject(value)) return walkObject(value, node, at, path);
  return typeof value === "string" ? fromTextEnum(value, node, at, path) : value;
}

function walkList(value: readonly unknown[], node: Record<string, unknown>, at: Walk, path: readonly Key[]): unknown {
  if (!isObject(node["items"])) return value;
  const list = value.map((item, index) => walk(item, node["items"], at, [...path, index]));
  return list.some((item, index) => item !== value[index]) ? list : value;
}

function walkObject(
  value: Record<string, unknown>,
  node: Record<string, unknown>,
  at: Walk,
  path: readonly Key[],
): unknown {
  const properties = isObject(node["properties"]) ? node["properties"] : {};
  const required = Array.isArray(node["required"]) ? node["required"] : [];
  const originals = new Map(Object.keys(properties).map((key) => [spellProperty(key), key]));
  let changed = false;
  const entries: [string, unknown][] = [];
  for (const [written, inner] of Object.entries(value)) {
    const key = Object.hasOwn(properties, written) ? written : (originals.get(written) ?? written);
    const schema = Object.hasOwn(properties, key)
      ? properties[key]
      : isObject(node["additionalProperties"])
        ? node["additionalProperties"]
        : undefined;
    if (inner === null && Object.hasOwn(properties, key) && !required.includes(key) && !takesNull(at.root, schema)) {
      at.notes.push(`${toPath([...path, key])}: null left out, the property is optional`);
      changed = true;
      continue;
    }
    const restored = schema === undefined ? inner : walk(inner, schema, at, [...path, key]);
    changed ||= restored !== inner || key !== written;
    entries.push([key, restored]);
  }
  return changed ? Object.fromEntries(entries) : value;
}

function takesNull(root: unknown, schema: unknown): boolean {
  if (!isObject(schema)) return true;
  const types = typesOf(follow(root, schema), root, 0);
  return types.size === 0 || types.has("null");
}

function fromTextEnum(value: string, node: Record<string, unknown>, at: Walk, path: readonly Key[]): unknown {
  const values = Array.isArray(node["enum"]) ? node["enum"] : Object.hasOwn(node, "const") ? [node["const"]] : [];
  if (values.length === 0 || values.includes(value)) return value;
  const meant = values.find(
    (candidate) => (typeof candidate === "number" || typeof candidate === "boolean") && String(candidate) === value,
  );
  if (meant === undefined) return value;
  at.notes.push(`${toPath(path)}: text read as the ${typeof meant} ${value}`);
  return meant;
}

/** Follows references. Of a union with null, it returns the other branch. */
function plainBranch(root: Record<string, unknown>, schema: unknown): Record<string, unknown> {
  const node = follow(root, schema);
  const union = [node["anyOf"], node["oneOf"]].find(Array.isArray);
  if (!union || Object.hasOwn(node, "properties")) return node;
  const branches = union.map((branch: unknown) => follow(root, branch)).filter((branch) => branch["type"] !== "null");
  return branches.length === 1 ? branches[0]! : node;
}
