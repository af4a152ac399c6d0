/**
 * Where the git repository of a path is, and which paths it tracks. We read git's own files, because
 * running git in a folder may run what that folder's settings say.
 */
import { createHash } from "node:crypto";
import { existsSync, lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

export interface Repository {
  /** The folder that is checked out. */
  readonly top: string;
  /** The index and `HEAD`. A linked work tree has its own. */
  readonly gitDir: string;
  /** Settings and hooks, which all linked work trees share. */
  readonly commonDir: string;
}

/**
 * Finds the repository as git does: upwards, looking for a `.git` folder or file, or a folder that is
 * itself a bare repository. git climbs from the place a link leads to, and not from the place of the
 * link. A text says why nobody can tell.
 */
export function findRepository(folder: string): Repository | string | undefined {
  for (let at = existsSync(folder) ? realpathSync(folder) : resolve(folder); ; at = dirname(at)) {
    const found = repositoryAt(at);
    if (found !== undefined || dirname(at) === at) return found;
  }
}

function repositoryAt(folder: string): Repository | string | undefined {
  const dot = join(folder, ".git");
  const kind = statSync(dot, { throwIfNoEntry: false });
  if (kind?.isDirectory() && isThere(join(dot, "HEAD")))
    return { top: folder, gitDir: dot, commonDir: commonFolder(dot) };
  if (kind?.isFile()) return linkedRepository(dot, folder);
  // The objects may lie in another folder, which `commondir` names.
  if (isThere(join(folder, "HEAD")) && (isThere(join(folder, "objects")) || isThere(join(folder, "commondir"))))
    return "the folder is a bare repository with settings of its own";
  return undefined;
}

/** True also for a link that leads nowhere: git takes such a HEAD for a branch without commits. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function linkedRepository(file: string, top: string): Repository | string {
  const match = /^gitdir: (.+?)[\r\n]*$/.exec(readFileSync(file, "utf8").slice(0, 4_096));
  if (match === null) return "the .git file is not understood";
  const gitDir = resolve(top, match[1]!);
  return { top, gitDir, commonDir: commonFolder(gitDir) };
}

function commonFolder(gitDir: string): string {
  const file = join(gitDir, "commondir");
  // Only line breaks are removed, because a blank at the end is part of the name.
  return existsSync(file)
    ? resolve(
        gitDir,
        readPlain(file)
          .slice(0, 4_096)
          .replace(/[\r\n]+$/, ""),
      )
    : gitDir;
}

/** Reads plain files only: reading a pipe would block until somebody writes to it. */
export function readPlain(path: string): string {
  if (!statSync(path).isFile()) throw new Error(`${path} is not a file`);
  return readFileSync(path, "utf8");
}

type IsTracked = (path: string) => boolean;

const everything: IsTracked = () => true;
const nothing: IsTracked = () => false;

/**
 * Whether git tracks a path, relative to the workspace or absolute, in whichever repository the path
 * lies. Each index is read once, when it is first needed. A path counts as tracked if nobody can tell,
 * because a rule that protects tracked files must hold then too.
 */
export function trackedPaths(workspace: string): IsTracked {
  const known = new Map<string, IsTracked>();
  const below = (folder: string): IsTracked => {
    let tracked = known.get(folder);
    if (tracked === undefined) {
      tracked = trackedAt(folder) ?? (dirname(folder) === folder ? nothing : below(dirname(folder)));
      known.set(folder, tracked);
    }
    return tracked;
  };
  return (path) => {
    const at = resolve(workspace, path);
    return below(dirname(at))(at);
  };
}

/** Undefined if this folder is not the top of a repository. */
function trackedAt(folder: string): IsTracked | undefined {
  try {
    const repository = repositoryAt(folder);
    if (repository === undefined) return undefined;
    if (typeof repository === "string") return everything;
    const index = join(repository.gitDir, "index");
    if (!existsSync(index)) return nothing; // nothing was ever added
    const names = readIndex(readFileSync(index));
    return (path) => names.has(relative(folder, path));
  } catch {
    return everything; // it cannot be read, or not by us
  }
}

/**
 * The names in git's index, in versions 2 to 4 of its format: an entry is 42 bytes and a hash, the name,
 * and padding. Throws for anything else.
 */
export function readIndex(data: Buffer): ReadonlySet<string> {
  const version = data.readUInt32BE(4);
  if (data.toString("latin1", 0, 4) !== "DIRC" || version < 2 || version > 4) throw new Error("not a git index");
  const hashBytes = hashSize(data);
  const names = new Set<string>();
  let at = 12;
  let last: Buffer = Buffer.alloc(0);
  for (let left = data.readUInt32BE(8); left > 0; left--) {
    const flags = data.readUInt16BE(at + 40 + hashBytes);
    let name = at + 42 + hashBytes + (version >= 3 && (flags & 0x4000) !== 0 ? 2 : 0);
    let shared = 0;
    if (version === 4) {
      // In version 4 a name begins with the number of bytes to cut off the end of the name before it, in groups of 7
      // bits.
      let cut = data[name]! & 0x7f;
      while (data[name++]! & 0x80) cut = ((cut + 1) << 7) | (data[name]! & 0x7f);
      shared = last.length - cut;
    }
    const end = data.indexOf(0, name);
    if (end < 0 || shared < 0) throw new Error("the git index is cut short");
    last = Buffer.concat([last.subarray(0, shared), data.subarray(name, end)]);
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
    names.add(last.toString("utf8"));
  }
  refuseExtensions(data.subarray(at, data.length - hashBytes));
  return names;
}

/** The index ends with a hash of all that comes before it, or with zeros if git was told not to make one. */
function hashSize(data: Buffer): 20 | 32 {
  const isLeftOut = (size: number) => data.subarray(-size).every((byte) => byte === 0);
  const fits = (algorithm: "sha1" | "sha256", size: number) =>
    createHash(algorithm).update(data.subarray(0, -size)).digest().equals(data.subarray(-size));
  if (isLeftOut(32)) return 32;
  if (isLeftOut(20) || fits("sha1", 20)) return 20;
  if (fits("sha256", 32)) return 32;
  throw new Error("the git index is not whole");
}

/** An extension in lower case changes what the entries mean: the rest is in another file, or whole folders are one entry. */
function refuseExtensions(data: Buffer): void {
  for (let at = 0; at + 8 <= data.length; at += 8 + data.readUInt32BE(at + 4))
    if (/^[a-z]/.test(data.toString("latin1", at, at + 1))) throw new Error("the git index is not all of it");
}
