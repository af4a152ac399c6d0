/** Undo: what a turn's file tools or a command did is kept, and undone completely or not at all. */
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CallError } from "../base/error.ts";
import { parseJson } from "../base/json.ts";
import { stateDir } from "../base/paths.ts";
import { createFiles, type FileChange } from "../runtime/files.ts";
import type { Files } from "../spec/capability.ts";

/** What was done to some files, in a form that can be undone later, even by another process. */
export interface UndoRecord {
  /** `SESSION:TURN` for what file tools did; a name of its own for a command. */
  readonly turn: string;
  readonly at: number;
  readonly files: readonly UndoFile[];
  /** Set if a command's changes were found by comparing the folder before and after it. */
  readonly snapshot?: SnapshotAbout;
  /** When it was undone. What its files held then is what redo restores. */
  readonly undoneAt?: number;
}

export interface SnapshotAbout {
  /** `SESSION:TURN` in which it ran. */
  readonly of: string;
  readonly command: readonly string[];
  /** Files that changed too, and cannot be undone because they were too large to be kept. */
  readonly leftOut: readonly string[];
}

export interface UndoFile {
  readonly path: string;
  /** Base64, or null if the file did not exist. */
  readonly before: string | null;
  /** The hash of what was left, or null if the file was removed. */
  readonly after: string | null;
  readonly mode: number;
}

export interface UndoLog {
  /** Collects a turn's changes. Nothing is on disk before `close`. */
  record(change: FileChange): void;
  /** The turn is over. What it did is kept, if it did anything. Returns what can no longer be undone. */
  close(turn: string, now: number): string | undefined;
  /** Keeps one record. Returns what can no longer be undone. */
  add(record: UndoRecord): string | undefined;
  /** All records, the oldest first. */
  all(): readonly UndoRecord[];
  /** Replaces a record by its inverse after it was undone, or redone. */
  replace(record: UndoRecord, by: UndoRecord): void;
}

/** Limits: older records are dropped, and so is one that is too large to keep. */
export interface UndoBounds {
  readonly records: number;
  readonly bytes: number;
}

const defaultBounds: UndoBounds = { records: 50, bytes: 64 * 1024 * 1024 };

/** Where a workspace's turns are kept. */
export function undoFile(workspace: string, env: Readonly<Record<string, string | undefined>> = process.env): string {
  return join(stateDir(env), "undo", `${createHash("sha256").update(workspace).digest("hex").slice(0, 32)}.jsonl`);
}

/** The file may be given by a function: its name takes a hash, and most sessions change nothing. */
export function createUndoLog(place: string | (() => string), bounds: UndoBounds = defaultBounds): UndoLog {
  const fileOf = () => (typeof place === "string" ? place : place());
  let open: FileChange[] = [];
  const add = (record: UndoRecord): string | undefined => {
    const line = JSON.stringify(record);
    if (line.length > bounds.bytes)
      return `what was changed just now cannot be taken back: it is more than the ${megabytes(bounds)} that are kept`;
    const file = fileOf();
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const text = textOf(file);
    const kept = linesOf(text);
    const from = firstToKeep(kept, line.length, bounds);
    const isCut = text !== "" && !text.endsWith("\n");
    if (from > 0 || isCut) rewrite(file, [...kept.slice(from), line]);
    else appendFileSync(file, `${line}\n`, { mode: 0o600 });
    if (from === 0) return undefined;
    const oldest = from === 1 ? "the oldest change" : `the ${from} oldest changes`;
    return `${oldest} of files here can no longer be taken back: the newest ${bounds.records} are kept, up to ${megabytes(bounds)}`;
  };
  return {
    record(change) {
      open.push(change);
    },
    close(turn, now) {
      const files = collect(open);
      open = [];
      return files.length === 0 ? undefined : add({ turn, at: now, files });
    },
    add,
    all: () => linesOf(textOf(fileOf())).flatMap((line) => toRecord(line) ?? []),
    replace(record, by) {
      const file = fileOf();
      const kept = linesOf(textOf(file));
      const at = kept.findLastIndex((line) => isOf(line, record));
      const line = JSON.stringify(by);
      // Another process may have dropped it meanwhile, to make room.
      rewrite(file, at < 0 ? [...kept, line] : kept.with(at, line));
    },
  };
}

/** How many of the oldest are dropped to make room for one more. */
function firstToKeep(kept: readonly string[], more: number, bounds: UndoBounds): number {
  let from = Math.max(0, kept.length + 1 - bounds.records);
  let total = more + kept.slice(from).reduce((sum, { length }) => sum + length, 0);
  while (total > bounds.bytes) total -= kept[from++]!.length;
  return from;
}

function megabytes({ bytes }: UndoBounds): string {
  return `${Math.ceil(bytes / 1024 / 1024)} MB`;
}

/** Undefined for a line that is not whole: something was appended to what a killed process had begun. */
function toRecord(line: string): UndoRecord | undefined {
  const parsed = parseJson(line);
  return parsed.ok ? (parsed.value as unknown as UndoRecord) : undefined; // our own file, written above
}

function isOf(line: string, { turn, at }: UndoRecord): boolean {
  const record = toRecord(line);
  return record?.turn === turn && record.at === at;
}

function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

/** The whole lines. What a killed process left behind the last line break is none. */
function linesOf(text: string): readonly string[] {
  return text.split("\n").slice(0, -1);
}

function rewrite(file: string, kept: readonly string[]): void {
  const temporary = `${file}.new`;
  writeFileSync(temporary, kept.map((line) => `${line}\n`).join(""), { mode: 0o600 });
  renameSync(temporary, file);
}

/** Several changes of one file become one: what it was first, and what it is now. */
function collect(changes: readonly FileChange[]): readonly UndoFile[] {
  const byPath = new Map<string, UndoFile>();
  for (const { path, before, after, mode } of changes) {
    const first = byPath.get(path);
    byPath.set(path, {
      path,
      before: first ? first.before : before === undefined ? null : Buffer.from(before).toString("base64"),
      after: after === undefined ? null : hashOf(after),
      mode: (first?.mode ?? mode) & 0o7777,
    });
  }
  return [...byPath.values()].filter(({ before, after }) => !(before === null && after === null));
}

export function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export interface Undone {
  readonly path: string;
  readonly action: "restored" | "removed";
}

export interface ReversedTurn {
  readonly done: readonly Undone[];
  /** The inverse of this change, to be kept in the record's place. */
  readonly inverse: UndoRecord;
}

/**
 * File access for `reverseTurn`. A person may undo everything below the workspace, including files
 * that tools may not touch.
 */
export function filesToUndo(workspace: string): Files {
  const grant = {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [],
    mask: [],
    network: "off",
  } as const;
  return createFiles({ workspace, cwd: workspace, grant });
}

/**
 * Undoes what a record says, or redoes what was undone: all of it or nothing. A file that is no longer
 * as it was left stops it, with the reason.
 */
export async function reverseTurn(
  record: UndoRecord,
  files: Files,
  options: { readonly dryRun?: boolean; readonly now?: number } = {},
): Promise<ReversedTurn> {
  const { dryRun = false, now = Date.now() } = options;
  const looked = await Promise.all(record.files.map((file) => lookAt(file, files)));
  const against = looked.flatMap((one) => ("reason" in one ? [one] : []));
  if (against.length > 0) {
    const what = record.undoneAt === undefined ? "taken back" : "done again";
    throw new CallError("stale", `It cannot be ${what}: ${against.map(({ reason }) => reason).join("; ")}.`, {
      hint: "Save what was changed since, or change it by hand.",
      data: { conflicts: against.map(({ path }) => path) },
    });
  }
  const { undoneAt, ...rest } = record;
  const inverse = looked.flatMap((one) => ("reason" in one ? [] : [one]));
  const done: Undone[] = [];
  for (const file of record.files) {
    if (!dryRun) await restore(file, files);
    done.push({ path: file.path, action: file.before === null ? "removed" : "restored" });
  }
  return { done, inverse: { ...rest, files: inverse, ...(undoneAt === undefined ? { undoneAt: now } : {}) } };
}

interface Against {
  readonly path: string;
  readonly reason: string;
}

/** The change that would restore the file's present state, or why the file must not be touched. */
async function lookAt({ path, before, after, mode }: UndoFile, files: Files): Promise<UndoFile | Against> {
  const against = (reason: string): Against => ({ path, reason: `${path} ${reason}` });
  const was = before === null ? null : hashOf(Buffer.from(before, "base64"));
  const entry = await files.stat(path);
  if (entry === undefined) return after === null ? { path, before: null, after: was, mode } : against("is gone");
  // A link put there since then would carry the old content somewhere else.
  if (entry.type !== "file") return against(`is no longer a file but a ${entry.type}`);
  if (after === null) return against("is there again");
  const bytes = await files.read(path);
  if (hashOf(bytes) !== after) return against("has changed since");
  return { path, before: Buffer.from(bytes).toString("base64"), after: was, mode: entry.mode };
}

async function restore({ path, before, mode }: UndoFile, files: Files): Promise<void> {
  if (before === null) return files.remove(path);
  await files.write(path, Buffer.from(before, "base64"), { parents: true, evenIfChanged: true, mode });
}
