/** Which of many names may exist, found with one look at each folder instead of one at each name. */
import { readdirSync, statSync } from "node:fs";
import { sep } from "node:path";
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
  const byFolder = new Map<string, string[]>();
  for (const path of paths) {
    const folder = path.slice(0, path.lastIndexOf(sep));
    const others = byFolder.get(folder);
    if (others === undefined) byFolder.set(folder, [path]);
    else others.push(path);
  }
  const found = new Set<string>();
  for (const [folder, inside] of byFolder) {
    const names = inside.length < worthListing ? undefined : namesIn(folder);
    for (const path of inside)
      if (names === undefined || names.has(foldName(path.slice(folder.length + 1)))) found.add(path);
  }
  return found;
}

/** Undefined if the folder cannot be listed, or is too large for it. */
function namesIn(folder: string): ReadonlySet<string> | undefined {
  try {
    const stats = statSync(folder || sep, { throwIfNoEntry: false });
    if (stats === undefined || stats.size > maxFolderBytes) return undefined;
    return new Set(readdirSync(folder || sep).map(foldName));
  } catch {
    return undefined; // it may be entered, but not listed
  }
}
