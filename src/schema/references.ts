/**
 * Simplifies references under a nested `$id`: `$ref` is resolved against the nearest `$id` above it,
 * as the specification says, and written as a pointer from the root. The network is never used: what
 * is outside the document stays as it is.
 */
import type { JsonObject } from "../base/json.ts";
import { subschemas } from "./subschema.ts";

/** The base address of a document without its own. */
const nowhere = "schema:///root";
/** The same limit as in the rest of this folder. */
const mostParts = 20_000;

interface Part {
  readonly node: Record<string, unknown>;
  readonly pointer: string;
  /** The address that references in it are resolved against. */
  readonly base: string;
}

/**
 * Returns the schema itself if no part of it has its own `$id`. With `$dynamicRef` it is left to the
 * validator, because a pointer says less than the name.
 */
export function withPlainReferences(root: JsonObject): JsonObject {
  const parts = partsOf(root);
  const isNamed = ({ node }: Part) => (node === root ? hasFragment(root) : idOf(node) !== undefined);
  if (!parts.some(isNamed) || parts.some(({ node }) => node["$dynamicRef"] !== undefined)) return root;
  const places = new Map<string, string>();
  for (const { node, pointer, base } of parts) {
    if (idOf(node) !== undefined || node === root) places.set(base, places.get(base) ?? pointer);
    for (const keyword of ["$anchor", "$dynamicAnchor"] as const) {
      const anchor = node[keyword];
      if (typeof anchor === "string") places.set(`${base}#${anchor}`, places.get(`${base}#${anchor}`) ?? pointer);
    }
    // Draft-07 names a place by a fragment as its `$id`.
    const id = node["$id"];
    if (typeof id === "string" && /^#[^/]/.test(id)) places.set(`${base}${id}`, pointer);
  }
  const copies = new Map<unknown, Record<string, unknown>>();
  for (const { node, base } of parts) {
    const ref = node["$ref"];
    const target = typeof ref === "string" ? targetOf(ref, base, places) : undefined;
    const isNested = node !== root && idOf(node) !== undefined;
    const isRoot = node === root && hasFragment(root);
    if (target === undefined && !isNested && !isRoot) continue;
    const { $id, ...rest } = node;
    const kept = isNested || isRoot || $id === undefined ? rest : { ...rest, $id };
    copies.set(node, target === undefined ? kept : { ...kept, $ref: target });
  }
  return rebuilt(root, copies) as JsonObject; // Objects were copied with their own keys; nothing else was put in.
}

/** Every schema inside, with its pointer and the address of its document. */
function partsOf(root: JsonObject): readonly Part[] {
  const parts: Part[] = [];
  const seen = new Set<unknown>();
  const isOld = isDraft7(root);
  const stack: Part[] = [{ node: root, pointer: "#", base: resolve(idOf(root) ?? "", nowhere) ?? nowhere }];
  for (let part = stack.pop(); part && parts.length < mostParts; part = stack.pop()) {
    if (seen.has(part.node)) continue;
    seen.add(part.node);
    parts.push(part);
    for (const { keys, schema } of subschemas(part.node)) {
      const pointer = `${part.pointer}/${keys.map(escaped).join("/")}`;
      // Draft-07 ignores everything beside a reference.
      const id = isOld && schema["$ref"] !== undefined ? undefined : idOf(schema);
      const base = id === undefined ? part.base : (resolve(id, part.base) ?? part.base);
      stack.push({ node: schema, pointer, base });
    }
  }
  return parts;
}

function isDraft7(root: JsonObject): boolean {
  const { $schema } = root;
  if (typeof $schema === "string") return /draft-0[4-7]/.test($schema);
  return root["definitions"] !== undefined && root["$defs"] === undefined;
}

function hasFragment(root: JsonObject): boolean {
  return /^[^#]+#./.test(idOf(root) ?? "");
}

/** A name of its own, and not only a fragment. */
function idOf(node: Readonly<Record<string, unknown>>): string | undefined {
  const id = node["$id"];
  return typeof id === "string" && id !== "" && !id.startsWith("#") ? id : undefined;
}

/** The address without its fragment. Undefined if it is not an address. */
function resolve(id: string, base: string): string | undefined {
  try {
    const url = new URL(id, base);
    url.hash = "";
    return url.href.replace(/#$/, "");
  } catch {
    return undefined; // Not an address: it names nothing.
  }
}

function targetOf(ref: string, base: string, places: ReadonlyMap<string, string>): string | undefined {
  const document = resolve(ref, base);
  if (document === undefined) return undefined;
  const hash = ref.includes("#") ? ref.slice(ref.indexOf("#") + 1) : "";
  if (hash !== "" && !hash.startsWith("/")) return places.get(`${document}#${hash}`);
  const place = places.get(document);
  return place === undefined ? undefined : `${place}${hash}`;
}

function escaped(key: string): string {
  return encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1"));
}

/** The tree with the copies in place of their originals. What did not change is shared. */
function rebuilt(value: unknown, copies: ReadonlyMap<unknown, Record<string, unknown>>): unknown {
  if (Array.isArray(value)) return value.map((inner) => rebuilt(inner, copies));
  if (typeof value !== "object" || value === null) return value;
  const fields = copies.get(value) ?? value;
  return Object.fromEntries(Object.entries(fields).map(([key, inner]) => [key, rebuilt(inner, copies)]));
}
