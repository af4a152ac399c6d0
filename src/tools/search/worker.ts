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
  readonly paths: readonly string[];
  /** Lines per file; 0: only whether it matches. */
  readonly maxLines: number;
  readonly maxFileBytes: number;
}

interface WorkerHit {
  /** Index into the job's paths. */
  readonly index: number;
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
  let buffer = Buffer.allocUnsafe(1 << 20);

  const load = (path: string, maxBytes: number): Buffer | undefined => {
    const fd = fs.openSync(path, flagsToRead);
    try {
      // A folder swapped for a link since the listing would lead elsewhere.
      if (isLinux && fs.readlinkSync(`/proc/self/fd/${fd}`) !== path) return undefined;
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
    const hits: WorkerHit[] = [];
    let skipped = 0;
    for (const [index, path] of job.paths.entries()) {
      try {
        const bytes = load(path, job.maxFileBytes);
        if (bytes === undefined) {
          skipped++;
          continue;
        }
        if (bytes.subarray(0, 8_192).includes(0)) continue;
        const text = bytes.toString("latin1");
        // The whole text first: most files do not match, and splitting them would be wasted.
        if (!whole.test(text)) continue;
        const lines = linesOf(text, perLine, job.maxLines);
        if (lines.length > 0) hits.push({ index, lines: job.maxLines === 0 ? [] : lines });
      } catch {
        // Gone or unreadable since the listing: counted, and the search goes on.
        skipped++;
      }
    }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    parentPort.postMessage({ id: job.id, hits, skipped } satisfies WorkerAnswer);
  });
}

export const workerSource = `(${workerMain.toString()})(require)`;
