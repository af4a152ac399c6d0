/** Paths as text: absolute, or inside a folder. */
import { realpathSync } from "node:fs";
import { resolve, sep } from "node:path";
import { CallError } from "../../base/error.ts";
import { isPlainPath } from "../../base/paths.ts";
import { shown } from "./errors.ts";

/** The limit of Linux. Longer paths exist only to break things. */
const maxPathBytes = 4_095;

/** Makes the path that a caller wrote absolute, without looking at the disk. */
export function toAbsolute(path: string, cwd: string): string {
  if (path.includes("\0")) throw new CallError("invalid_input", "A path may not contain a NUL character.");
  if (path === "") throw new CallError("invalid_input", "The path is empty.");
  // A folder that is really named '~' is an accident waiting for the next `rm -r ~`.
  if (path.startsWith("~")) {
    throw new CallError("invalid_input", `${shown(path)}: '~' is not expanded here.`, {
      hint: "Write the whole path; './~' if a file is really called that.",
    });
  }
  const absolute = isPlainPath(path) ? path : resolve(cwd, path);
  // A character has at most three bytes here, so most paths need not be counted.
  if (absolute.length * 3 > maxPathBytes && Buffer.byteLength(absolute) > maxPathBytes) {
    throw new CallError("invalid_input", `The path ${shown(path)} is too long (${Buffer.byteLength(absolute)} bytes).`);
  }
  return absolute;
}

export function isInside(path: string, root: string): boolean {
  // Builds no string, because this is called for every masked path, several times per file.
  return path.startsWith(root) && (path.length === root.length || path[root.length] === sep || root.endsWith(sep));
}

/** Folders and files, which can be asked which of them a path lies in. */
export interface PathSet {
  readonly paths: readonly string[];
  /** The folders that contain the path. */
  around(path: string): readonly string[];
}

/** Asked by the steps of the path, because the set may be large: a patch of a hundred files has as many roots. */
export function createPathSet(paths: readonly string[]): PathSet {
  const byStem = new Map(paths.map((path) => [path.endsWith(sep) ? path.slice(0, -1) : path, path]));
  const walk = (path: string): readonly string[] => {
    const found: string[] = [];
    for (let at = path.indexOf(sep); ; at = path.indexOf(sep, at + 1)) {
      const root = byStem.get(at < 0 ? path : path.slice(0, at));
      if (root !== undefined) found.push(root);
      if (at < 0) return found;
    }
  };
  // The answer for the last folder, because the files of one call often lie in one.
  let folder: string | undefined;
  let above: readonly string[] = [];
  return {
    paths,
    around(path) {
      const slash = path.lastIndexOf(sep);
      if (slash < 0) return walk(path);
      const own = path.slice(0, slash);
      if (own !== folder) {
        above = walk(own);
        folder = own;
      }
      const itself = byStem.get(path);
      return itself === undefined ? above : [...above, itself];
    },
  };
}

/** The path with links resolved, or the path itself if it does not exist. */
export function realOrSame(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // It does not exist yet, so there is nothing to resolve, and nothing to reach through it.
    return path;
  }
}
