/** Undo: what a turn's file tools did is kept, and taken back whole or not at all. */
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CallError } from "../base/error.ts";
import { stateDir } from "../base/paths.ts";
import { createFiles, type FileChange } from "../runtime/files.ts";
import type { Files } from "../spec/capability.ts";

/** What one turn's file tools did, in a form that can be taken back later, by another process too. */
export interface UndoRecord {
  readonly turn: string;
  readonly at: number;
  readonly files: readonly UndoFile[];
}

interface UndoFile {
  readonly path: string;
  /** Base64; null: it was not there. */
  readonly before: string | null;
  /** Hash of what the turn left; null: it removed the file. */
  readonly after: string | null;
  readonly mode: number;
}

export interface UndoLog {
  /** Collects a turn's changes; nothing is on disk before `close`. */
  record(change: FileChange): void;
  /** The turn is over: what it did is kept, if it did anything. */
  close(turn: string, now: number): void;
  /** Oldest first. */
  all(): readonly UndoRecord[];
  last(): UndoRecord | undefined;
  /** Forgets a turn, after it was taken back; left out: the last. */
  drop(turn?: UndoRecord): void;
}

/** Older turns are forgotten, and so are turns too large to keep. */
const maxTurns = 50;
const maxTurnBytes = 64 * 1024 * 1024;

/** Where a workspace's turns are kept. */
export function undoFile(workspace: string, env: Readonly<Record<string, string | undefined>> = process.env): string {
  return join(stateDir(env), "undo", `${createHash("sha256").update(workspace).digest("hex").slice(0, 32)}.jsonl`);
}

export function createUndoLog(file: string): UndoLog {
  let open: FileChange[] = [];
  return {
    record(change) {
      open.push(change);
    },
    close(turn, now) {
      const files = collect(open);
      open = [];
      const line = JSON.stringify({ turn, at: now, files } satisfies UndoRecord);
      if (files.length === 0 || line.length > maxTurnBytes) return;
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      const kept = lines(file);
      if (kept.length >= maxTurns) rewrite(file, [...kept.slice(1 - maxTurns), line]);
      else appendFileSync(file, `${line}\n`, { mode: 0o600 });
    },
    all: () => lines(file).map(toRecord),
    last() {
      const line = lines(file).at(-1);
      return line === undefined ? undefined : toRecord(line);
    },
    drop(turn) {
      const kept = lines(file);
      const last = turn === undefined ? kept.length - 1 : kept.findLastIndex((line) => isOf(line, turn));
      rewrite(
        file,
        kept.filter((_, at) => at !== last),
      );
    },
  };
}

function toRecord(line: string): UndoRecord {
  return JSON.parse(line) as UndoRecord; // our own file, written above
}

function isOf(line: string, { turn, at }: UndoRecord): boolean {
  const record = toRecord(line);
  return record.turn === turn && record.at === at;
}

function lines(file: string): readonly string[] {
  return existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line.endsWith("}"))
    : [];
}

function rewrite(file: string, kept: readonly string[]): void {
  const temporary = `${file}.new`;
  writeFileSync(temporary, kept.map((line) => `${line}\n`).join(""), { mode: 0o600 });
  renameSync(temporary, file);
}

/** Many changes of one file are one: what it was first, what it is now. */
function collect(changes: readonly FileChange[]): readonly UndoFile[] {
  const byPath = new Map<string, UndoFile>();
  for (const { path, before, after, mode } of changes) {
    const first = byPath.get(path);
    byPath.set(path, {
      path,
      before: first ? first.before : before === undefined ? null : Buffer.from(before).toString("base64"),
      after: after === undefined ? null : hash(after),
      mode: first?.mode ?? mode,
    });
  }
  return [...byPath.values()].filter(({ before, after }) => !(before === null && after === null));
}

function hash(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

export interface Undone {
  readonly path: string;
  readonly action: "restored" | "removed";
}

/** File access for `undoTurn`: the person takes back what is below the workspace, files that tools may not touch too. */
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

/** Takes a turn back, all of it or nothing: a file that is no longer as the turn left it stops it, with the reason. */
export async function undoTurn(
  record: UndoRecord,
  files: Files,
  options: { readonly dryRun?: boolean } = {},
): Promise<readonly Undone[]> {
  const reasons = (await Promise.all(record.files.map((file) => reasonAgainst(file, files)))).filter(
    (reason) => reason !== undefined,
  );
  if (reasons.length > 0) {
    throw new CallError("stale", `The last turn cannot be taken back: ${reasons.join("; ")}.`, {
      hint: "Save what was changed since, or take it back by hand.",
    });
  }
  const done: Undone[] = [];
  for (const file of record.files) {
    if (options.dryRun !== true) await restore(file, files);
    done.push({ path: file.path, action: file.before === null ? "removed" : "restored" });
  }
  return done;
}

async function reasonAgainst({ path, after }: UndoFile, files: Files): Promise<string | undefined> {
  const entry = await files.stat(path);
  if (entry === undefined) return after === null ? undefined : `${path} is gone`;
  // A link put there since would carry the old content somewhere else.
  if (entry.type !== "file") return `${path} is no longer a file but a ${entry.type}`;
  if (after === null) return `${path} is there again`;
  return hash(await files.read(path)) === after ? undefined : `${path} has changed since`;
}

async function restore({ path, before, mode }: UndoFile, files: Files): Promise<void> {
  if (before === null) return files.remove(path);
  await files.write(path, Buffer.from(before, "base64"), { parents: true, evenIfChanged: true, mode });
}
