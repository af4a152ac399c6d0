/** Arguments that Vertex streams value by value, each under the JSON path where it belongs. */
import { writeArguments } from "../arguments.ts";
import { objects, type Raw, string } from "../raw.ts";

export interface PartialArgs {
  /** `partialArgs` of one chunk. */
  take(list: unknown): void;
  /** What came so far, as JSON; text that is no JSON where a path made no sense, so that nobody runs it. */
  text(): string;
}

type Key = string | number;

export function createPartialArgs(): PartialArgs {
  const root = createObject();
  let isBroken = false;
  return {
    take(list) {
      for (const piece of objects(list)) isBroken ||= !put(root, readPath(string(piece["jsonPath"]) ?? ""), piece);
    },
    text: () => (isBroken ? "{" : writeArguments(root)),
  };
}

/** Without a prototype: the paths are the model's. */
function createObject(): Raw {
  return Object.create(null) as Raw; // `create` is typed to return anything
}

const step = /\.([^.[\]]+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]/y;

/** The keys of `$.items[0]['a name']`; undefined for anything that is not such a path. */
function readPath(path: string): readonly Key[] | undefined {
  if (!path.startsWith("$") || path.length < 2) return undefined;
  const keys: Key[] = [];
  step.lastIndex = 1;
  for (let at = 1; at < path.length; at = step.lastIndex) {
    const found = step.exec(path);
    if (found === null) return undefined;
    const [, name, index, single, double] = found;
    keys.push(index === undefined ? (name ?? single ?? double ?? "") : Number(index));
  }
  return keys;
}

/** Sets a value, or adds to the text that stands there. False where the path leads through something else. */
function put(root: Raw, keys: readonly Key[] | undefined, piece: Raw): boolean {
  if (keys === undefined) return false;
  let node: unknown = root;
  for (const [depth, key] of keys.entries()) {
    if (!canHold(node, key)) return false;
    const held = node as Record<Key, unknown>; // an object or a list, whose keys `canHold` has seen
    const next = keys[depth + 1];
    if (next === undefined) held[key] = valueOf(piece, held[key]);
    else held[key] ??= typeof next === "number" ? [] : createObject();
    node = held[key];
  }
  return true;
}

/** Lists grow by one: a far index would make one that no memory holds. */
function canHold(node: unknown, key: Key): boolean {
  if (Array.isArray(node)) return typeof key === "number" && key <= node.length;
  return typeof node === "object" && node !== null && typeof key === "string";
}

function valueOf(piece: Raw, before: unknown): unknown {
  const words = string(piece["stringValue"]);
  if (words !== undefined) return (string(before) ?? "") + words;
  return piece["numberValue"] ?? piece["boolValue"] ?? ("nullValue" in piece ? null : (before ?? ""));
}
