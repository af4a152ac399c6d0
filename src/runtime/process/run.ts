/** One command from start to end: its limits of time and output, its being stopped, and how it ended. */
import type { CapturedOutput, ExecChunk } from "../../spec/capability.ts";
import { createCapture } from "./capture.ts";
import type { Child, ChildEnd, Confined, Spawner } from "./child.ts";
import { createDeltas } from "./deltas.ts";

export interface RunOptions {
  readonly maxOutputBytes: number;
  readonly onOutput: ((chunk: ExecChunk) => void) | undefined;
  readonly signal: AbortSignal;
}

export interface Finished extends ChildEnd {
  readonly stdout: CapturedOutput;
  readonly stderr: CapturedOutput;
  readonly output: CapturedOutput;
  readonly timedOut: boolean;
  readonly aborted: boolean;
  readonly waitingForInput: boolean;
  readonly durationMs: number;
}

/** What is given to a command that is told to stop, before it is made to. */
const stopGraceMs = 50;

/** Node fires a longer timer at once. */
const longestTimerMs = 2 ** 31 - 1;

/** How long the output of an ended command may be held open by another process. */
const heldOpenGraceMs = 250;

/** Runs one command to its end: the command's own, the time limit's or the caller's. */
export async function runToEnd(spawner: Spawner, launch: Confined, options: RunOptions): Promise<Finished> {
  const { maxOutputBytes, signal } = options;
  const started = performance.now();
  const captures = { stdout: createCapture(maxOutputBytes), stderr: createCapture(maxOutputBytes) };
  const both = createCapture(maxOutputBytes);
  const deltas = createDeltas(options.onOutput);
  const child = await spawner.start(launch, {
    liveBytes: maxOutputBytes,
    tailBytes: maxOutputBytes,
    graceMs: heldOpenGraceMs,
    onOutput(stream, bytes) {
      captures[stream].push(bytes);
      both.push(bytes);
      deltas.push(stream, bytes);
    },
    onDropped(stream, count) {
      captures[stream].skip(count);
      both.skip(count);
    },
  });
  if (launch.stdin !== undefined) {
    child.write(launch.stdin);
    child.endInput();
  }
  const stop = watch(child, launch.limits?.timeoutMs, signal);
  const end = await child.ended.finally(stop.forget);
  deltas.end();
  const stderr = captures.stderr.read();
  const stdout = captures.stdout.read();
  // One stream alone is the whole: decoding it twice would double the price of a long output.
  const output = stderr.totalBytes === 0 ? stdout : stdout.totalBytes === 0 ? stderr : both.read();
  return { ...end, stdout, stderr, output, ...stop.seen(), durationMs: performance.now() - started };
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
