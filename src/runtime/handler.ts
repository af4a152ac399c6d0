import { CallError, Fault } from "../base/error.ts";
import type { ToolContext, ToolOutput, ToolProgress } from "../spec/tool.ts";
import type { Stop } from "./stop.ts";

/** A handler bound to its input. */
export type Handler = (ctx: ToolContext) => ToolOutput | Promise<ToolOutput> | AsyncGenerator<ToolProgress, ToolOutput>;

/** Runs a handler to its end, its time limit or the stop, whichever comes first. */
export async function runHandler(
  handler: Handler,
  ctx: ToolContext,
  timeoutMs: number,
  stop: Stop,
): Promise<ToolOutput> {
  let timer: NodeJS.Timeout | undefined;
  // A handler that ignores its signal does not hold the call: the race ends without it.
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(timedOut(timeoutMs));
      stop.abort();
    }, timeoutMs);
    stop.whenStopped(() => reject(new CallError("aborted", "The call was interrupted before it ended.")));
  });
  try {
    return await Promise.race([drive(handler, ctx), over]);
  } catch (error) {
    throw asCallError(error);
  } finally {
    clearTimeout(timer);
  }
}

function timedOut(ms: number): CallError {
  return new CallError("timeout", `The tool did not end within ${ms} ms.`, {
    hint: "Ask for less at once, or give it more time.",
  });
}

async function drive(handler: Handler, ctx: ToolContext): Promise<ToolOutput> {
  const started = handler(ctx);
  if (!isGenerator(started)) return started;
  for (;;) {
    const step = await started.next();
    if (step.done) return step.value;
    ctx.progress(step.value);
  }
}

function isGenerator(value: unknown): value is AsyncGenerator<ToolProgress, ToolOutput> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value && "next" in value;
}

/** Whatever a handler throws is told to the model, unless it says that nobody can go on. */
function asCallError(error: unknown): CallError | Fault {
  if (CallError.is(error) || Fault.is(error)) return error;
  const words = error instanceof Error ? error.message : String(error);
  return new CallError("failed", words === "" ? "The tool failed without saying why." : words, { cause: error });
}
