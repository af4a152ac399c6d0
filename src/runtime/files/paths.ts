/** Paths as text: absolute, or inside a folder. */
import { realpathSync } from "node:fs";
import { isAbsolute, resolve, sep } from "node:path";
import { CallError } from "../../base/error.ts";
import { shown } from "./errors.ts";

/** The limit of Linux. Longer paths exist only to break things. */
const maxPathBytes = 4_095;

/** Makes the path that a caller wrote absolute, without looking at the disk. */
export function toAbsolute(path: string, cwd: string): string {
  if (path.includes("\0")) throw new CallError("invalid_input", "A path may not contain a NUL character.");
  if (path === "") throw new CallError("invalid_input", "The path is empty.");
  // A folder that is really named '~' is an accident waiting for the next `rm -r ~`.
  if (/^~[^/\\]*(?:[/\\]|$)/.test(path)) {
    throw new CallError("invalid_input", `${shown(path)}: '~' is not expanded here.`, {
      hint: "Write the whole path; './~' if a file is really called that.",
    });
  }
  const absolute = isAbsolute(path) ? resolve(path) : resolve(cwd, path);
  if (Buffer.byteLength(absolute) > maxPathBytes) {
    throw new CallError("invalid_input", `The path ${shown(path)} is too long (${Buffer.byteLength(absolute)} bytes).`);
  }
  return absolute;
}

export function isInside(path: string, root: string): boolean {
  // Builds no string, because this is called for every masked path, several times per file.
  return path.startsWith(root) && (path.length === root.length || path[root.length] === sep || root.endsWith(sep));
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
