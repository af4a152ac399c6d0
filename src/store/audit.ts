/**
 * Every decision, in a chain: each line carries the hash of the one before, so a line that was
 * changed, taken out or put in shows. `verifyAudit` says where the chain breaks.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { isObject, parseJson } from "../base/json.ts";

/** What is recorded: who or what decided about which call, and why. Plain JSON. */
export type AuditEntry = Readonly<Record<string, unknown>>;

export interface Audit {
  readonly path: string;
  append(entry: AuditEntry): void;
}

export interface AuditReport {
  readonly ok: boolean;
  readonly entries: number;
  /** Of the last good line: keep it elsewhere to notice a log that was cut short. */
  readonly head: string;
  readonly problem?: { readonly line: number; readonly what: string };
}

export interface AuditOptions {
  readonly path: string;
  readonly now?: () => number;
}

const start = "0".repeat(64);

export function createAudit({ path, now = Date.now }: AuditOptions): Audit {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Where our own last line ended: as long as nobody else has written, its hash need not be read back.
  let own = { size: -1, hash: start };
  return {
    path,
    append(entry) {
      withLock(`${path}.lock`, () => {
        const fd = openSync(path, "a+", 0o600);
        try {
          const { size } = fstatSync(fd);
          const tail = size === own.size ? { hash: own.hash, torn: false } : readTail(fd, size);
          const body = JSON.stringify({ at: now(), ...entry });
          const hash = link(tail.hash, body);
          // A torn last line stays as evidence; the next one begins on its own line.
          const line = `${tail.torn ? "\n" : ""}${JSON.stringify({ hash, previous: tail.hash, entry: body })}\n`;
          own = { size: size + writeSync(fd, line), hash };
        } finally {
          closeSync(fd);
        }
      });
    },
  };
}

function link(previous: string, body: string): string {
  return createHash("sha256").update(previous).update("\n").update(body).digest("hex");
}

export function verifyAudit(path: string): AuditReport {
  const text = readFileSync(path, "utf8");
  let head = start;
  let entries = 0;
  const lines = text.split("\n");
  for (const [index, line] of lines.entries()) {
    if (line === "" && index === lines.length - 1) break;
    const what = checkLine(line, head);
    if (typeof what === "string") return { ok: false, entries, head, problem: { line: index + 1, what } };
    head = what.hash;
    entries++;
  }
  return { ok: true, entries, head };
}

interface Line {
  readonly hash: string;
  readonly previous: string;
  readonly entry: string;
}

function checkLine(text: string, head: string): Line | string {
  const line = readLine(text);
  if (line === undefined) return "not a whole line of this log";
  if (line.previous !== head) return "it does not follow the line before: something was taken out, put in or reordered";
  return link(line.previous, line.entry) === line.hash ? line : "it was changed after it was written";
}

function readLine(text: string): Line | undefined {
  const parsed = parseJson(text);
  if (!parsed.ok || !isObject(parsed.value)) return undefined;
  const { hash, previous, entry } = parsed.value;
  return typeof hash === "string" && typeof previous === "string" && typeof entry === "string"
    ? { hash, previous, entry }
    : undefined;
}

/** The last whole line's hash, from the end of the file: the log is never read as a whole to append to it. */
function readTail(fd: number, size: number): { readonly hash: string; readonly torn: boolean } {
  if (size === 0) return { hash: start, torn: false };
  for (let length = 64 * 1024; ; length *= 2) {
    const from = Math.max(0, size - length);
    const buffer = Buffer.alloc(size - from);
    readSync(fd, buffer, 0, buffer.length, from);
    const text = buffer.toString("utf8");
    const lines = text.split("\n");
    const whole = (from === 0 ? lines : lines.slice(1)).findLast((line) => line !== "" && readLine(line) !== undefined);
    if (whole !== undefined) return { hash: readLine(whole)!.hash, torn: !text.endsWith("\n") };
    if (from === 0) return { hash: start, torn: !text.endsWith("\n") };
  }
}

const lockWaitMs = 2_000;
/** A line takes well under a millisecond: a lock this old belongs to nobody any more. */
const staleMs = 1_000;

/** Several processes may write one log; a lock left by a killed one is taken over. */
function withLock(lock: string, run: () => void): void {
  const until = Date.now() + lockWaitMs;
  for (;;) {
    try {
      closeSync(openSync(lock, "wx", 0o600)); // an empty file: a folder would cost the disk a block
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
        throw new Error(`the audit log cannot be written (${error instanceof Error ? error.message : String(error)})`, {
          cause: error,
        });
      }
      const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > staleMs) rmSync(lock, { force: true });
      else if (Date.now() > until) throw new Error(`the audit log is locked (${lock})`, { cause: error });
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
  try {
    run();
  } finally {
    unlock(lock);
  }
}

function unlock(lock: string): void {
  try {
    unlinkSync(lock);
  } catch {
    // Somebody took it for stale: it is theirs now.
  }
}
