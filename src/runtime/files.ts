/**
 * The file capability: every tool, the patch engine included, reaches the disk through this and no
 * other way. What may be touched comes in as a grant and is held against what was really opened, so
 * a link or a folder swapped in between changes nothing. Knows no tool and asks nobody.
 */
import {
  closeSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  unlinkSync,
  type Stats,
} from "node:fs";
import { join } from "node:path";
import { CallError } from "../base/error.ts";
import type { Grant } from "../spec/access.ts";
import type { FileEntry, Files, FileVersion, WriteOptions } from "../spec/capability.ts";
import { fileError, forbidden, isErrno, shown } from "./files/errors.ts";
import { hasHandles, hold, openHeld, openPlace, openTarget, type Held, type Place } from "./files/fd.ts";
import { createGuard, type Guard } from "./files/guard.ts";
import { sliceLines } from "./files/lines.ts";
import { toAbsolute } from "./files/paths.ts";
import { decodeText } from "./files/text.ts";
import { copyTree, makeParents, refuseProtected, removeTree } from "./files/tree.ts";
import { absent, isSameVersion, tokenOf } from "./files/version.ts";
import { refuseTwin, replaceFile } from "./files/write.ts";

/** What a session remembers between calls: which version of a file the model last saw. */
export interface FileMemory {
  readonly seen: Map<string, string>;
  readonly maskCache: Map<string, string>;
}

export function createFileMemory(): FileMemory {
  return { seen: new Map(), maskCache: new Map() };
}

/** One file before and after a call changed it; undefined: not there. Enough to show it and to take it back. */
export interface FileChange {
  readonly path: string;
  readonly before: Uint8Array | undefined;
  readonly after: Uint8Array | undefined;
  readonly mode: number;
}

export interface FilesOptions {
  readonly workspace: string;
  readonly cwd: string;
  readonly grant: Grant;
  readonly memory?: FileMemory;
  /** Told about every file changed through these files. */
  readonly onChange?: (change: FileChange) => void;
  /** False: without /proc, resolved paths instead of handles. */
  readonly handles?: boolean;
}

/** Whole files larger than this are not read into memory: there is `slice` for them. */
const maxWholeBytes = 256 * 1024 * 1024;
const defaultSlice = { maxLineBytes: 64 * 1024, maxBytes: 64 * 1024 * 1024 };

/** What the functions below share. */
interface Scope extends FilesOptions {
  readonly guard: Guard;
  readonly handles: boolean;
  readonly memory: FileMemory;
}

export function createFiles(options: FilesOptions): Files {
  const memory = options.memory ?? createFileMemory();
  const guard = createGuard({ workspace: options.workspace, grant: options.grant, maskCache: memory.maskCache });
  const scope: Scope = { ...options, guard, memory, handles: options.handles ?? hasHandles() };
  return {
    resolve: async (path, use) =>
      use === "read" ? withHeld(scope, path, (held) => held.real) : whereWritten(scope, path),
    read: async (path) => readWhole(scope, path).bytes,
    async readText(path) {
      const { bytes, version } = readWhole(scope, path);
      scope.memory.seen.set(version.path, version.token);
      return { ...decodeText(bytes), version };
    },
    slice: async (path, from, to, limits) => slice(scope, path, from, to, { ...defaultSlice, ...limits }),
    async *lines(path, from, to) {
      yield* (await slice(scope, path, from, to, { maxLineBytes: maxWholeBytes, maxBytes: Number.MAX_SAFE_INTEGER }))
        .lines;
    },
    write: async (path, data, how) =>
      write(scope, path, typeof data === "string" ? Buffer.from(data) : data, how ?? {}),
    remove: async (path, how) => remove(scope, path, how?.recursive === true),
    mkdir: async (path, how) => makeFolder(scope, path, how?.recursive === true),
    move: async (from, to) => move(scope, from, to),
    copy: async (from, to) => copy(scope, from, to),
    list: async (path) => withHeld(scope, path, (held) => listFolder(held, scope.guard)),
    stat: async (path) => statEntry(scope, path),
  };
}

/** Runs `use` on what a path leads to, once reading it is known to be allowed. */
function withHeld<T>(scope: Scope, path: string, use: (held: Held) => T): T {
  const asked = toAbsolute(path, scope.cwd);
  let held: Held | undefined;
  try {
    held = hold(asked, scope.handles);
    scope.guard.read(asked, held.real, held.stats);
    return use(held);
  } catch (error) {
    throw fileError(error, path);
  } finally {
    held?.close();
  }
}

/** The same for a regular file, opened. */
function withFile<T>(scope: Scope, path: string, use: (fd: number, held: Held) => T): T {
  return withHeld(scope, path, (held) => {
    const fd = openRegular(held, path);
    try {
      return use(fd, held);
    } finally {
      closeSync(fd);
    }
  });
}

function openRegular(held: Held, path: string): number {
  if (held.stats.isDirectory())
    throw new CallError("failed", `${shown(path)} is a folder.`, { hint: "List it instead." });
  if (!held.stats.isFile()) throw forbidden("read", path, "is not a regular file");
  return openHeld(held);
}

function readWhole(scope: Scope, path: string): { readonly bytes: Buffer; readonly version: FileVersion } {
  return withFile(scope, path, (fd, { real, stats }) => {
    if (stats.size > maxWholeBytes) {
      throw new CallError("failed", `${shown(path)} has ${stats.size} bytes: too many to read at once.`, {
        hint: "Read it by lines.",
      });
    }
    const bytes = readFileSync(fd);
    const token = tokenOf(fstatSync(fd), bytes);
    return { bytes, version: { path: real, token } };
  });
}

async function slice(scope: Scope, path: string, from: number, to: number, limits: typeof defaultSlice) {
  let fd: number | undefined;
  try {
    fd = withHeld(scope, path, (held) => {
      scope.memory.seen.set(held.real, tokenOf(held.stats));
      return openRegular(held, path);
    });
    return await sliceLines(fd, from, to, limits);
  } catch (error) {
    throw fileError(error, path);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Runs `use` on the place a write would go to: links followed, folder held, grant agreed. */
function withTarget<T>(
  scope: Scope,
  path: string,
  use: (place: Place, stats: Stats | undefined, real: string) => T,
): T {
  const asked = toAbsolute(path, scope.cwd);
  let place: Place | undefined;
  try {
    const target = openTarget(asked, scope.handles);
    place = target.place;
    const real = join(place.folder, place.name);
    scope.guard.write(asked, real);
    return use(place, target.stats, real);
  } catch (error) {
    throw fileError(error, path);
  } finally {
    place?.close();
  }
}

function whereWritten(scope: Scope, path: string): string {
  try {
    return withTarget(scope, path, (_place, _stats, real) => real);
  } catch (error) {
    // Its folder is not there yet: the nearest one that is decides.
    if (!CallError.is(error) || !isErrno(error.cause, "ENOENT")) throw error;
    const asked = toAbsolute(path, scope.cwd);
    const above = whereWritten(scope, join(asked, ".."));
    const real = join(above, asked.slice(join(asked, "..").length));
    scope.guard.write(asked, real);
    return real;
  }
}

function write(scope: Scope, path: string, data: Uint8Array, how: WriteOptions): FileVersion {
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
    const before = scope.onChange && stats ? readFileSync(place.at) : undefined;
    const after = replaceFile(place, data, stats, how.mode);
    const token = tokenOf(after, data);
    scope.memory.seen.set(real, token);
    scope.onChange?.({ path: real, before, after: data, mode: after.mode });
    return { path: real, token };
  });
}

function prepareParents(scope: Scope, path: string): void {
  try {
    makeParents(toAbsolute(path, scope.cwd), scope.guard, scope.handles);
  } catch (error) {
    throw fileError(error, path);
  }
}

/** The model works from what it read: a file that is another by now is told back, not written over. */
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

function remove(scope: Scope, path: string, recursive: boolean): void {
  // A link is removed as a link, so the last name is not followed.
  withPlace(scope, path, (place, real) => {
    const stats = lstatSync(place.at);
    if (!stats.isDirectory()) {
      const before = scope.onChange && stats.isFile() ? readFileSync(place.at) : undefined;
      unlinkSync(place.at);
      scope.memory.seen.set(real, absent);
      if (before !== undefined) scope.onChange?.({ path: real, before, after: undefined, mode: stats.mode });
      return;
    }
    if (scope.grant.write.some((root) => root === real))
      throw forbidden("write", path, "is a root of the work and is not removed");
    if (!recursive) return rmdirSync(place.at);
    refuseProtected(place, scope.guard, scope.handles);
    removeTree(place, scope.handles);
  });
}

function withPlace<T>(scope: Scope, path: string, use: (place: Place, real: string) => T): T {
  const asked = toAbsolute(path, scope.cwd);
  let place: Place | undefined;
  try {
    place = openPlace(asked, scope.handles);
    const real = join(place.folder, place.name);
    scope.guard.write(asked, real);
    return use(place, real);
  } catch (error) {
    throw fileError(error, path);
  } finally {
    place?.close();
  }
}

function makeFolder(scope: Scope, path: string, recursive: boolean): void {
  if (recursive) return prepareParents(scope, join(path, "x"));
  withPlace(scope, path, (place) => {
    refuseTwin(place);
    mkdirSync(place.at);
  });
}

function move(scope: Scope, from: string, to: string): void {
  withPlace(scope, from, (source) => {
    withPlace(scope, to, (target) => {
      refuseTwin(target, source.name);
      const moved = movedFile(scope, source);
      try {
        renameSync(source.at, target.at);
      } catch (error) {
        if (!isErrno(error, "EXDEV")) throw error;
        copyTree(source, lstatSync(source.at), target, scope.handles);
        if (lstatSync(source.at).isDirectory()) removeTree(source, scope.handles);
        else unlinkSync(source.at);
      }
      if (moved === undefined) return;
      scope.onChange?.({ ...moved, path: join(source.folder, source.name), after: undefined });
      scope.onChange?.({ ...moved, path: join(target.folder, target.name), before: undefined, after: moved.before });
    });
  });
}

function movedFile(scope: Scope, source: Place): Pick<FileChange, "before" | "mode"> | undefined {
  const stats = lstatSync(source.at);
  return scope.onChange && stats.isFile() ? { before: readFileSync(source.at), mode: stats.mode } : undefined;
}

function copy(scope: Scope, from: string, to: string): void {
  withHeld(scope, from, (held) => {
    withPlace(scope, to, (target, real) => {
      if (real.startsWith(`${held.real}/`))
        throw new CallError("invalid_input", `${shown(to)} lies inside ${shown(from)}.`);
      refuseTwin(target);
      if (lstatSync(target.at, { throwIfNoEntry: false }))
        throw new CallError("failed", `${shown(to)} exists already.`);
      const source = openPlace(held.real, scope.handles);
      try {
        const stats = lstatSync(source.at);
        copyTree(source, stats, target, scope.handles);
        if (stats.isFile())
          scope.onChange?.({ path: real, before: undefined, after: readFileSync(target.at), mode: stats.mode });
      } finally {
        source.close();
      }
    });
  });
}

/** What may not be read is not shown either. */
function listFolder(held: Held, guard: Guard): readonly FileEntry[] {
  return readdirSync(held.at)
    .toSorted()
    .flatMap((name) => {
      const at = `${held.at}/${name}`;
      const stats = lstatSync(at, { throwIfNoEntry: false });
      const real = join(held.real, name);
      return stats === undefined || guard.isMasked(real) ? [] : [toEntry(name, real, at, stats)];
    });
}

function statEntry(scope: Scope, path: string): FileEntry | undefined {
  const asked = toAbsolute(path, scope.cwd);
  let place: Place | undefined;
  try {
    place = openPlace(asked, scope.handles);
    const stats = lstatSync(place.at, { throwIfNoEntry: false });
    if (stats === undefined) return undefined;
    const real = join(place.folder, place.name);
    scope.guard.read(asked, real, stats);
    return toEntry(place.name === "." ? "/" : place.name, real, place.at, stats);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw fileError(error, path);
  } finally {
    place?.close();
  }
}

function toEntry(name: string, path: string, at: string, stats: Stats): FileEntry {
  const type = stats.isFile() ? "file" : stats.isDirectory() ? "directory" : stats.isSymbolicLink() ? "link" : "other";
  return {
    name,
    path,
    type,
    sizeBytes: stats.size,
    modifiedMs: stats.mtimeMs,
    mode: stats.mode & 0o7777,
    ...(type === "link" ? { linkTarget: readlinkSync(at) } : {}),
  };
}
