/** Paths as text: absolute, inside a folder, or another spelling of a protected name. */
import { realpathSync } from "node:fs";
import { isAbsolute, resolve, sep } from "node:path";
import { CallError } from "../../base/error.ts";
import { shown } from "./errors.ts";

/** Longer paths exist only to break things; Linux itself stops here. */
const maxPathBytes = 4_095;

/** A path as a caller wrote it to an absolute one, without looking at the disk. */
export function toAbsolute(path: string, cwd: string): string {
  if (path.includes("\0")) throw new CallError("invalid_input", "A path may not contain a NUL character.");
  if (path === "") throw new CallError("invalid_input", "The path is empty.");
  // A folder that is really called '~' is an accident waiting for the next `rm -r ~`.
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
  // Without building a string: asked for every masked path, several times for every file.
  return path.startsWith(root) && (path.length === root.length || path[root.length] === sep || root.endsWith(sep));
}

/** The link-free path of something that may not be there: then the path itself. */
export function realOrSame(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // Not there yet: nothing to resolve, and nothing that could be reached through it.
    return path;
  }
}

/** Characters that some file systems ignore inside names (HFS+). */
// oxlint-disable-next-line no-misleading-character-class -- each is meant on its own
const ignorable = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/**
 * What a name is on the most forgiving file system: case, Unicode form, trailing dots and blanks,
 * NTFS streams and HFS+ fillers do not make it another name.
 */
export function foldName(name: string): string {
  // Nearly every name, and folders hold many.
  if (/^[\w-]+(?:\.[\w-]+)*$/.test(name)) return name.toLowerCase();
  const stream = name.indexOf(":");
  return (stream > 0 ? name.slice(0, stream) : name)
    .normalize("NFKC")
    .replace(ignorable, "")
    .replace(/[. ]+$/, "")
    .toLowerCase();
}

/** True when a name is, or could be taken for, the protected one (`.git`, `.GIT`, `.git.`, `GIT~1`). */
export function isNameOf(protectedName: string, name: string): boolean {
  const wanted = foldName(protectedName);
  const folded = foldName(name);
  if (folded === wanted) return true;
  // Windows' short form of a name: six characters of it, then ~1.
  const short = wanted.replace(/^\.+/, "").slice(0, 6);
  const tilde = folded.lastIndexOf("~");
  return (
    wanted.startsWith(".") && short !== "" && folded.slice(0, tilde) === short && /^~\d+$/.test(folded.slice(tilde))
  );
}
