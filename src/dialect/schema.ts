/** What a schema says of the things inside a value, whichever of its branches says it. */
import { isObject } from "../base/json.ts";
import { follow } from "../schema/subschema.ts";

const branchLimit = 4;

/** The schema itself and the branches of its unions, references followed. */
function branchesOf(schema: unknown, root: unknown, depth = 0): readonly Record<string, unknown>[] {
  const node = follow(root, schema);
  const unions = ["anyOf", "oneOf", "allOf"].flatMap((keyword) => {
    const list = node[keyword];
    return Array.isArray(list) ? list : [];
  });
  if (unions.length === 0 || depth >= branchLimit) return [node];
  return [node, ...unions.flatMap((branch) => branchesOf(branch, root, depth + 1))];
}

/** Declared properties by name. */
export function propertiesOf(schema: unknown, root: unknown): Record<string, unknown> {
  const maps = branchesOf(schema, root).flatMap(({ properties }) => (isObject(properties) ? [properties] : []));
  // The first branch that declares a name is the one.
  return maps.length === 1 ? maps[0]! : Object.fromEntries(maps.toReversed().flatMap(Object.entries));
}

/** Every declaration of a property, but for those in branches that contradict what was given before it. */
export function declarationsOf(schema: unknown, name: string, given: ReadonlyMap<string, string>): readonly unknown[] {
  return branchesOf(schema, schema).flatMap(({ properties }) =>
    isObject(properties) && Object.hasOwn(properties, name) && !contradicts(properties, given)
      ? [properties[name]]
      : [],
  );
}

function contradicts(properties: Record<string, unknown>, given: ReadonlyMap<string, string>): boolean {
  return [...given].some(([name, text]) => {
    const declared = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isObject(declared)) return false;
    const { enum: list, const: only = text } = declared;
    return !(Array.isArray(list) ? list : [only]).some((value) => String(value) === text);
  });
}

/** The schema of one property: as declared, else what holds for all others. */
export function propertyIn(schema: unknown, name: string, root: unknown): unknown {
  const properties = propertiesOf(schema, root);
  if (Object.hasOwn(properties, name)) return properties[name];
  return branchesOf(schema, root)
    .map(({ additionalProperties }) => additionalProperties)
    .find(isObject);
}

/** The schema of a list's items. */
export function itemsOf(schema: unknown, root: unknown): unknown {
  return branchesOf(schema, root).find((branch) => Object.hasOwn(branch, "items"))?.["items"];
}
