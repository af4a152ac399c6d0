/**
 * The part of a search that runs in a thread of its own, because a pattern written by a model may
 * take for ever and a thread can be ended. It is handed over as source text, so it uses nothing but
 * what it requires itself; that keeps it working in any bundle.
 */
import type * as Fs from "node:fs";
import type * as Threads from "node:worker_threads";

export interface WorkerJob {
  readonly id: number;
  readonly pattern: string;
  readonly flags: string;
  /** A text that every match contains; empty if none is known. */
  readonly literal: string;
  readonly folders: readonly FolderFiles[];
  /** Lines per file; 0: only whether it matches. */
  readonly maxLines: number;
  readonly maxFileBytes: number;
}

/** Files of one folder. Their names are one text, because a thread is handed one text much faster than many. */
export interface FolderFiles {
  readonly folder: string;
  /** With a slash between them, which no name contains. */
  readonly names: string;
}

export interface WorkerHit {
  readonly path: string;
  readonly modifiedMs: number;
  readonly lines: readonly { readonly number: number; readonly text: string }[];
}

export interface WorkerAnswer {
  readonly id: number;
  readonly hits: readonly WorkerHit[];
  readonly skipped: number;
}

/** Runs inside the thread. */
function workerMain(require: NodeJS.Require): void {
  const fs = require("node:fs") as typeof Fs;
  const { parentPort } = require("node:worker_threads") as typeof Threads;
  const isLinux = process.platform === "linux";
  const flagsToRead = fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0);
  // Missing in node:fs: names a folder without opening it.
  const O_PATH = 0o10000000;
  let buffer = Buffer.allocUnsafe(1 << 20);

  /** The path for system calls: a folder that was swapped for a link since the listing would lead elsewhere. */
  const enter = (folder: string): { readonly at: string; close(): void } => {
    const base = folder === "/" ? "" : folder;
    if (!isLinux) return { at: base, close() {} };
    const fd = fs.openSync(folder, O_PATH | fs.constants.O_DIRECTORY);
    const at = `/proc/self/fd/${fd}`;
    if (fs.readlinkSync(at) === folder) return { at, close: () => fs.closeSync(fd) };
    fs.closeSync(fd);
    throw new Error("swapped");
  };

  const load = (at: string, maxBytes: number): Buffer | undefined => {
    const fd = fs.openSync(at, flagsToRead);
    try {
      const length = fs.readSync(fd, buffer, 0, buffer.length, 0);
      if (length < buffer.length) return buffer.subarray(0, length);
      const { size } = fs.fstatSync(fd);
      if (size > maxBytes) return undefined;
      if (size > buffer.length) buffer = Buffer.allocUnsafe(size + 1);
      return buffer.subarray(0, fs.readSync(fd, buffer, 0, buffer.length, 0));
    } finally {
      fs.closeSync(fd);
    }
  };

  const linesOf = (text: string, regex: RegExp, max: number) => {
    const lines: { number: number; text: string }[] = [];
    let number = 0;
    for (const line of text.split("\n")) {
      number++;
      if (!regex.test(line)) continue;
      lines.push({ number, text: Buffer.from(line.slice(0, 2_000), "latin1").toString("utf8").replace(/\r$/, "") });
      if (lines.length >= Math.max(1, max)) break;
    }
    return lines;
  };

  parentPort?.on("message", (job: WorkerJob) => {
    const whole = new RegExp(job.pattern, `${job.flags}m`);
    const perLine = new RegExp(job.pattern, job.flags);
    const literal = Buffer.from(job.literal, "latin1");
    const hits: WorkerHit[] = [];
    let skipped = 0;

    /** Undefined if the file matches nowhere or is no text. Throws if it cannot be read. */
    const look = (at: string, path: string): WorkerHit | undefined => {
      const bytes = load(at, job.maxFileBytes);
      if (bytes === undefined) throw new Error("too large");
      if (!bytes.includes(literal) || bytes.subarray(0, 8_192).includes(0)) return undefined;
      const text = bytes.toString("latin1");
      // The whole text first: most files do not match, and splitting them would be wasted.
      if (!whole.test(text)) return undefined;
      const lines = linesOf(text, perLine, job.maxLines);
      if (lines.length === 0) return undefined;
      return { path, modifiedMs: fs.lstatSync(at).mtimeMs, lines: job.maxLines === 0 ? [] : lines };
    };

    for (const { folder, names } of job.folders) {
      const files = names.split("/");
      let place: ReturnType<typeof enter>;
      try {
        place = enter(folder);
      } catch {
        // Gone, unreadable or swapped since the listing.
        skipped += files.length;
        continue;
      }
      for (const name of files) {
        try {
          const hit = look(`${place.at}/${name}`, folder === "/" ? `/${name}` : `${folder}/${name}`);
          if (hit !== undefined) hits.push(hit);
        } catch {
          // Gone or unreadable since the listing, or too large: counted, and the search goes on.
          skipped++;
        }
      }
      place.close();
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    parentPort.postMessage({ id: job.id, hits, skipped } satisfies WorkerAnswer);
  });
}

export const workerSource = `(${workerMain.toString()})(require)`;
