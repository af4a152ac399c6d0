/**
 * Commands as a handler gets them. What a handler left out of a command is filled in from its call, and
 * the command starts inside what the call was granted, or not at all.
 */
import { totalmem } from "node:os";
import { resolve } from "node:path";
import { CallError } from "../base/error.ts";
import { defined } from "../base/json.ts";
import { anySignal } from "../base/signal.ts";
import { joinDenials, limitDenial } from "./sandbox/denial.ts";
import { shortList } from "./sandbox/programs.ts";
import type { Denial, Grant } from "../spec/access.ts";
import type {
  Exec,
  ExecChunk,
  ExecRequest,
  ExecResult,
  Launch,
  Limits,
  StartedPrograms,
  TerminalRequest,
  TerminalView,
} from "../spec/capability.ts";
import { commandEnvironment, quietEnv, terminalEnv, type EnvironmentPolicy } from "./environment.ts";
import { checkCwd, StartError, type Confined, type Ending, type HeldRun } from "./process/child.ts";
import { defaultKeepBytes } from "./kept.ts";
import { runToEnd, type KeptFile } from "./process/run.ts";
import type { Processes } from "./processes.ts";
import { lineShell, userShell } from "./shell.ts";
import type { ConfineOptions, Sandbox } from "./sandbox/backend.ts";

export interface ExecOptions {
  readonly processes: Processes;
  readonly grant: Grant;
  /** Required if the grant says `confined`. Without it such a command does not run. */
  readonly sandbox?: Sandbox;
  /** The absolute path where commands start unless they say otherwise. */
  readonly cwd: string;
  /** The whole environment, already reduced by policy. */
  readonly env: Readonly<Record<string, string>>;
  /** That policy, to be applied to what the login files add. */
  readonly environment?: EnvironmentPolicy;
  /** What every command of this call may use. A request may ask for less. */
  readonly limits?: Limits;
  readonly signal: AbortSignal;
  /** The conversation that owns the terminals. Its commands take their slots from its share. */
  readonly conversation?: string;
  /**
   * The call was made by another call. Its commands then wait for no slot, because the call that made it
   * keeps one until this one has ended.
   */
  readonly nested?: boolean;
  /** Called for every request that this call's commands make, if the network is a list of hosts. */
  readonly onRequest?: ConfineOptions["onRequest"];
  /** Called with the programs that a command started, if each start was judged. A long list comes in parts. */
  readonly onPrograms?: (programs: StartedPrograms) => void;
  /** Output of every command of this call, as it comes. */
  readonly onOutput?: (chunk: ExecChunk) => void;
  /** Opens a file for an output that does not fit into memory. Left out: what does not fit is only counted. */
  readonly keep?: () => KeptFile;
  /** The most that is kept of one output. */
  readonly keepBytes?: number;
  /** The sandbox stopped something, which the handler may not even notice. */
  readonly onDenied?: (denial: Denial) => void;
  /** A command has ended, and what it wrote is held. */
  readonly onHeld?: (run: HeldRun, end: Pick<ExecResult, "exitCode" | "output">) => void;
  /** Runs lines, and its login files make the environment. Left out: bash, and the user's own shell for the latter. */
  readonly shell?: string;
}

/** How a command ended that never ran. */
const noEnding = { exitCode: null, signal: null } as const;

/** Output kept per command unless the request says otherwise. */
const defaultMaxOutputBytes = 1024 * 1024;

export function createExec(options: ExecOptions): Exec {
  const { processes, signal, conversation = "" } = options;
  const terminals = processes.terminals.of(conversation);
  const envOf = ({ shell, login = shell !== undefined }: ExecRequest) => (login ? readLoginEnv(options) : options.env);
  let hasHeld = false;

  /** Waits until there is a slot for a command. Terminals have a limit of their own. */
  async function inSlot(work: () => Promise<ExecResult>): Promise<ExecResult> {
    if (options.nested) return twice(work);
    const leave = await processes.slots.take(conversation, signal).catch(() => {
      throw stoppedEarly();
    });
    return twice(work).finally(leave);
  }

  async function run(request: ExecRequest): Promise<ExecResult> {
    if (signal.aborted) throw stoppedEarly();
    if (hasHeld)
      throw new CallError("failed", "what this call writes is held, and then a call can run only one command", {
        hint: "put the commands into one line",
      });
    const plain = toLaunch(request, await envOf(request), options);
    const launch = await confine(plain, request.isolated ? unreported(options) : options);
    const { aborted, waitingForInput, ...end } = await runToEnd(processes.spawner, launch, {
      maxOutputBytes: request.maxOutputBytes ?? defaultMaxOutputBytes,
      ...keepingOf(request, options),
      onOutput: listener(request, options),
      onLine: request.onLine,
      signal: request.signal === undefined ? signal : anySignal([signal, request.signal]),
    }).catch(async (error: unknown) => {
      await launch.cleanup(noEnding);
      throw error;
    });
    const denied = await launch.cleanup(end);
    if (launch.run !== undefined) {
      hasHeld = true;
      options.onHeld?.(launch.run, end);
    }
    if (end.timedOut && denied === undefined && !request.isolated)
      options.onDenied?.({ what: "time", reason: `it did not end within ${Math.round(end.durationMs)} ms` });
    if (aborted)
      throw new CallError("aborted", "the command was stopped before it ended", { data: { output: end.output.head } });
    return { ...end, sandbox: launch.sandbox, ...(waitingForInput ? { waitingForInput } : {}), ...defined({ denied }) };
  }

  async function open(request: TerminalRequest): Promise<TerminalView> {
    if ((options.grant.writes ?? "direct") !== "direct")
      throw new CallError("failed", "a terminal goes on after the call, so it cannot be held");
    const size = { columns: request.columns ?? 80, rows: request.rows ?? 24 };
    const plain = toLaunch(request, await envOf(request), options, request.tty ? size : undefined);
    const launch = await confine(plain, options);
    const told = { ...request, ...defined({ onOutput: listener(request, options) }) };
    const { spawner } = processes;
    return terminals.open(told, { launch, plain, spawner, keeping: keepingOf(request, options) }, signal);
  }

  return {
    run: (request) => inSlot(() => run(request)),
    terminals: {
      open: (request) => twice(() => open(request)),
      write: (id, input) => terminals.write(id, input, signal),
      list: () => terminals.list(),
      close: (id) => terminals.close(id),
    },
  };
}

function stoppedEarly(): CallError {
  return new CallError("aborted", "the call was stopped before the command started");
}

type Listening = Pick<ExecOptions, "onOutput">;

function listener(request: Listening, { onOutput }: Listening): Listening["onOutput"] {
  if (!onOutput) return request.onOutput;
  return (chunk) => {
    request.onOutput?.(chunk);
    onOutput(chunk);
  };
}

const gib = 1024 ** 3;
/** The memory of this machine. It does not change while we run, and Node reads a file to find it out. */
let memory: number | undefined;

/** The limits unless others are set: enough for builds and browsers, but too little to bring the machine down. */
export function defaultLimits(): Limits {
  memory ??= totalmem();
  const memoryBytes = Math.max(gib, Math.floor(memory * 0.8));
  return { processes: 4096, memoryBytes, fileBytes: 8 * gib, openFiles: 65_536, tempBytes: 4 * gib };
}

/** Removes limits of 0, which mean no limit. */
function held(limits: Limits): Limits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== 0));
}

/** A request with everything filled in that it left out. */
export function toLaunch(
  { shell, argv: words = [], cwd, env: own, stdin, timeoutMs, limits, isolated = false }: ExecRequest,
  env: Launch["env"],
  options: Pick<Launch, "cwd" | "grant" | "limits"> & Pick<ExecOptions, "shell">,
  tty?: Launch["tty"],
): Launch {
  const hint = "give the program and its arguments, or one line";
  if (shell === undefined && (words[0] ?? "") === "")
    throw new CallError("invalid_input", "the command is empty", { hint });
  if (shell !== undefined && words.length > 0)
    throw new CallError("invalid_input", "a command is words or a line, not both", { hint });
  return {
    argv: shell === undefined ? words : [options.shell ?? lineShell(), "-c", shell],
    cwd: resolve(options.cwd, cwd ?? ""),
    env: { ...env, ...(tty ? terminalEnv : quietEnv), ...own },
    limits: held({
      ...defaultLimits(),
      ...options.limits,
      ...limits,
      ...(timeoutMs === undefined ? {} : { timeoutMs: timeoutMs * (options.grant.patience ?? 1) }),
    }),
    grant: isolated ? isolatedGrant(options.grant) : options.grant,
    ...defined({ stdin, tty }),
  };
}

/** Narrower than any grant, while everything that was hidden or denied stays so. */
function isolatedGrant({ mask, denied, patience }: Grant): Grant {
  const walls = { policy: "read-only", confined: true, write: [], protect: [], network: "off" } as const;
  return { ...walls, mask, ...defined({ denied, patience }) };
}

/** An isolated command stays isolated whatever a person says, so nobody is asked about what stopped it. */
function unreported({ onDenied: _onDenied, ...options }: ExecOptions): ExecOptions {
  return options;
}

/** Variables set by login files pass the same policy as our own environment, because a profile may export secrets. */
function readLoginEnv({ processes, env, environment, shell }: ExecOptions): Promise<ExecOptions["env"]> {
  processes.spawner.prepare(); // the launcher starts meanwhile
  return processes.loginEnv.read(shell ?? userShell(env), env, (login) => commandEnvironment(login, environment));
}

/** Gets ready for the first command while nobody waits for it: the login environment, the launcher, a sandbox. */
export async function warmUp(options: ExecOptions): Promise<void> {
  const { spawner } = options.processes;
  const env = await readLoginEnv(options);
  if (spawner.name !== "launcher") return;
  const launch = await confine(toLaunch({ argv: ["true"] }, env, options), options);
  spawner.prepare(launch);
  await launch.cleanup(noEnding);
}

function keepingOf({ keep = true }: Pick<ExecRequest, "keep">, options: Pick<ExecOptions, "keep" | "keepBytes">) {
  return { keep: keep ? options.keep : undefined, keepBytes: options.keepBytes ?? defaultKeepBytes };
}

/**
 * Starts it inside the sandbox, or plainly if the grant says so. Throws a CallError if the grant asks
 * for a sandbox and there is none, and a StartError if the folder does not exist.
 */
async function confine(launch: Launch, options: ExecOptions): Promise<Confined> {
  const { sandbox, onRequest, onPrograms, onDenied, processes } = options;
  if (!sandbox && launch.grant.confined)
    throw new CallError("no_sandbox", "commands must run in a sandbox here, and there is none", {
      hint: "run `callgate doctor`",
    });
  checkCwd(launch.cwd);
  if (!sandbox) return { ...launch, sandbox: "none", cleanup: async () => undefined };
  // The launcher builds sandboxes ahead of time, and opens the terminal inside.
  const apart = processes.spawner.name === "launcher";
  const confined = await sandbox.confine(launch, { apart, ...defined({ onRequest }) });
  let over: Promise<Denial | undefined> | undefined;
  const cleanup = async (ending: Ending) => {
    if (ending.programs) onPrograms?.(shortList(ending.programs));
    const denied = joinDenials([limitDenial(ending, launch.limits), await confined.cleanup(ending)]);
    if (denied) onDenied?.(denied);
    return denied;
  };
  // A command that ended, failed and was stopped at the same time is still cleaned up only once.
  return {
    ...confined,
    cleanup: ({ exitCode, signal, programs, limit }) =>
      (over ??= cleanup({ exitCode, signal, ...defined({ programs, limit }) })),
  };
}

/** A sandbox that could not be built is tried once more, because a path it was to hide may just have disappeared. */
async function twice<T>(attempt: () => Promise<T>): Promise<T> {
  const failed = (error: unknown) => {
    throw toCallError(error);
  };
  try {
    return await attempt();
  } catch (error) {
    const again = error instanceof StartError && error.step === "sandbox" && error.code !== "ENOSYS";
    return again ? attempt().catch(failed) : failed(error);
  }
}

const hints: ReadonlyMap<string, string> = new Map([
  ["exec", "check the program's name and arguments"],
  ["launcher", "call it again; with CALLGATE_LAUNCHER=off commands run without the launcher"],
]);

function toCallError(error: unknown): unknown {
  if (!(error instanceof StartError)) return error;
  if (error.step === "chdir")
    return new CallError("invalid_input", error.message, { hint: "give a folder that exists", cause: error });
  if (error.step === "rule")
    return new CallError("denied", `Not permitted: ${error.message}`, {
      hint: "do it another way, or ask the user",
      cause: error,
    });
  if (error.step === "sandbox" || error.step === "landlock" || error.step === "seccomp") {
    return new CallError("no_sandbox", `the sandbox could not be built: ${error.message}`, {
      hint: "run `callgate doctor`",
      cause: error,
    });
  }
  return new CallError("failed", error.message, {
    ...(hints.has(error.step) ? { hint: hints.get(error.step)! } : {}),
    cause: error,
    data: { step: error.step, code: error.code },
  });
}
