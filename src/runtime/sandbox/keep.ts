/**
 * For backends that cannot hold a protected folder read-only: remembers the small files in it that
 * make other programs run things (a repository's config and hooks, our own rules) and puts them back.
 */
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Denial } from "../../spec/access.ts";

export interface Kept {
  readonly path: string;
  readonly files: ReadonlyMap<string, KeptFile>;
}

interface KeptFile {
  readonly data: Buffer;
  readonly mode: number;
}

/** A repository's bulk: changing it makes nothing run. */
const bulk = new Set(["objects", "refs", "logs", "lfs", "index", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG"]);
const maxFileBytes = 64 * 1024;
const maxFiles = 200;
const maxDepth = 3;

export function keepTree(path: string): Kept {
  return { path, files: readTree(path) };
}

/** What was changed is written back, what was added is removed; the first such path is the denial. */
export function putBack(all: readonly Kept[]): Denial | undefined {
  const changed = all.flatMap(putBackTree);
  const [target] = changed;
  return target === undefined
    ? undefined
    : { what: "write", target, reason: `${target} is protected; the command's change to it was undone` };
}

function putBackTree({ path, files }: Kept): readonly string[] {
  const now = readTree(path);
  const added = [...now.keys()].filter((file) => !files.has(file));
  const lost = [...files].filter(([file, { data, mode }]) => {
    const current = now.get(file);
    return current === undefined || current.mode !== mode || !current.data.equals(data);
  });
  for (const file of added) rmSync(file, { force: true });
  for (const [file, { data, mode }] of lost) {
    makeFolder(dirname(file), path);
    // A link or folder put in its place must not be written through.
    rmSync(file, { recursive: true, force: true });
    writeFileSync(file, data, { mode, flag: "wx" });
  }
  return [...lost.map(([file]) => file), ...added];
}

/** Real folders from the protected path down: a link in their place would lead the restored file elsewhere. */
function makeFolder(folder: string, top: string): void {
  if (folder.length < top.length) return;
  makeFolder(dirname(folder), top);
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return;
  rmSync(folder, { force: true });
  mkdirSync(folder);
}

function readTree(path: string): ReadonlyMap<string, KeptFile> {
  const files = new Map<string, KeptFile>();
  collect(path, 0, files);
  return files;
}

function collect(path: string, depth: number, files: Map<string, KeptFile>): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined || files.size >= maxFiles) return;
  if (stat.isFile() && stat.size <= maxFileBytes)
    files.set(path, { data: readFileSync(path), mode: stat.mode & 0o7777 });
  if (!stat.isDirectory() || depth >= maxDepth) return;
  for (const name of readdirSync(path).filter((one) => !bulk.has(one))) collect(join(path, name), depth + 1, files);
}
