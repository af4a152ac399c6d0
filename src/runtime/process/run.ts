/** One command from start to end: its limits of time and output, how it is stopped, and how it ended. */
import type { ExecChunk, ExecResult } from "../../spec/capability.ts";
import type { Child, ChildEnd, Confined, Spawner } from "./child.ts";
import { createDeltas } from "./deltas.ts";
import { createRecording, type KeptFile } from "./recording.ts";

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

export type Finished = ChildEnd &
  Pick<ExecResult, "stdout" | "stderr" | "output" | "timedOut" | "durationMs"> & {
    readonly aborted: boolean;
    readonly waitingForInput: boolean;
  };

/** How long a command that is asked to stop may take before it is killed. */
const stopGraceMs = 50;

/** Node fires a longer timer at once. */
const longestTimerMs = 2 ** 31 - 1;

/** How long the output of an ended command may be held open by another process. */
const heldOpenGraceMs = 250;

/** How much a command with `onLine` may print, in total and in one line. More ends it. */
const maxTalkBytes = 256 * 1024 * 1024;
const maxLineBytes = 16 * 1024 * 1024;

/** Runs one command until it ends, its time is up, or the caller stops it. */
export async function runToEnd(spawner: Spawner, launch: Confined, options: RunOptions): Promise<Finished> {
  const { maxOutputBytes, keep, keepBytes = 0, signal, onLine } = options;
  const started = performance.now();
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
  return { ...end, ...recording.take(), ...stop.seen(), durationMs: performance.now() - started };
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
