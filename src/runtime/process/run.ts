/**
 * One command from start to end: its limits of time and output, how it is stopped, how it ended, and
 * what it printed: both ends in memory, and the whole in a file if it is long.
 */
import { longestTimerMs } from "../../base/signal.ts";
import type { ExecChunk, ExecResult } from "../../spec/capability.ts";
import { countBreaks, createCapture, type Capture } from "./capture.ts";
import type { Child, ChildEnd, Confined, OutputStream, Spawner } from "./child.ts";
import { createDeltas } from "./deltas.ts";

export interface RunOptions {
  readonly maxOutputBytes: number;
  /** Opens a file for an output that does not fit. Left out: what does not fit is only counted. */
  readonly keep?: (() => KeptFile) | undefined;
  readonly keepBytes?: number;
  readonly onOutput: ((chunk: ExecChunk) => void) | undefined;
  /** Receives each line of its standard output and may answer it. The output is then neither recorded nor shown. */
  readonly onLine?: ((line: string, reply: (text: string) => void) => void) | undefined;
  readonly signal: AbortSignal;
}

/** The result of a command, but for what its sandbox has to say. */
export interface RunEnd extends ChildEnd, Recorded, Pick<ExecResult, "timedOut" | "durationMs"> {
  readonly aborted: boolean;
  readonly waitingForInput: boolean;
}

/** In milliseconds, never backwards. Not `performance`, whose first use loads four modules before the first command. */
const now = () => process.uptime() * 1000;

/** How long a command that is asked to stop may take before it is killed. */
const stopGraceMs = 50;

/** How long the output of an ended command may be held open by another process. */
const heldOpenGraceMs = 250;

/** How much a command with `onLine` may print, in total and in one line. More ends it. */
const maxTalkBytes = 256 * 1024 * 1024;
const maxLineBytes = 16 * 1024 * 1024;

/** Runs one command until it ends, its time is up, or the caller stops it. */
export async function runToEnd(spawner: Spawner, launch: Confined, options: RunOptions): Promise<RunEnd> {
  const { maxOutputBytes, keep, keepBytes = 0, signal, onLine } = options;
  const started = now();
  const recording = createRecording({ maxBytes: maxOutputBytes, keep, keepBytes });
  const deltas = createDeltas(options.onOutput);
  // The launcher writes the file itself, because a flood of output would cost twice as much through us.
  const file = keep && keepBytes > maxOutputBytes && spawner.name === "launcher" ? keep() : undefined;
  const talk = onLine === undefined ? undefined : createLines(maxLineBytes, (line) => onLine(line, child.write));
  const child: Child = await spawner.start(launch, {
    liveBytes: talk ? maxTalkBytes : maxOutputBytes,
    tailBytes: maxOutputBytes,
    graceMs: heldOpenGraceMs,
    onOutput(stream, bytes) {
      if (talk && stream === "stdout") return talk.push(bytes) ? undefined : child.kill();
      recording.push(stream, bytes);
      deltas.push(stream, bytes);
    },
    ...(file && { keep: { path: file.path, bytes: keepBytes }, onKept: (n) => recording.keptElsewhere(file, n) }),
    onDropped(stream, count, breaks) {
      if (talk && stream === "stdout") return child.kill();
      recording.skip(stream, count, breaks);
      deltas.skip(stream, count);
    },
  });
  if (launch.stdin !== undefined) {
    child.write(launch.stdin);
    if (!talk) child.endInput();
  }
  const stop = watch(child, launch.limits?.timeoutMs, signal);
  const end = await child.ended.finally(stop.forget);
  deltas.end();
  return { ...end, ...recording.take(), ...stop.seen(), durationMs: now() - started };
}

/** Splits bytes into lines. False if a line is too long. */
function createLines(maxBytes: number, onLine: (line: string) => void): { push(bytes: Buffer): boolean } {
  let parts: Buffer[] = [];
  let size = 0;
  return {
    push(bytes) {
      let rest = bytes;
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        onLine(Buffer.concat([...parts, rest.subarray(0, end)]).toString("utf8"));
        rest = rest.subarray(end + 1);
        parts = [];
        size = 0;
      }
      if (rest.length > 0) parts.push(rest);
      return (size += rest.length) <= maxBytes;
    },
  };
}

interface Stop {
  forget(): void;
  seen(): { readonly timedOut: boolean; readonly aborted: boolean; readonly waitingForInput: boolean };
}

function watch(child: Child, timeoutMs: number | undefined, signal: AbortSignal): Stop {
  let timedOut = false;
  let aborted = false;
  let waitingForInput = false;
  let killTimer: NodeJS.Timeout | undefined;

  function onAbort(): void {
    aborted = true;
    child.signal("SIGTERM");
    killTimer = setTimeout(() => child.kill(), stopGraceMs);
  }

  async function onTimeout(): Promise<void> {
    timedOut = true;
    waitingForInput = await child.isWaiting().catch(() => false);
    child.kill();
  }

  const timer =
    timeoutMs === undefined ? undefined : setTimeout(() => void onTimeout(), Math.min(timeoutMs, longestTimerMs));
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return {
    forget() {
      clearTimeout(timer);
      clearTimeout(killTimer);
      signal.removeEventListener("abort", onAbort);
    },
    seen: () => ({ timedOut, aborted, waitingForInput }),
  };
}

/** A separate file for one output. */
export interface KeptFile {
  readonly path: string;
  /** Throws if the disk is full. */
  write(bytes: Uint8Array): void;
  /** Writes the first bytes of a file whose rest the launcher has written. */
  writeBeginning(pieces: readonly Uint8Array[]): void;
  close(): void;
}

export interface RecordingOptions {
  /** How many bytes of each stream are kept in memory. */
  readonly maxBytes: number;
  /** Opens the file for a longer output. Left out: what does not fit is only counted. */
  readonly keep: (() => KeptFile) | undefined;
  /** How many bytes go into that file at most. */
  readonly keepBytes: number;
}

export interface Recording {
  push(stream: OutputStream, bytes: Buffer): void;
  /** Bytes that were read and thrown away, with the line breaks among them. */
  skip(stream: OutputStream, count: number, breaks: number): void;
  /** The launcher has written everything that comes from here on to this file, which is now this long. */
  keptElsewhere(file: KeptFile, bytes: number): void;
  /** What came since the start, or since this was last called. */
  take(): Recorded;
}

export type Recorded = Pick<ExecResult, "stdout" | "stderr" | "output">;

export function createRecording(options: RecordingOptions): Recording {
  let taken = start(options);
  return {
    push: (stream, bytes) => taken.push(stream, bytes),
    skip: (stream, count, breaks) => taken.skip(stream, count, breaks),
    keptElsewhere: (file, bytes) => taken.keptElsewhere(file, bytes),
    take() {
      const recorded = taken.end();
      taken = start(options);
      return recorded;
    },
  };
}

function start({ maxBytes, keep, keepBytes }: RecordingOptions) {
  const streams = { stdout: createCapture(maxBytes), stderr: createCapture(maxBytes) };
  // As long as only one stream has written, it is the whole output, and nothing is copied twice.
  let both: Capture | undefined;
  const spool = keep && createSpool(keep, keepBytes);

  function wholeFor(stream: OutputStream): Capture {
    if (both) return both;
    const other = streams[stream === "stdout" ? "stderr" : "stdout"];
    return other.totalBytes() === 0 ? streams[stream] : (both = other.clone());
  }

  return {
    push(stream: OutputStream, bytes: Buffer): void {
      const breaks = countBreaks(bytes);
      const whole = wholeFor(stream);
      if (spool && whole.totalBytes() + bytes.length > maxBytes) spool.push(bytes, whole);
      streams[stream].push(bytes, breaks);
      both?.push(bytes, breaks);
    },
    skip(stream: OutputStream, count: number, breaks: number): void {
      spool?.stop();
      wholeFor(stream);
      streams[stream].skip(count, breaks);
      both?.skip(count, breaks);
    },
    keptElsewhere(file: KeptFile, bytes: number): void {
      const whole = both ?? (streams.stderr.totalBytes() === 0 ? streams.stdout : streams.stderr);
      spool?.adopt(file, whole.pieces(), bytes);
    },
    end(): Recorded {
      const kept = spool?.end();
      const [stdout, stderr] = [streams.stdout.read(), streams.stderr.read()];
      const whole = both ? both.read() : stderr.totalBytes === 0 ? stdout : stderr;
      return { stdout, stderr, output: kept === undefined ? whole : { ...whole, kept } };
    },
  };
}

/** Writes while it reads, so that nothing waits in memory, however fast it comes. */
function createSpool(keep: () => KeptFile, keepBytes: number) {
  let file: KeptFile | undefined;
  let bytes = 0;
  let stopped = false;

  function write(piece: Buffer): void {
    const part = piece.length <= keepBytes - bytes ? piece : piece.subarray(0, Math.max(0, keepBytes - bytes));
    if (part.length === 0) return;
    try {
      file?.write(part);
      bytes += part.length;
    } catch {
      stopped = true; // the disk is full: what is there stays, and nothing more is written
    }
  }

  return {
    /** `before` is what came until now. On the first call, all of it is still in memory. */
    push(piece: Buffer, before: Capture): void {
      if (stopped) return;
      if (file === undefined) {
        try {
          file = keep();
        } catch {
          stopped = true; // there is no place for it: the output is cut, and no file is promised
          return;
        }
        for (const earlier of before.pieces()) write(earlier);
      }
      if (!stopped) write(piece);
    },
    stop(): void {
      stopped = true;
    },
    adopt(whole: KeptFile, beginning: readonly Buffer[], length: number): void {
      stopped = true;
      try {
        whole.writeBeginning(beginning);
        file = whole;
        bytes = length;
      } catch {
        whole.close(); // its beginning cannot be written, so the file is not mentioned
      }
    },
    end(): { readonly path: string; readonly bytes: number } | undefined {
      file?.close();
      return file === undefined || bytes === 0 ? undefined : { path: file.path, bytes };
    },
  };
}
