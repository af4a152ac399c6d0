/**
 * For backends that cannot keep a protected folder read-only. Everything in it is recorded before the
 * command, with lstat, and restored afterwards. If something cannot be recorded it is not protected,
 * and the command does not run.
 */
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { chmodSync, chownSync, symlinkSync, writeFileSync } from "node:fs";
import type { Stats } from "node:fs";
import { basename, dirname, join } from "node:path";
import { CallError } from "../../base/error.ts";
import type { Denial } from "../../spec/access.ts";

export interface Kept {
  readonly path: string;
  /** By path, folders before their content. Empty if nothing was there. */
  readonly entries: ReadonlyMap<string, Entry>;
}

interface Entry {
  readonly stat: Stats;
  readonly data?: Buffer;
  readonly target?: string;
}

/**
 * The bulk of a repository. Changing the content of these files makes nothing run, so only their names
 * are recorded.
 */
const bulk = new Set(
  "objects refs logs lfs index packed-refs ORIG_HEAD FETCH_HEAD COMMIT_EDITMSG MERGE_MSG rr-cache".split(" "),
);
const maxEntries = 5000;
const maxBytes = 32 * 1024 ** 2;

/** `before` is an older record of the same place. Contents that did not change are taken from it. */
export function keepTree(path: string, before?: Kept): Kept {
  const entries = new Map<string, Entry>();
  let bytes = 0;
  const collect = (at: string): void => {
    const stat = lstatSync(at, { throwIfNoEntry: false });
    if (stat === undefined) return;
    const inBulk = at !== path && bulk.has(basename(at)) && isGitFolder(dirname(at));
    const old = before?.entries.get(at);
    const same = old !== undefined && isUntouched(old.stat, stat) && Date.now() - stat.ctimeMs > 100;
    const entry = same ? old : inBulk ? { stat } : record(at, stat, maxBytes - bytes);
    bytes += entry.data?.length ?? 0;
    entries.set(at, entry);
    if (entries.size > maxEntries || bytes > maxBytes) throw tooMuch(path);
    if (stat.isDirectory() && !inBulk) for (const name of readdirSync(at)) collect(join(at, name));
  };
  collect(path);
  return { path, entries };
}

function record(path: string, stat: Stats, room: number): Entry {
  if (stat.isSymbolicLink()) return { stat, target: readlinkSync(path) };
  if (!stat.isFile()) return { stat };
  if (stat.size > room) throw tooMuch(path);
  return { stat, data: readFileSync(path) };
}

function tooMuch(path: string): CallError {
  return new CallError("no_sandbox", `${path} is protected, and too much lies in it to be put back after a command`, {
    hint: "install bubblewrap, which holds it read-only instead",
  });
}

function isGitFolder(path: string): boolean {
  return lstatSync(join(path, "HEAD"), { throwIfNoEntry: false }) !== undefined;
}

/** The kernel updates this time with every change, and no command can set it. */
function isUntouched(a: Stats, b: Stats): boolean {
  return a.ino === b.ino && a.ctimeMs === b.ctimeMs && a.size === b.size && a.mode === b.mode;
}

/**
 * What was changed is restored, and what was added is removed. Returns a denial for each place where
 * something had to be done.
 */
export function putBack(all: readonly Kept[], searched: readonly string[]): readonly Denial[] {
  return all.flatMap((kept) => {
    const [target] = putBackTree(kept, searched);
    const reason = `${target} is protected; the command's change to it was undone`;
    return target === undefined ? [] : [{ what: "write" as const, target, reason }];
  });
}

function putBackTree({ path, entries }: Kept, searched: readonly string[]): readonly string[] {
  const changed: string[] = [];
  // Folders first: nothing may be touched below a folder that was replaced, perhaps by a link.
  for (const [at, entry] of entries) if (restore(at, entry, searched)) changed.push(at);
  const removeAdded = (at: string): void => {
    const stat = lstatSync(at, { throwIfNoEntry: false });
    if (stat === undefined) return;
    if (!entries.has(at)) {
      removeWhole(at);
      changed.push(at);
    } else if (stat.isDirectory() && !(at !== path && bulk.has(basename(at)) && isGitFolder(dirname(at)))) {
      for (const name of readdirSync(at)) removeAdded(join(at, name));
    }
  };
  if (entries.size > 0) removeAdded(path);
  return changed;
}

/** Puts it back. True if something had to be done. */
function restore(path: string, entry: Entry, searched: readonly string[]): boolean {
  const { stat, data, target } = entry;
  const now = lstatSync(path, { throwIfNoEntry: false });
  if (now !== undefined && isUntouched(stat, now)) return false;
  if (now !== undefined && kindOf(now) === kindOf(stat)) {
    if (stat.isDirectory()) return now.ino === stat.ino ? fixMode(path, stat, now) : bringBack(path, stat, searched);
    if (data !== undefined && now.size === stat.size && readFileSync(path).equals(data))
      return fixMode(path, stat, now);
    if (target !== undefined && readlinkSync(path) === target) return false;
    if (data === undefined && target === undefined) return false; // its content was not recorded, because changing it makes nothing run
  }
  if (stat.isDirectory()) return bringBack(path, stat, searched);
  removeWhole(path);
  if (target !== undefined) symlinkSync(target, path);
  else if (data !== undefined) {
    writeFileSync(path, data, { mode: stat.mode & 0o7777, flag: "wx" });
    fixMode(path, stat, lstatSync(path));
  }
  return true;
}

function kindOf(stat: Stats): number {
  return stat.mode & 0o170000;
}

function fixMode(path: string, stat: Stats, now: Stats): boolean {
  if (now.uid !== stat.uid || now.gid !== stat.gid) {
    try {
      chownSync(path, stat.uid, stat.gid);
    } catch {
      // Only root can give files away, so if we are not root, the command cannot have changed the owner either.
    }
  }
  if (now.mode === stat.mode) return false;
  chmodSync(path, stat.mode & 0o7777);
  return true;
}

/** A folder that was moved away is moved back with everything in it. One that is gone is created again. */
function bringBack(path: string, stat: Stats, searched: readonly string[]): boolean {
  let moved = findFolder(stat, searched);
  // It may have been moved into whatever took its place, and must not be removed together with that.
  if (moved?.startsWith(`${path}/`) === true) {
    const aside = `${path}.${process.pid}`;
    openFolders(path);
    renameSync(moved, aside);
    moved = aside;
  }
  removeWhole(path);
  if (moved === undefined) mkdirSync(path);
  else moveWhole(moved, path);
  fixMode(path, stat, lstatSync(path));
  return true;
}

/** A command may have closed its folders, and only root could then move or remove what is in them. */
function removeWhole(path: string): void {
  openAndRetry(path, () => rmSync(path, { recursive: true, force: true }));
}

function moveWhole(from: string, to: string): void {
  openAndRetry(from, () => renameSync(from, to));
}

/** For a change that fails because a folder at or below `path`, or the one around it, is closed to its own owner. */
export function openAndRetry(path: string, change: () => void): void {
  try {
    change();
  } catch {
    openFolder(dirname(path));
    openFolders(path);
    change();
  }
}

function openFolders(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  openFolder(path);
  for (const name of listed(path)) openFolders(join(path, name));
}

function openFolder(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isDirectory() === true && stat.uid === process.getuid?.()) chmodSync(path, (stat.mode & 0o7777) | 0o700);
}

const maxSearched = 20_000;

/** The inode number of a removed folder is soon reused, but the new folder has a later time of birth. */
function findFolder({ ino, dev, birthtimeMs }: Stats, roots: readonly string[]): string | undefined {
  const folders = [...roots];
  for (let seen = 0; folders.length > 0 && seen < maxSearched;) {
    const folder = folders.shift()!;
    for (const name of listed(folder)) {
      seen++;
      const path = join(folder, name);
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat?.isDirectory() !== true) continue;
      const isBornThen = birthtimeMs === 0 || stat.birthtimeMs === birthtimeMs;
      if (stat.ino === ino && stat.dev === dev && isBornThen) return path;
      folders.push(path);
    }
  }
  return undefined;
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // not for us to read
  }
}
