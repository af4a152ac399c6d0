/** Writing through the file capability: inside the grant, and only over a version that the model has seen. */
import { lstatSync, mkdirSync, readFileSync, rmdirSync, unlinkSync, type Stats } from "node:fs";
import { join } from "node:path";
import { CallError } from "../../base/error.ts";
import type { FileVersion, WriteOptions } from "../../spec/capability.ts";
import { fileError, forbidden, isErrno, shown } from "./errors.ts";
import type { Place } from "./fd.ts";
import { isInside, realOrSame, toAbsolute } from "./paths.ts";
import { mostScratch, scratchOf, withPlace, withTarget, type Content, type Scope, type Scratch } from "./scope.ts";
import { makeParents, readRegular, refuseProtected, removeTree } from "./tree.ts";
import { absent, isSameVersion, tokenOf } from "./version.ts";
import { refuseTwin, replaceFile } from "./write.ts";

export function whereWritten(scope: Scope, path: string): string {
  try {
    return withTarget(scope, path, (_place, _stats, real) => real);
  } catch (error) {
    // Its folder does not exist yet, so the nearest existing folder decides.
    if (!CallError.is(error) || !isErrno(error.cause, "ENOENT")) throw error;
    const asked = toAbsolute(path, scope.cwd);
    const above = whereWritten(scope, join(asked, ".."));
    const real = join(above, asked.slice(join(asked, "..").length));
    scope.guard.write(asked, real);
    return real;
  }
}

export function write(scope: Scope, path: string, data: string | Uint8Array, how: WriteOptions): FileVersion {
  if (how.parents === true) prepareParents(scope, path);
  return withTarget(scope, path, (place, stats, real) => {
    if (stats !== undefined && !stats.isFile()) {
      throw stats.isDirectory()
        ? new CallError("failed", `${shown(path)} is a folder.`)
        : forbidden("write", path, "is not a regular file");
    }
    if (stats !== undefined && how.exclusive === true) throw new CallError("failed", `${shown(path)} exists already.`);
    refuseStale(scope, path, place, stats, real, how);
    if (stats === undefined) refuseTwin(place);
    // What was read is what is there, or this would have been stale.
    const read = how.ifUnchanged && scope.contents.get(how.ifUnchanged);
    const before = scope.onChange && stats ? (read ?? { bytes: readFileSync(place.at) }) : undefined;
    const bytes = typeof data === "string" ? encode(data, scope.scratch) : data;
    const after = replaceFile(place, bytes, stats, how.mode);
    const token = tokenOf(after, bytes);
    scope.memory.seen.set(real, token);
    scope.onChange?.({ path: real, before, after: contentOf(data), mode: after.mode });
    return { path: real, token };
  });
}

function encode(text: string, scratch: Scratch): Uint8Array {
  // A character has at most three bytes here. Having room for them takes less than counting them first.
  const most = text.length * 3;
  if (most > mostScratch) return Buffer.from(text);
  const room = scratchOf(scratch, most);
  return room.subarray(0, room.write(text));
}

function contentOf(data: string | Uint8Array): Content {
  if (typeof data !== "string") return { bytes: data };
  // Half of a surrogate pair is written as U+FFFD, so the file then holds another text than the one that was given.
  return data.isWellFormed() ? { text: data } : { bytes: Buffer.from(data) };
}

function prepareParents(scope: Scope, path: string): void {
  try {
    makeParents(toAbsolute(path, scope.cwd), scope.guard, scope.handles);
  } catch (error) {
    throw fileError(error, path);
  }
}

/** The model works from what it read, so a file that has changed since is reported and not overwritten. */
function refuseStale(
  scope: Scope,
  path: string,
  place: Place,
  stats: Stats | undefined,
  real: string,
  how: WriteOptions,
): void {
  const known = how.ifUnchanged?.token ?? (how.evenIfChanged === true ? undefined : scope.memory.seen.get(real));
  if (known === undefined || isSameVersion(known, stats, () => readFileSync(place.at))) return;
  if (stats === undefined && how.ifUnchanged === undefined) return;
  throw new CallError("stale", `${shown(path)} has changed since it was last read.`, {
    hint: "Read it again, then make the change on what is there now.",
    data: { path: real },
  });
}

export function remove(scope: Scope, path: string, recursive: boolean): void {
  // A link is removed as a link, so the last component is not followed.
  withPlace(scope, path, (place, real) => {
    const stats = lstatSync(place.at);
    if (!stats.isDirectory()) {
      const before = scope.onChange && stats.isFile() ? { bytes: readFileSync(place.at) } : undefined;
      unlinkSync(place.at);
      scope.memory.seen.set(real, absent);
      if (before !== undefined) scope.onChange?.({ path: real, before, after: undefined, mode: stats.mode });
      return;
    }
    if (isInside(realOrSame(scope.workspace), real))
      throw forbidden("write", path, "holds the workspace and is not removed");
    if (!recursive) return rmdirSync(place.at);
    refuseProtected(place, scope.guard, scope.handles);
    const { onChange } = scope;
    const tell =
      onChange &&
      ((file: Place, at: Stats) => {
        const before = { bytes: readRegular(file) };
        onChange({ path: join(file.folder, file.name), before, after: undefined, mode: at.mode });
      });
    removeTree(place, scope.handles, tell);
  });
}

export function makeFolder(scope: Scope, path: string, recursive: boolean): void {
  if (recursive) return prepareParents(scope, join(path, "x"));
  withPlace(scope, path, (place) => {
    refuseTwin(place);
    mkdirSync(place.at);
  });
}
