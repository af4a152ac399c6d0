/**
 * Every decision, in a chain: each line carries the hash of the one before, so a line that was
 * changed, removed or inserted shows. The length of the chain is stored separately, so that cutting
 * off its end shows too. `verifyAudit` says what is wrong, and where.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { defined, isObject, parseJson } from "../base/json.ts";
import { withLock } from "./lock.ts";
import { appendWhole, cutBack } from "./whole.ts";

/** What is recorded: who or what decided about which call, and why. Plain JSON. */
export type AuditEntry = Readonly<Record<string, unknown>>;

/** A log of decisions in which every entry holds the hash of the one before. */
export interface Audit {
  readonly path: string;
  /** Several entries are written at once. */
  append(...entries: readonly AuditEntry[]): void;
}

/** What is wrong with an audit log, and where. */
export interface AuditProblem {
  readonly line: number;
  /**
   * `changed`: a line is not as it was written. `order`: lines were removed, inserted or moved. `cut`:
   * the end is missing.
   */
  readonly kind: "changed" | "order" | "cut";
  readonly what: string;
}

/** Whether an audit log is complete and unchanged. */
export interface AuditReport {
  readonly ok: boolean;
  readonly entries: number;
  /** The hash of the last good line. */
  readonly head: string;
  readonly problem?: AuditProblem;
  /** Bytes of an incomplete last line, the sign of a kill. Its call never ran, and the next entry cuts it off. */
  readonly tornBytes?: number;
}

/** Options of `openAudit`. */
export interface AuditOptions {
  /** The log's file. */
  readonly path: string;
  /**
   * Where the number and the hash of the last entry are stored. Left out: beside the log, with `.head`
   * after its name.
   */
  readonly headPath?: string;
  /** The clock, for tests. */
  readonly now?: () => number;
}

/** How many entries there are, and the hash of the last one. */
interface Head {
  readonly count: number;
  readonly hash: string;
}

const start: Head = { count: 0, hash: "0".repeat(64) };

const auditShape = optionsShape<AuditOptions>({ path: "string", headPath: "string", now: "function" }, "path");

/** Opens an audit log, or begins one. A line that a crash cut off is repaired. */
export function openAudit(options: AuditOptions): Audit {
  checkOptions("openAudit", options, auditShape);
  const { path, headPath = `${path}.head`, now = Date.now } = options;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Where our own last line ended. As long as nobody else has written, nothing need be read back.
  let own: Head & { readonly size: number } = { ...start, size: -1 };
  return {
    path,
    append(...entries) {
      withLock(path, () => {
        const fd = openSync(path, "a+", 0o600);
        try {
          const { size } = fstatSync(fd);
          const known = size === own.size;
          const tail = known ? { count: own.count, hash: own.hash, torn: 0 } : readTail(fd, size, path);
          if (tail.torn > 0) ftruncateSync(fd, size - tail.torn);
          const missing = known ? undefined : missingEntries(tail, readHead(headPath));
          // What was found on the way becomes part of the chain, and cannot be denied later.
          let found = defined({ missing, torn: tail.torn === 0 ? undefined : tail.torn });
          let { count, hash } = tail;
          let lines = "";
          for (const entry of entries) {
            const body = JSON.stringify({ ...entry, ...found, n: ++count, at: now() });
            const previous = hash;
            hash = link(previous, body);
            lines += `${JSON.stringify({ hash, previous, entry: body })}\n`;
            found = {};
          }
          const end = size - tail.torn;
          // All of it or nothing, because a call whose line is refused does not run.
          const written = { count, hash, size: end + appendWhole(fd, end, lines) };
          try {
            writeHead(headPath, written);
          } catch (error) {
            cutBack(fd, end);
            throw error;
          }
          own = written;
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

/**
 * Entries that were once written and are no longer in the log. A head that lags behind the log is the
 * sign of a kill, and nothing is lost.
 */
function missingEntries(log: Head, head: Head | undefined): number | undefined {
  return head !== undefined && head.count > log.count ? head.count - log.count : undefined;
}

/** Always of the same length and written at once, so a kill leaves the old one or the new one. */
function writeHead(path: string, { count, hash }: Head): void {
  const fd = openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    writeSync(fd, `${String(count).padStart(15)} ${hash}\n`, 0);
  } finally {
    closeSync(fd);
  }
}

function readHead(path: string): Head | undefined {
  try {
    const match = /^ *(\d+) ([0-9a-f]{64})\n$/.exec(readFileSync(path, "utf8"));
    return match === null ? undefined : { count: Number(match[1]), hash: match[2]! };
  } catch {
    // Logs of older versions have none, and somebody may have removed it; `verify` reports that.
    return undefined;
  }
}

/** Options of `verifyAudit`. */
export interface VerifyOptions {
  /** The file with the last number and hash. Left out: beside the log. */
  readonly headPath?: string;
  /** The last hash, as noted elsewhere. */
  readonly head?: string;
}

/** Reads an audit log and says whether anything was changed, removed or cut off. */
export function verifyAudit(path: string, options: VerifyOptions = {}): AuditReport {
  checkOptions("verifyAudit", options, optionsShape<VerifyOptions>({ headPath: "string", head: "string" }));
  const lines = readFileSync(path, "utf8").split("\n");
  // After the last line break there is nothing, or an unfinished line.
  const torn = Buffer.byteLength(lines.pop() ?? "");
  let head = start;
  const hashes = new Set<string>();
  const report = (problem?: Omit<AuditProblem, "line">): AuditReport => ({
    ok: problem === undefined,
    entries: head.count,
    head: head.hash,
    ...(problem === undefined ? {} : { problem: { line: head.count + 1, ...problem } }),
    ...(torn === 0 ? {} : { tornBytes: torn }),
  });
  for (const text of lines) {
    const line = readLine(text);
    if (line === undefined) return report({ kind: "changed", what: "it is not a whole line of this log" });
    if (line.previous !== head.hash)
      return report({
        kind: "order",
        what: "it does not follow the line before: something was taken out, put in or reordered",
      });
    if (link(line.previous, line.entry) !== line.hash)
      return report({ kind: "changed", what: "it was changed after it was written" });
    if (line.missing !== undefined)
      return report({ kind: "cut", what: `it says that ${line.missing} entries before it were cut off` });
    head = { count: head.count + 1, hash: line.hash };
    hashes.add(line.hash);
  }
  return report(endProblem(head, hashes, readHead(options.headPath ?? `${path}.head`), options.head));
}

function endProblem(
  log: Head,
  hashes: ReadonlySet<string>,
  kept: Head | undefined,
  noted: string | undefined,
): Omit<AuditProblem, "line"> | undefined {
  if (noted !== undefined && noted !== log.hash)
    return { kind: "cut", what: "the log does not end with the hash you gave" };
  if (kept === undefined || kept.hash === log.hash) return undefined;
  if (kept.count > log.count)
    return { kind: "cut", what: `the end was cut off: ${kept.count} entries were written, and ${log.count} are here` };
  return hashes.has(kept.hash)
    ? undefined
    : { kind: "cut", what: "it is another log than the one its head was kept of" };
}

interface Line {
  readonly hash: string;
  readonly previous: string;
  readonly entry: string;
  readonly count?: number;
  readonly missing?: number;
}

function readLine(text: string): Line | undefined {
  const parsed = parseJson(text);
  if (!parsed.ok || !isObject(parsed.value)) return undefined;
  const { hash, previous, entry } = parsed.value;
  if (typeof hash !== "string" || typeof previous !== "string" || typeof entry !== "string") return undefined;
  const body = parseJson(entry);
  const { n, missing } = body.ok && isObject(body.value) ? body.value : {};
  return {
    hash,
    previous,
    entry,
    ...(typeof n === "number" ? { count: n } : {}),
    ...(typeof missing === "number" ? { missing } : {}),
  };
}

/** The last complete line, read from the end of the file, because appending must not read the whole log. */
function readTail(fd: number, size: number, path: string): Head & { readonly torn: number } {
  if (size === 0) return { ...start, torn: 0 };
  for (let length = 64 * 1024; ; length *= 2) {
    const from = Math.max(0, size - length);
    const buffer = Buffer.alloc(size - from);
    readSync(fd, buffer, 0, buffer.length, from);
    const end = buffer.lastIndexOf(0x0a);
    const torn = buffer.length - end - 1;
    const before = end <= 0 ? -1 : buffer.lastIndexOf(0x0a, end - 1);
    if (end < 0 || (before < 0 && from > 0)) {
      if (from === 0) return { ...start, torn };
      continue;
    }
    const line = readLine(buffer.toString("utf8", before + 1, end));
    // If somebody damaged the last line, the chain breaks there, and `verify` reports that.
    const hash = line?.hash ?? start.hash;
    return { count: line?.count ?? countLines(path), hash, torn };
  }
}

/** Logs of older versions do not number their entries. */
function countLines(path: string): number {
  return readFileSync(path, "utf8").split("\n").length - 1;
}
