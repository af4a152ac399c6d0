/**
 * The run stage, from Permitted to Ran. Handlers are called here, and only here, with capabilities
 * that reach exactly as far as the call's grant. `runtime/` decides nothing: the gate has settled what
 * may be done.
 */
import { CallError } from "../base/error.ts";
import { extend } from "../base/extend.ts";
import type { Denial, Grant } from "../spec/access.ts";
import type { Permitted, Ran } from "../spec/call.ts";
import type { Exec, ExecChunk, ExecResult, Fetch, Files, StartedPrograms } from "../spec/capability.ts";
import type { Answerer, Ask } from "../spec/question.ts";
import type { ChangedText, Emit, Nest, Runtime } from "../spec/stages.ts";
import type { Logger, ToolContext, ToolOutput, ToolProgress } from "../spec/tool.ts";
import { defined } from "../base/json.ts";
import type { HeldRun } from "./process/child.ts";
import { createAsk } from "./ask.ts";
import type { FileChange } from "./files.ts";
import { runHandler } from "./handler.ts";
import type { ProxiedRequest } from "./proxy.ts";
import { createStop, type Stop } from "./stop.ts";

/** Builds the capabilities of one call from its grant. */
export interface Capabilities {
  files(scope: CallScope): Files;
  exec(scope: CallScope): Exec;
  fetch(scope: CallScope): Fetch;
}

export interface CallScope {
  /** The call's own id. */
  readonly id: string;
  readonly idempotencyKey: string;
  /** Another call's handler made this call. */
  readonly nested: boolean;
  readonly grant: Grant;
  readonly signal: AbortSignal;
  readonly onOutput: (chunk: ExecChunk) => void;
  readonly onRequest: (request: ProxiedRequest) => void;
  readonly onPrograms: (programs: StartedPrograms) => void;
  readonly onFileChange: (change: FileChange) => void;
  /** Called when a command met the sandbox's limits, which the handler itself may not notice. */
  readonly onDenied: (denial: Denial) => void;
  /** A command of this call has ended, and its writes are held. */
  readonly onHeld: (run: HeldRun, end: Pick<ExecResult, "exitCode" | "output">) => void;
}

interface Held extends Pick<ExecResult, "exitCode" | "output"> {
  readonly run: HeldRun;
}

export interface RuntimeOptions {
  readonly workspace: string;
  readonly cwd: string;
  /** Whose calls these are. It is stored with what they did, so that an undo can be reported there. */
  readonly conversation?: string;
  readonly capabilities: Capabilities;
  readonly emit: Emit;
  readonly log: Logger;
  /** Answers what tools ask on their own. */
  readonly answerer?: Answerer;
  readonly service?: Readonly<Record<string, unknown>>;
  readonly model?: Readonly<Record<string, unknown>>;
  readonly session: Map<string, unknown>;
  /** The time limit for tools that state none. */
  readonly timeoutMs?: number;
  readonly now?: () => number;
}

/** How many progress events of one call are passed on, however often its handler reports. */
const maxProgressEvents = 1_000;
const maxLogEvents = 1_000;
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
    async run(permitted, signal, nest, idempotencyKey): Promise<Ran> {
      const startedAt = now();
      const stop = createStop(signal);
      const denials: Denial[] = [];
      let held: Held | undefined;
      const requests: ProxiedRequest[] = [];
      const ctx = createContext(permitted, options, stop, {
        nest,
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
        // A registry keeps a tool's input type as `never`; check() has proved that this input fits it.
        const output = await runHandler((at) => permitted.tool.run(permitted.input as never, at), ctx, timeoutMs, stop);
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
      return rehearse(checked, { workspace, cwd, grant, isHidden, signal });
    },
  };
}

function ran(permitted: Permitted, startedAt: number, output: ToolOutput, denied: Denial | undefined): Ran {
  const base = extend(permitted, { startedAt, output });
  return denied === undefined ? base : { ...base, denied };
}

interface OneRun extends Pick<CallScope, "onDenied" | "onHeld" | "onRequest" | "idempotencyKey"> {
  readonly nest: Nest;
}

function createContext(
  permitted: Permitted,
  options: RuntimeOptions,
  stop: Stop,
  { nest, idempotencyKey, ...told }: OneRun,
): ToolContext {
  const { id, tool, grant } = permitted;
  const { capabilities, emit } = options;
  let reported = 0;
  const createScope = (): CallScope => ({
    ...told,
    id,
    idempotencyKey,
    nested: permitted.parent !== undefined,
    grant,
    onOutput: (chunk) => emit({ type: "exec.output", id, ...chunk }),
    onPrograms: (programs) => emit({ type: "exec.programs", id, ...programs }),
    onFileChange: (change) => emit({ type: "file.changed", id, ...toChangedText(change) }),
    get signal() {
      return stop.signal;
    },
  });
  // Most calls use one capability or none, so each is built when it is first used.
  let scope: CallScope | undefined;
  let files: Files | undefined;
  let exec: Exec | undefined;
  let fetch: Fetch | undefined;
  let ask: Ask | undefined;
  let log: Logger | undefined;
  return {
    callId: id,
    idempotencyKey,
    tool: tool.name,
    workspace: options.workspace,
    cwd: options.cwd,
    get signal() {
      return stop.signal;
    },
    get files() {
      return (files ??= capabilities.files((scope ??= createScope())));
    },
    get exec() {
      return (exec ??= capabilities.exec((scope ??= createScope())));
    },
    get fetch() {
      return (fetch ??= capabilities.fetch((scope ??= createScope())));
    },
    get ask() {
      return (ask ??= createAsk({ id, tool: tool.name }, options.answerer, stop.signal));
    },
    get log() {
      return (log ??= createCallLog(options.log, id, emit));
    },
    progress(progress: ToolProgress) {
      if (++reported <= maxProgressEvents) emit({ type: "call.progress", id, progress });
    },
    call: (name, input = {}) => nest(name, input, stop.signal),
    service: options.service ?? {},
    model: options.model ?? {},
    session: options.session,
  };
}

/** Larger changes are reported without their content. The content is for showing only; undo does not use it. */
const maxChangedBytes = 256 * 1024;

function toChangedText({ path, before, after }: FileChange): ChangedText {
  const change = before === undefined ? "created" : after === undefined ? "removed" : "changed";
  const was = toText(before);
  const is = toText(after);
  return { path, change, ...(was === undefined ? {} : { before: was }), ...(is === undefined ? {} : { after: is }) };
}

function toText(bytes: Uint8Array | undefined): string | undefined {
  if (bytes === undefined || bytes.length > maxChangedBytes || bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined; // another encoding, or no text at all
  }
}

/** The operator's log, which whoever follows the call receives as well. */
function createCallLog(log: Logger, id: string, emit: Emit): Logger {
  let lines = 0;
  const at =
    (level: keyof Logger): Logger["info"] =>
    (message, fields) => {
      log[level](message, fields);
      if (++lines <= maxLogEvents)
        emit({ type: "call.log", id, level, message, ...(fields === undefined ? {} : { fields }) });
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
