/**
 * Whatever differs between the schema that came and the one that goes out is in the list of changes,
 * whether or not it was noted on the way.
 */
import { isObject, stableStringify } from "../../base/json.ts";
import type { Trail } from "./trail.ts";

type Schema = Record<string, unknown>;

/** Keywords that hold one schema, a list of them, or a table by name. */
const inner = { one: ["items", "additionalProperties"], table: ["properties", "$defs"] } as const;
const deepest = 60;
/** Real schemas have some hundred nodes. Beyond this the list would be longer than anybody reads. */
const mostNodes = 2000;

export function listDifferences(before: Schema, after: Schema, trail: Trail): void {
  const listed = new Set(trail.changes().map(({ path }) => path));
  let left = mostNodes;
  compare(
    before,
    after,
    "",
    {
      say: (path, what) => {
        if (!listed.has(path)) trail.change(path, what);
      },
      visit: () => left-- > 0,
    },
    0,
  );
}

interface Walk {
  say(path: string, what: string): void;
  /** False when enough was compared. */
  visit(): boolean;
}

function compare(before: Schema, after: Schema, at: string, walk: Walk, depth: number): void {
  if (depth > deepest) return;
  const { say } = walk;
  for (const [key, value] of Object.entries(before)) {
    if (!walk.visit()) return;
    const path = `${at}/${escapeKey(key)}`;
    if (!Object.hasOwn(after, key)) say(path, reasonFor(key, value));
    else compareKeyword(key, value, after[key], path, walk, depth);
  }
  for (const key of Object.keys(after)) {
    if (!Object.hasOwn(before, key)) say(`${at}/${escapeKey(key)}`, addedFor(key));
  }
}

function compareKeyword(key: string, value: unknown, now: unknown, path: string, walk: Walk, depth: number): void {
  const { say } = walk;
  if (isOneOf(inner.one, key) && isObject(value) && isObject(now)) return compare(value, now, path, walk, depth + 1);
  if (isOneOf(inner.table, key) && isObject(value) && isObject(now)) {
    for (const [name, schema] of Object.entries(value)) {
      if (!walk.visit()) return;
      const place = `${path}/${escapeKey(name)}`;
      const other = Object.hasOwn(now, name) ? now[name] : undefined;
      if (isObject(schema) && isObject(other)) compare(schema, other, place, walk, depth + 1);
      else if (stableStringify(schema) !== stableStringify(other))
        say(place, other !== undefined ? "written as the target takes it" : goneFrom(key));
    }
    for (const name of Object.keys(now))
      if (!Object.hasOwn(value, name)) say(`${path}/${escapeKey(name)}`, "added for the target");
    return;
  }
  if (
    Array.isArray(value) &&
    Array.isArray(now) &&
    value.length === now.length &&
    value.every(isObject) &&
    now.every(isObject)
  ) {
    const list: readonly unknown[] = now;
    for (const [index, schema] of value.entries()) {
      const other = list[index];
      if (isObject(schema) && isObject(other)) compare(schema, other, `${path}/${index}`, walk, depth + 1);
    }
    return;
  }
  if (stableStringify(value) !== stableStringify(now)) say(path, changedFor(key));
}

function isOneOf(list: readonly string[], key: string): boolean {
  return list.includes(key);
}

const reasons: Readonly<Record<string, string>> = {
  title: "title was left out: the description or the name says it",
  $schema: "$schema was left out: the target has no use for it",
  default: "default was left out: the target has none here",
  anyOf: "alternatives were flattened or dropped: the target takes one form",
  oneOf: "oneOf became anyOf, or one form: the target has no oneOf",
  $ref: "the reference was written in place, or merged with what stood beside it",
  $defs: "the definitions were written where they are used",
  definitions: "the definitions were written where they are used, or into $defs",
  nullable: "nullable was written in the target's own way",
};

function goneFrom(table: string): string {
  return table === "$defs" ? "left out: nothing refers to it here any more" : "left out or renamed";
}

function addedFor(key: string): string {
  return key === "$defs" ? "the definitions that are used were put into one table" : `${key} was added for the target`;
}

function reasonFor(key: string, value: unknown): string {
  if (key === "type") return `type ${JSON.stringify(value)} was written in the target's own way`;
  return Object.hasOwn(reasons, key) ? reasons[key]! : `${key} was left out: the target does not take it here`;
}

function changedFor(key: string): string {
  if (key === "description") return "what the target cannot express was added to the description";
  if (key === "type") return "the type was written in the target's own way, null included or left out";
  return key === "required"
    ? "the list of required properties was written for the target"
    : `${key} was changed for the target`;
}

function escapeKey(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
