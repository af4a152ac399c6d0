import { CallError, Fault } from "../base/error.ts";
import type { ToolContext, ToolOutput, ToolProgress } from "../spec/tool.ts";
import type { Stop } from "./stop.ts";

/** A handler bound to its input. */
export type Handler = (ctx: ToolContext) => ToolOutput | Promise<ToolOutput> | AsyncGenerator<ToolProgress, ToolOutput>;

/** Runs a handler until it ends, its time is up or it is stopped, whichever comes first. */
export async function runHandler(
  handler: Handler,
  ctx: ToolContext,
  timeoutMs: number,
  stop: Stop,
): Promise<ToolOutput> {
  try {
    const started = handler(ctx);
    if (isGenerator(started)) return await endInTime(drive(started, ctx), timeoutMs, stop);
    // A result that is there already needs no timer.
    return isPromise(started) ? await endInTime(started, timeoutMs, stop) : started;
  } catch (error) {
    // A handler that was stopped may throw the signal's own reason, or anything else.
    if (stop.signal.aborted && !CallError.is(error) && !Fault.is(error)) throw interrupted(error);
    throw asCallError(error);
  }
}

function interrupted(cause?: unknown): CallError {
  return new CallError("aborted", "The call was interrupted before it ended.", { cause });
}

/** A handler that ignores its signal does not hold up the call: the race ends without it. */
async function endInTime(running: Promise<ToolOutput>, timeoutMs: number, stop: Stop): Promise<ToolOutput> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(timedOut(timeoutMs));
      stop.abort();
    }, timeoutMs);
    stop.whenStopped(() => reject(interrupted()));
  });
  try {
    return await Promise.race([running, over]);
  } finally {
    clearTimeout(timer);
  }
}

function timedOut(ms: number): CallError {
  return new CallError("timeout", `The tool did not end within ${ms} ms.`, {
    hint: "Ask for less at once, or give it more time.",
  });
}

async function drive(steps: AsyncGenerator<ToolProgress, ToolOutput>, ctx: ToolContext): Promise<ToolOutput> {
  for (;;) {
    const step = await steps.next();
    if (step.done) return step.value;
    ctx.progress(step.value);
  }
}

function isPromise(value: unknown): value is Promise<ToolOutput> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function isGenerator(value: unknown): value is AsyncGenerator<ToolProgress, ToolOutput> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value && "next" in value;
}

/** Whatever a handler throws is told to the model, except a fault, which ends the turn. */
function asCallError(error: unknown): CallError | Fault {
  if (CallError.is(error) || Fault.is(error)) return error;
  const words = error instanceof Error ? error.message : String(error);
  return new CallError("failed", words === "" ? "The tool failed without saying why." : words, { cause: error });
}
