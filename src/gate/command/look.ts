/** Where a command may read without a question, with every link followed. */
import { readdirSync, readFileSync, statSync, type Dirent } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { extend } from "../../base/extend.ts";
import type { Command } from "../../spec/access.ts";
import { isHarmlessDevice, isInsideAny, isSecretName, systemRoots } from "../paths.ts";
import { repositoryDoubt, trackedSecret } from "./git-config.ts";
import { matchPieces, type GlobPiece } from "./glob.ts";

/** Where things may be read without a question. */
export interface Surroundings {
  readonly workspace: string;
  readonly readable: readonly string[];
  readonly mask: readonly string[];
  readonly home: string;
  /** Where a path leads, or undefined if nobody can say. `seen` remembers what is there, within one decision. */
  real(path: string, cwd: string, seen?: Map<string, string>): string | undefined;
  /** Where paths that are there lie, as found out in this one decision. */
  readonly seen?: ReadonlyMap<string, string>;
  /** What was understood of each command in one decision. Its verdict, question and hash all need it. */
  readonly understood?: Map<Command, unknown>;
  /** The files that each command names or runs, as they are in this one decision. */
  readonly files?: Map<Command, readonly (readonly string[])[]>;
}

/** Looks at the file system once per path, because a line may name the same folder hundreds of times. */
export interface Look {
  /** Where a path leads, or undefined if nobody can say. */
  real(path: string, cwd: string): string | undefined;
  mayRead(path: string, cwd: string): boolean;
  /** Why git might run something in this folder. */
  repositoryDoubt(folder: string): string | undefined;
  /** A file with secrets that the repository of this folder tracks. */
  trackedSecret(folder: string): string | undefined;
  /** A file with secrets somewhere below the folder, or a note that there is too much to look through. */
  secretBelow(folder: string, hidden: boolean): string | undefined;
}

/**
 * The same surroundings, looked at once per path. Use it for one decision only, because the disk may
 * change between two.
 */
export function rememberPaths<At extends Surroundings>(at: At): At {
  if (at.understood !== undefined) return at;
  const paths = new Map<string, Map<string, string | undefined>>();
  const seen = new Map<string, string>();
  const real: Surroundings["real"] = (path, cwd) => {
    let below = paths.get(cwd);
    if (below === undefined) paths.set(cwd, (below = new Map()));
    return remember(below, path, () => at.real(path, cwd, seen));
  };
  return extend(at, { real, seen, understood: new Map(), files: new Map() });
}

/** Use it for one decision only, like `rememberPaths`. */
export function createLook(around: Surroundings): Look {
  const at = rememberPaths(around);
  const folders = new Map<string, string | undefined>();
  const { real } = at;
  return {
    real,
    mayRead: (path, cwd) => mayRead(path, cwd, at),
    repositoryDoubt: (folder) => remember(folders, folder, () => repositoryDoubt(folder)),
    trackedSecret,
    secretBelow,
  };
}

const maxEntries = 20_000;
/** Large folders that do not hold the user's own files. */
const skipped = new Set([".git", "node_modules"]);

function secretBelow(folder: string, hidden: boolean): string | undefined {
  const waiting = [folder];
  const readmitted = hidden ? [] : foldersAbove(folder).flatMap(readmittedBy);
  let seen = 0;
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const entries = entriesOf(at);
    if (!hidden) readmitted.push(...readmittedBy(at));
    for (const entry of entries) {
      if (++seen > maxEntries) return "there is too much below it to look for files with secrets";
      const { name } = entry;
      if (!hidden && name.startsWith(".") && !readmitted.some((pattern) => matchPieces(name, pattern))) continue;
      if (entry.isDirectory() && !skipped.has(entry.name)) waiting.push(join(at, entry.name));
      else if (!entry.isDirectory() && isSecretName(entry.name)) return `${entry.name} looks like a file with secrets`;
    }
  }
  return undefined;
}

const ignoreFiles = [".gitignore", ".ignore", ".rgignore"];
const maxIgnoreBytes = 200_000;
const maxPattern = 1_000;

/** Names that an ignore file includes again (`!.env`). A search then reads them although they are hidden. */
function readmittedBy(folder: string): readonly (readonly GlobPiece[])[] {
  return ignoreFiles
    .flatMap((name) => readLines(join(folder, name)))
    .filter((line) => line.startsWith("!") && line.length <= maxPattern)
    .map((line) => (line.trim().replace(/\/+$/, "").split(/[!/]/).at(-1) ?? "").split(/([*?]+|\[[^\]]*\])/))
    .map((pieces) => pieces.map((text, index) => ({ text, literal: index % 2 === 0 })));
}

function readLines(path: string): readonly string[] {
  try {
    // Reading a pipe would block until somebody writes to it.
    if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) return [];
    return readFileSync(path, "utf8").slice(0, maxIgnoreBytes).split("\n");
  } catch {
    return []; // neither we nor the program that searches can read it
  }
}

function foldersAbove(folder: string): readonly string[] {
  const above: string[] = [];
  for (let at = dirname(resolve(folder)); above.at(-1) !== at; at = dirname(at)) above.push(at);
  return above;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // It is a file, or a folder that may not be listed, so nothing below it is read.
    return [];
  }
}

function remember<T>(known: Map<string, T>, key: string, find: () => T): T {
  const found = known.get(key);
  if (found !== undefined || known.has(key)) return found as T;
  const value = find();
  known.set(key, value);
  return value;
}

/**
 * True inside the workspace, another readable root or a system folder, with every link followed,
 * unless it is masked.
 */
export function mayRead(path: string, cwd: string, at: Surroundings): boolean {
  const real = at.real(path, cwd);
  if (real === undefined) return false;
  if (isHarmlessDevice(path)) return true;
  // Links there mean something else in every process, and it is not our process that will follow them.
  if (isInsideAny(resolve(cwd, path), ["/proc", "/dev/fd"])) return false;
  return !isInsideAny(real, at.mask) && isInsideAny(real, [at.workspace, ...at.readable, ...systemRoots]);
}
