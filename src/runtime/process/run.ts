/** One command from start to end: its limits of time and output, its being stopped, and how it ended. */
import type { ExecChunk, ExecResult } from "../../spec/capability.ts";
import type { Child, ChildEnd, Confined, Spawner } from "./child.ts";
import { createDeltas } from "./deltas.ts";
import { createRecording, type KeptFile } from "./recording.ts";

export interface RunOptions {
  readonly maxOutputBytes: number;
  /** Opens a file for an output that does not fit into that. Left out: what does not fit is only counted. */
  readonly keep?: (() => KeptFile) | undefined;
  readonly keepBytes?: number;
  readonly onOutput: ((chunk: ExecChunk) => void) | undefined;
  readonly signal: AbortSignal;
}

export type Finished = ChildEnd &
  Pick<ExecResult, "stdout" | "stderr" | "output" | "timedOut" | "durationMs"> & {
    readonly aborted: boolean;
    readonly waitingForInput: boolean;
  };

/** What is given to a command that is told to stop, before it is made to. */
const stopGraceMs = 50;

/** Node fires a longer timer at once. */
const longestTimerMs = 2 ** 31 - 1;

/** How long the output of an ended command may be held open by another process. */
const heldOpenGraceMs = 250;

/** Runs one command to its end: the command's own, the time limit's or the caller's. */
export async function runToEnd(spawner: Spawner, launch: Confined, options: RunOptions): Promise<Finished> {
  const { maxOutputBytes, keep, keepBytes = 0, signal } = options;
  const started = performance.now();
  const recording = createRecording({ maxBytes: maxOutputBytes, keep, keepBytes });
  const deltas = createDeltas(options.onOutput);
  // The launcher writes the file itself: through us a flood would cost twice as much.
  const file = keep && keepBytes > maxOutputBytes && spawner.name === "launcher" ? keep() : undefined;
  const child = await spawner.start(launch, {
    liveBytes: maxOutputBytes,
    tailBytes: maxOutputBytes,
    graceMs: heldOpenGraceMs,
    onOutput(stream, bytes) {
      recording.push(stream, bytes);
      deltas.push(stream, bytes);
    },
    ...(file && { keep: { path: file.path, bytes: keepBytes }, onKept: (n) => recording.keptElsewhere(file, n) }),
    onDropped(stream, count, breaks) {
      recording.skip(stream, count, breaks);
      deltas.skip(stream, count);
    },
  });
  if (launch.stdin !== undefined) {
    child.write(launch.stdin);
    child.endInput();
  }
  const stop = watch(child, launch.limits?.timeoutMs, signal);
  const end = await child.ended.finally(stop.forget);
  deltas.end();
  return { ...end, ...recording.take(), ...stop.seen(), durationMs: performance.now() - started };
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
