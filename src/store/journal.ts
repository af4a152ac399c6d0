/**
 * What happened, recorded: one file per session, one JSON line per record, appended and never changed.
 * A record is written to the kernel before `append` returns, so a SIGKILL at any byte loses nothing
 * that was acknowledged. `store/` knows no model and runs no tool.
 */
import { closeSync, fdatasync, fstatSync, ftruncateSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { jsonPieces } from "../base/json-pieces.ts";
import { lockFile } from "./lock.ts";
import { cutBack, writeWhole } from "./whole.ts";

/** Longer lines are written in several parts. */
const maxGatheredChars = 65_536;

/** One line. `n` counts from 0, `at` is milliseconds since the epoch; the rest belongs to `type`. */
export interface JournalRecord {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A record of a journal, with its number and time. */
export type StoredRecord = JournalRecord & { readonly n: number; readonly at: number };

/** The file that a session is recorded in. */
export interface Journal {
  readonly path: string;
  /** How many records it holds: the number of the next one. */
  readonly length: number;
  /**
   * Several records are written at once: all of them, or none if it throws. What a full disk cut off is
   * taken away again, and the journal goes on once there is room.
   */
  append(...records: readonly JournalRecord[]): void;
  /** Resolves when what was appended also survives a power cut, because the disk has confirmed it. */
  sync(): Promise<void>;
  close(): void;
}

/** What is wrong with a journal, and where. */
export interface JournalProblem {
  readonly line: number;
  readonly byte: number;
  /** `torn`: the last line is incomplete, the sign of a kill. `edited`: a line does not match its checksum. */
  readonly what: "torn" | "edited";
  readonly detail: string;
}

/** The records of a journal, as far as they are intact. */
export interface ReadJournal {
  readonly records: readonly StoredRecord[];
  readonly problems: readonly JournalProblem[];
  /** Bytes up to the end of the last good line. */
  readonly goodBytes: number;
  readonly lastSum: number;
}

/**
 * Opens a journal for appending. A torn last line is cut off. Throws for an edited line, because what
 * follows it cannot be trusted, and if the journal is being written already, by another process or this one.
 */
export function openJournal(path: string, now: () => number = Date.now): Journal {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const unlock = lockFile(path);
  let fd: number | undefined;
  try {
    fd = openSync(path, "a+", 0o600);
    const read = fstatSync(fd).size === 0 ? emptyJournal : readJournal(path);
    const edited = read.problems.find((problem) => problem.what === "edited");
    if (edited) throw new Error(`${path}, line ${edited.line}: ${edited.detail}`);
    if (read.problems.length > 0) ftruncateSync(fd, read.goodBytes);
    return writeJournal({ path, fd, read, now, unlock });
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    unlock();
    throw error;
  }
}

interface OpenFile {
  readonly path: string;
  readonly fd: number;
  readonly read: ReadJournal;
  readonly now: () => number;
  unlock(): void;
}

function writeJournal({ path, fd, read, now, unlock }: OpenFile): Journal {
  let n = read.records.length;
  let sum = read.lastSum;
  let size = read.goodBytes;
  let isClosed = false;
  /** The number of a closed file may belong to another file by now. */
  const checkOpen = () => {
    if (isClosed) throw new Error(`${path} is closed`);
  };
  return {
    path,
    get length() {
      return n;
    },
    append(...records) {
      checkOpen();
      const before = { n, sum };
      let bytes = 0;
      try {
        let lines = "";
        for (const record of records) {
          let last = "";
          // A record's own `n` and `at` never stand in for the journal's.
          for (const piece of jsonPieces(Object.assign({ n: 0, at: 0 }, record, { n: n++, at: now() }))) {
            sum = crc32(piece, sum);
            lines += last;
            last = piece;
            if (lines.length < maxGatheredChars) continue;
            bytes += writeWhole(fd, lines); // a long answer is not held once more as a line
            lines = "";
          }
          lines += `${last.slice(0, -1)},"sum":"${hex(sum)}"}\n`;
        }
        if (lines !== "") bytes += writeWhole(fd, lines);
        size += bytes;
      } catch (error) {
        ({ n, sum } = before);
        cutBack(fd, size);
        throw error;
      }
    },
    async sync() {
      checkOpen();
      await new Promise<void>((resolve, reject) => fdatasync(fd, (error) => (error ? reject(error) : resolve())));
    },
    close() {
      if (isClosed) return;
      isClosed = true;
      closeSync(fd);
      unlock();
    },
  };
}

/** A journal that writes several records at once. */
export interface GatheringJournal extends Journal {
  /** Writes what was appended, which is otherwise done before the event loop goes on. */
  commit(): Promise<void>;
}

/**
 * Writes what is appended in one moment at once: with `commit`, `sync` or `close`, and before the event
 * loop goes on. A session commits before a call starts and before its model is asked, so nothing follows
 * from a record that is not written.
 */
export function gatherRecords(journal: Journal): GatheringJournal {
  let records: JournalRecord[] = [];
  let soon: NodeJS.Immediate | undefined;
  let failure: { readonly error: unknown } | undefined;
  const write = () => {
    if (soon !== undefined) clearImmediate(soon);
    soon = undefined;
    const failed = failure;
    failure = undefined;
    if (failed !== undefined) throw failed.error;
    if (records.length === 0) return;
    const all = records;
    records = [];
    journal.append(...all);
  };
  const writeSoon = () => {
    try {
      write();
    } catch (error) {
      failure = { error }; // nobody waits here, so whoever writes next is told
    }
  };
  return {
    path: journal.path,
    get length() {
      return journal.length + records.length;
    },
    append(...more) {
      if (failure !== undefined) write();
      records.push(...more);
      soon ??= setImmediate(writeSoon);
    },
    async commit() {
      write();
    },
    async sync() {
      write();
      await journal.sync();
    },
    close() {
      try {
        write();
      } finally {
        journal.close();
      }
    },
  };
}

/** Records as the lines of a journal, with checksums, as `readJournal` reads them. */
export function formatJournal(records: readonly StoredRecord[]): string {
  let sum = 0;
  return records
    .map((record) => {
      const body = JSON.stringify(record);
      sum = crc32(body, sum);
      return `${body.slice(0, -1)},"sum":"${hex(sum)}"}\n`;
    })
    .join("");
}

/**
 * Reads a journal and says exactly what is wrong with it, if anything. Records after an edited line
 * are not returned.
 */
export function readJournal(path: string): ReadJournal {
  const bytes = readFileSync(path);
  const records: StoredRecord[] = [];
  const problems: JournalProblem[] = [];
  let sum = 0;
  let start = 0;
  for (let line = 1; start < bytes.length; line++) {
    const end = bytes.indexOf(0x0a, start);
    if (end === -1) {
      problems.push({
        line,
        byte: start,
        what: "torn",
        detail: `the last line is incomplete (${bytes.length - start} bytes)`,
      });
      break;
    }
    const read = readLine(bytes.toString("utf8", start, end), sum);
    if (typeof read === "string") {
      problems.push({ line, byte: start, what: end === bytes.length - 1 ? "torn" : "edited", detail: read });
      break;
    }
    records.push(read.record);
    sum = read.sum;
    start = end + 1;
  }
  return { records, problems, goodBytes: start, lastSum: sum };
}

const emptyJournal: ReadJournal = { records: [], problems: [], goodBytes: 0, lastSum: 0 };
/** `,"sum":"` + 8 hex digits + `"}`: of fixed length, so that a checksum is found without parsing. */
const sumLength = `,"sum":"00000000"}`.length;

function readLine(text: string, before: number): { readonly record: StoredRecord; readonly sum: number } | string {
  const cut = text.length - sumLength;
  if (cut < 2 || !text.startsWith(`,"sum":"`, cut) || !text.endsWith(`"}`)) return "the line carries no checksum";
  const body = `${text.slice(0, cut)}}`;
  const sum = crc32(body, before);
  if (hex(sum) !== text.slice(-10, -2))
    return "the line does not match its checksum: it, or one before it, was changed";
  try {
    return { record: JSON.parse(body) as StoredRecord, sum };
  } catch {
    return "the line is not JSON";
  }
}

function hex(sum: number): string {
  return (sum >>> 0).toString(16).padStart(8, "0");
}
