/** Which of many names may exist, found with one look at each folder instead of one at each name. */
import { lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { isAbsolute, join, resolve, sep } from "node:path";
import { foldName } from "../../base/names.ts";

/** For fewer names in one folder, looking at each is as cheap as listing the folder. */
const worthListing = 8;
/** A folder whose own entry is larger holds so much that looking at each name is cheaper. */
const maxFolderBytes = 16 * 1024;

/**
 * Those of these absolute paths that may exist: all that do, and perhaps some that do not. Names are compared as
 * the most tolerant file system would, so that no spelling of a name is missed.
 */
export function thatMayExist(paths: readonly string[]): ReadonlySet<string> {
  return lookFor(paths)();
}

/** Looks again with every call, and returns the same set object as before if the folders still hold the same names. */
export function lookFor(paths: readonly string[]): () => ReadonlySet<string> {
  const folders = byFolder(paths);
  let lists: readonly (readonly string[] | undefined)[] | undefined;
  let found: ReadonlySet<string> = new Set();
  return () => {
    const now = folders.map(([folder, inside]) => (inside.length < worthListing ? undefined : namesIn(folder)));
    const before = lists;
    if (before !== undefined && now.every((names, at) => isSameList(names, before[at]))) return found;
    lists = now;
    found = new Set(folders.flatMap(([, inside], at) => present(inside, now[at])));
    return found;
  };
}

export function isSameList(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
  if (a === b) return true;
  return a !== undefined && a.length === b?.length && a.every((word, at) => word === b[at]);
}

function present(paths: readonly string[], names: readonly string[] | undefined): readonly string[] {
  if (names === undefined) return paths;
  const folded = new Set(names.map(foldName));
  return paths.filter((path) => folded.has(lastNameOf(path)));
}

function byFolder(paths: readonly string[]): readonly (readonly [string, readonly string[]])[] {
  const folders = new Map<string, string[]>();
  for (const path of paths) {
    const folder = path.slice(0, path.lastIndexOf(sep));
    const others = folders.get(folder);
    if (others === undefined) folders.set(folder, [path]);
    else others.push(path);
  }
  return [...folders];
}

/** The same names are looked for before and after every command. */
const lastNames = new Map<string, string>();

function lastNameOf(path: string): string {
  const known = lastNames.get(path);
  if (known !== undefined) return known;
  if (lastNames.size > 2_000) lastNames.clear();
  const name = foldName(path.slice(path.lastIndexOf(sep) + 1));
  lastNames.set(path, name);
  return name;
}

/** Undefined if the folder cannot be listed, or is too large for it. */
function namesIn(folder: string): readonly string[] | undefined {
  try {
    const stats = statSync(folder || sep, { throwIfNoEntry: false });
    if (stats === undefined || stats.size > maxFolderBytes) return undefined;
    return readdirSync(folder || sep);
  } catch {
    return undefined; // it may be entered, but not listed
  }
}

const joined = new WeakMap<readonly string[], Map<string, readonly string[]>>();

/** These names as paths below a root, joined once, because all commands of a session protect the same. */
export function pathsBelow(root: string, names: readonly string[]): readonly string[] {
  const known = joined.get(names) ?? new Map<string, readonly string[]>();
  joined.set(names, known);
  const before = known.get(root);
  if (before !== undefined) return before;
  const all = names.map((name) => (isAbsolute(name) ? resolve(name) : join(root, name)));
  const paths = all.filter((path) => path.startsWith(root === sep ? sep : root + sep) && path !== root);
  known.set(root, paths);
  return paths;
}

/** The path without links. Undefined if nothing is there, or nothing that we may look at. */
export function resolved(path: string): string | undefined {
  try {
    // Most masks do not exist, and asking first costs a tenth of an exception.
    return lstatSync(path, { throwIfNoEntry: false }) === undefined ? undefined : realpathSync.native(path);
  } catch {
    return undefined;
  }
}
