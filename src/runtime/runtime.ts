/**
 * The run stage, from Permitted to Ran. Handlers are called here, and only here, with capabilities
 * that reach exactly as far as the call's grant. `runtime/` decides nothing: the gate has settled what
 * may be done.
 */
import { CallError, Fault } from "../base/error.ts";
import { extend } from "../base/extend.ts";
import { longestTimerMs } from "../base/signal.ts";
import type { Denial } from "../spec/access.ts";
import type { Checked, Permitted, Ran } from "../spec/call.ts";
import type { ExecResult } from "../spec/capability.ts";
import type { Runtime } from "../spec/stages.ts";
import type { ToolContext, ToolOutput, ToolProgress } from "../spec/tool.ts";
import { defined } from "../base/json.ts";
import type { HeldRun } from "./process/child.ts";
import { createContext, type ContextOptions } from "./context.ts";
import type { ProxiedRequest } from "./proxy.ts";
import { createStop, type Stop } from "./stop.ts";

interface Held extends Pick<ExecResult, "exitCode" | "output"> {
  readonly run: HeldRun;
}

export interface RuntimeOptions extends ContextOptions {
  /** Whose calls these are. It is stored with what they did, so that an undo can be reported there. */
  readonly conversation?: string;
  /** The time limit for tools that state none. */
  readonly timeoutMs?: number;
  readonly now?: () => number;
}

/** How many requests of a held command are listed. */
const maxRequestsShown = 100;

export function createRuntime(options: RuntimeOptions): Runtime {
  const now = options.now ?? Date.now;
  /** Runs that are held and not yet decided, by call. */
  const runs = new Map<string, HeldRun>();

  async function readHeld(
    done: Ran,
    { run, exitCode, output }: Held,
    requests: readonly ProxiedRequest[],
  ): Promise<Ran> {
    runs.set(done.id, run);
    const [{ listEffects }, { effectLines, effectsDiff, besideLines, whyDirect }] = await Promise.all([
      import("./effects/runs.ts"),
      import("./effects/show.ts"),
    ]);
    const list = await listEffects(run);
    const diff = effectsDiff(list, run);
    const direct = whyDirect({ exitCode, output });
    const lines = [...besideLines({ denied: done.denied, exitCode, requests, direct }), ...effectLines(list, run)];
    return extend(done, { effects: { run: run.id, list, lines, ...defined({ diff, direct }) } });
  }

  return {
    async run(permitted, signal, makeCall, idempotencyKey): Promise<Ran> {
      const startedAt = now();
      const stop = createStop(signal);
      const denials: Denial[] = [];
      let held: Held | undefined;
      const requests: ProxiedRequest[] = [];
      const ctx = createContext(permitted, options, stop, {
        makeCall,
        idempotencyKey,
        onDenied: (denial) => denials.push(denial),
        onHeld: (run, end) => (held = { run, ...end }),
        onRequest(request) {
          if (requests.length < maxRequestsShown) requests.push(request);
          options.emit({ type: "exec.request", id: permitted.id, ...request });
        },
      });
      const withEffects = async (done: Ran): Promise<Ran> =>
        held === undefined ? done : readHeld(done, held, requests);
      const timeoutMs = permitted.tool.timeoutMs ?? options.timeoutMs ?? 600_000;
      try {
        const output = await runHandler(permitted, ctx, timeoutMs, stop);
        return await withEffects(ran(permitted, startedAt, output, denials[0]));
      } catch (error) {
        if (!CallError.is(error)) throw error;
        const denied = error.code === "sandbox_denied" ? ((error.data as Denial | undefined) ?? denials[0]) : undefined;
        return await withEffects({ ...ran(permitted, startedAt, undefined, denied), error });
      } finally {
        stop.release();
      }
    },
    async settle(done, choice) {
      const run = runs.get(done.id);
      if (run === undefined) throw new TypeError(`nothing is held for call ${done.id}`);
      runs.delete(done.id);
      const { settleRun } = await import("./effects/runs.ts");
      const [command] = done.access.commands ?? [];
      const argv = command?.argv ?? [command?.shell ?? done.tool.name];
      const about = { at: done.startedAt, command: argv, cwd: command?.cwd ?? options.cwd };
      return settleRun(run, choice, { ...about, ...defined({ session: options.conversation }) });
    },
    async rehearse(checked, grant, isHidden, signal) {
      if (checked.tool.rehearsable !== true) return undefined;
      // Loaded only when somebody is asked, because most calls are not asked about.
      const { rehearse } = await import("./rehearse.ts");
      const { workspace, cwd } = options;
      return rehearse(checked, { workspace, cwd, grant, isHidden, signal, runHandler });
    },
  };
}

function ran(permitted: Permitted, startedAt: number, output: ToolOutput, denied: Denial | undefined): Ran {
  const base = extend(permitted, { startedAt, output });
  return denied === undefined ? base : { ...base, denied };
}

/** Runs a handler until it ends, its time is up or it is stopped, whichever comes first. */
async function runHandler(call: Checked, ctx: ToolContext, timeoutMs: number, stop: Stop): Promise<ToolOutput> {
  try {
    // A registry keeps a tool's input type as `never`; check() has proved that this input fits it.
    const started = call.tool.run(call.input as never, ctx);
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
    const timeIsUp = () => {
      reject(timedOut(timeoutMs));
      stop.abort();
    };
    timer = setTimeout(timeIsUp, Math.min(timeoutMs, longestTimerMs));
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
