/**
 * The files of a folder at one moment, within limits: no ignored ones, no links, and of large files only
 * that they changed.
 */
import { lstatSync, readdirSync, readFileSync, type Dirent } from "node:fs";
import { join } from "node:path";
import ignore, { type Ignore } from "ignore";

/** The files of a folder at one moment: their stamps, and their contents as far as the limits allow. */
export interface Snapshot {
  /** The files, by their path relative to the folder. */
  readonly files: ReadonlyMap<string, SnapshotFile>;
  readonly notes: readonly string[];
  /** There are more files than were read. */
  readonly isPartial: boolean;
  absolute(path: string): string;
}

export interface SnapshotFile {
  /** Equal stamps mean equal content. */
  readonly stamp: string;
  readonly mode: number;
  readonly content?: Uint8Array;
}

export interface SnapshotLimits {
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
  /** Folders that are left out, by absolute path. */
  readonly except?: readonly string[];
}

const defaults: SnapshotLimits = { maxFiles: 20_000, maxFileBytes: 512 * 1024, maxTotalBytes: 64 * 1024 * 1024 };

/** Folders with what tools create, fetch or keep, and nobody writes by hand. */
const skipped = new Set([".git", ".hg", ".svn", "node_modules", ".callgate"]);

/** Walks a folder without following links or entering what its ignore files name. */
export function takeSnapshot(folder: string, limits: Partial<SnapshotLimits>, last?: Snapshot): Snapshot {
  const bounds = { ...defaults, ...limits };
  const files = new Map<string, SnapshotFile>();
  const state: Walk = { folder, files, bounds, last, kept: 0, full: false };
  walk(state, "", []);
  const notes = state.full ? [`only the first ${bounds.maxFiles} files of the folder were looked at`] : [];
  return { files, notes, isPartial: state.full, absolute: (path) => join(folder, path) };
}

interface Walk {
  readonly folder: string;
  readonly files: Map<string, SnapshotFile>;
  readonly bounds: SnapshotLimits;
  readonly last: Snapshot | undefined;
  kept: number;
  full: boolean;
}

interface Rules {
  readonly base: string;
  readonly matcher: Ignore;
}

function walk(state: Walk, relative: string, rules: readonly Rules[]): void {
  const entries = readEntries(join(state.folder, relative));
  const own = entries.some(({ name }) => name === ".gitignore") ? readRules(state.folder, relative) : undefined;
  const all = own ? [...rules, own] : rules;
  for (const entry of entries) {
    const path = relative + entry.name;
    if (entry.isDirectory()) {
      const isLeftOut = skipped.has(entry.name) || state.bounds.except?.includes(join(state.folder, path));
      if (!isLeftOut && !isIgnored(all, `${path}/`)) walk(state, `${path}/`, all);
    } else if (entry.isFile() && !isIgnored(all, path)) addFile(state, path);
  }
}

function addFile(state: Walk, path: string): void {
  if (state.files.size >= state.bounds.maxFiles) {
    state.full = true;
    return;
  }
  const at = join(state.folder, path);
  const stats = lstatSync(at, { throwIfNoEntry: false });
  if (!stats?.isFile()) return;
  const mode = stats.mode & 0o7777;
  const stamp = `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
  const fits = stats.size <= state.bounds.maxFileBytes && state.kept + stats.size <= state.bounds.maxTotalBytes;
  const known = state.last?.files.get(path);
  const content = known?.stamp === stamp ? known.content : fits ? readContent(at) : undefined;
  state.kept += content?.length ?? 0;
  state.files.set(path, content === undefined ? { stamp, mode } : { stamp, mode, content });
}

function readContent(path: string): Uint8Array | undefined {
  try {
    return readFileSync(path);
  } catch {
    // Not readable or just removed, so only its stamp tells that it changed.
    return undefined;
  }
}

function readEntries(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // We may not read it, so what happens in there is not shown.
    return [];
  }
}

function readRules(folder: string, relative: string): Rules | undefined {
  const bytes = readContent(join(folder, relative, ".gitignore"));
  return bytes && { base: relative, matcher: ignore().add(Buffer.from(bytes).toString("utf8")) };
}

function isIgnored(rules: readonly Rules[], path: string): boolean {
  for (const { base, matcher } of rules.toReversed()) {
    const verdict = matcher.test(path.slice(base.length));
    if (verdict.ignored || verdict.unignored) return verdict.ignored;
  }
  return false;
}
