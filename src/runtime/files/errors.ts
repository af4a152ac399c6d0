/** Refusals and the system's errors, worded for whoever asked for a file. */
import { CallError, errorCode } from "../../base/error.ts";
import type { Denial } from "../../spec/access.ts";

/** What the system's error numbers mean to somebody who asked for a file. */
const meanings = new Map<string, string>([
  ["ENOENT", "does not exist"],
  ["ENOTDIR", "is not a folder, or something on the way to it is not"],
  ["EISDIR", "is a folder"],
  ["EEXIST", "exists already"],
  ["ENOTEMPTY", "is a folder that is not empty"],
  ["EACCES", "may not be touched by this user"],
  ["EPERM", "may not be touched by this user"],
  ["EROFS", "is on a read-only file system"],
  ["ELOOP", "is a link that leads round in a circle"],
  ["ENAMETOOLONG", "is too long a name"],
  ["ENOSPC", "does not fit: the disk is full"],
  ["EBUSY", "is in use"],
  ["EINVAL", "is not a name this file system takes"],
]);

export function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(errorCode(error) ?? "");
}

/** An error of the system, with the path as the caller spelled it. */
export function fileError(error: unknown, path: string): CallError {
  if (CallError.is(error)) return error;
  const code = errorCode(error) ?? "";
  const meaning = meanings.get(code) ?? `cannot be used (${code === "" ? String(error) : code})`;
  return new CallError("failed", `${shown(path)} ${meaning}.`, {
    cause: error,
    data: { path: shown(path), errno: code },
  });
}

/** Outside the grant, but a person may agree to more. */
export function outside(path: string, real: string): CallError {
  const reason = `${shown(path)} is not under a folder that may be changed`;
  const denial: Denial = { what: "write", target: real, reason };
  return new CallError("sandbox_denied", `${reason}.`, { hint: "Work inside the workspace.", data: denial });
}

/** Not even a person can agree to this. */
export function forbidden(what: Denial["what"], path: string, reason: string): CallError {
  const denial: Denial = { what, target: shown(path), reason };
  return new CallError("denied", `${shown(path)} ${reason}.`, { data: denial });
}

/** A path for a message, shortened, because a hostile one may be long. */
export function shown(path: string): string {
  return path.length <= 300 ? path : `${path.slice(0, 140)}…${path.slice(-140)}`;
}
