/** Local references: what they point to, read once, and the `$defs` table of those that stay. */
import { isObject } from "../../base/json.ts";
import { resolvePointer } from "../subschema.ts";
import { readShape, type Shape } from "./shape.ts";
import type { Trail } from "./trail.ts";

export interface References {
  read(ref: string): Shape;
  /** The name under which a reference's target is written. Asking for it adds the target to the list. */
  nameOf(ref: string): string;
  /** References that were named since the last call. */
  takeNew(): readonly { readonly ref: string; readonly name: string }[];
}

export function createReferences(root: unknown, trail: Trail): References {
  const shapes = new Map<string, Shape>();
  const names = new Map<string, string>();
  const used = new Set<string>();
  let fresh: { readonly ref: string; readonly name: string }[] = [];

  function read(ref: string): Shape {
    const known = shapes.get(ref);
    if (known) return known;
    const target = ref.startsWith("#") ? resolvePointer(root, ref) : findById(root, ref);
    const shape = readShape(target ?? true, ref.replace(/^#/, ""), trail);
    shapes.set(ref, shape);
    return shape;
  }

  function nameOf(ref: string): string {
    const known = names.get(ref);
    if (known !== undefined) return known;
    const name = freeName(ref, used);
    used.add(name);
    names.set(ref, name);
    fresh.push({ ref, name });
    return name;
  }

  return {
    read,
    nameOf,
    takeNew() {
      const taken = fresh;
      fresh = [];
      return taken;
    },
  };
}

/** The last part of the pointer, in characters that every provider accepts. */
function freeName(ref: string, used: ReadonlySet<string>): string {
  const last = ref === "#" ? "root" : (ref.split("/").at(-1) ?? "");
  const plain = last.replaceAll(/[^A-Za-z0-9_]/g, "_").slice(0, 48) || "schema";
  for (let count = 1; ; count++) {
    const name = count === 1 ? plain : `${plain}_${count}`;
    if (!used.has(name)) return name;
  }
}

/** A reference by `$id` or anchor, searched only in the tables of definitions. */
function findById(root: unknown, ref: string): unknown {
  if (!isObject(root)) return undefined;
  const tables = [root["$defs"], root["definitions"]].filter(isObject).flatMap((table) => Object.values(table));
  return tables.find((schema) => isObject(schema) && (schema["$id"] === ref || schema["id"] === ref));
}
