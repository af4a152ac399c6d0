/** Commands as a handler gets them: each starts inside what the call was granted, or not at all. */
import { accessSync, constants } from "node:fs";
import { CallError } from "../base/error.ts";
import type { Denial, Grant } from "../spec/access.ts";
import type { Exec, ExecChunk, ExecRequest, ExecResult, TerminalRequest, TerminalView } from "../spec/capability.ts";
import { confine } from "./confine.ts";
import type { Ready, Setting } from "./confine.ts";
import { commandEnvironment, type EnvironmentPolicy } from "./environment.ts";
import { StartError } from "./process/child.ts";
import type { ChildEnd } from "./process/child.ts";
import { runToEnd } from "./process/run.ts";
import type { Processes } from "./processes.ts";
import type { ConfineRequest, Sandbox } from "./sandbox/backend.ts";
import type { TerminalCommand } from "./terminal.ts";

export interface ExecOptions {
  readonly processes: Processes;
  readonly grant: Grant;
  /** Needed where the grant says `confined`; without it such a command does not run. */
  readonly sandbox?: Sandbox;
  /** Absolute: where commands start unless they say otherwise. */
  readonly cwd: string;
  /** The whole environment, already cut down by policy. */
  readonly env: Readonly<Record<string, string>>;
  /** That policy, for what the login files add. */
  readonly environment?: EnvironmentPolicy;
  readonly signal: AbortSignal;
  /** Every request of this call's commands, where the network is a list of hosts. */
  readonly onRequest?: ConfineRequest["onRequest"];
  /** Output of every command of this call, as it comes. */
  readonly onOutput?: (stream: ExecChunk["stream"], text: string) => void;
  /** The sandbox stopped something, which the handler may not even notice. */
  readonly onDenied?: (denial: Denial) => void;
  /** Runs lines, and its login files make the environment. Left out: bash, and the user's own shell. */
  readonly shell?: string;
}

/** For what never ran. */
const noEnding = { exitCode: null, signal: null } as const;

/** Output kept per command unless the request says otherwise. */
const defaultMaxOutputBytes = 1024 * 1024;

export function createExec(options: ExecOptions): Exec {
  const { processes, signal } = options;
  const shellPath = options.shell ?? lineShell();
  const loginEnv = () => readLoginEnv(options);

  function listener(request: {
    readonly onOutput?: (chunk: ExecChunk) => void;
  }): ((chunk: ExecChunk) => void) | undefined {
    if (!options.onOutput) return request.onOutput;
    return (chunk) => {
      request.onOutput?.(chunk);
      options.onOutput?.(chunk.stream, chunk.text);
    };
  }

  function settingOf(env: ExecOptions["env"], tty: boolean): Setting {
    const { grant, sandbox, cwd, onRequest } = options;
    return { spawner: processes.spawner, grant, sandbox, cwd, env, tty, onRequest };
  }

  async function settle(finish: Ready["finish"], end: ChildEnd): Promise<Denial | undefined> {
    const denied = await finish(end);
    if (denied) options.onDenied?.(denied);
    return denied;
  }

  async function run(request: ExecRequest, env = options.env): Promise<ExecResult> {
    if (signal.aborted) throw new CallError("aborted", "the call was stopped before the command started");
    const { launch, sandbox, finish } = await confine(request, settingOf(env, false));
    const { aborted, waitingForInput, ...end } = await runToEnd(processes.spawner, launch, {
      timeoutMs: request.timeoutMs,
      maxOutputBytes: request.maxOutputBytes ?? defaultMaxOutputBytes,
      stdin: request.stdin,
      onOutput: listener(request),
      signal,
    }).catch(async (error: unknown) => {
      await finish(noEnding);
      throw error;
    });
    const denied = await settle(finish, end);
    if (aborted)
      throw new CallError("aborted", "the command was stopped before it ended", { data: { output: end.output.head } });
    return { ...end, sandbox, ...(waitingForInput ? { waitingForInput } : {}), ...(denied ? { denied } : {}) };
  }

  async function open(request: TerminalRequest): Promise<TerminalView> {
    const env = request.login ? await loginEnv() : options.env;
    const { launch, sandbox, finish } = await confine(request, settingOf(env, request.tty));
    const onOutput = listener(request);
    const start: TerminalCommand["start"] = (output) => processes.spawner.start({ ...launch, ...output });
    const told = { ...request, ...(onOutput ? { onOutput } : {}) };
    return processes.terminals.open(told, { start, sandbox, finish: (end) => settle(finish, end) }, signal);
  }

  return {
    shellPath,
    run: (request) => twice(() => run(request)),
    async shell(line, { login = true, ...request } = {}) {
      const base = login ? await loginEnv() : options.env;
      return twice(() => run({ ...request, argv: [shellPath, "-c", line] }, base));
    },
    terminals: {
      open: (request) => twice(() => open(request)),
      write: (id, input) => processes.terminals.write(id, input, signal),
      list: () => processes.terminals.list(),
      close: (id) => processes.terminals.close(id),
    },
  };
}

/** What login files set is held to the same policy as what we were started with: a profile may export secrets. */
function readLoginEnv({ processes, env, environment, shell }: ExecOptions): Promise<ExecOptions["env"]> {
  return processes.loginEnv.read(shell ?? userShell(env), env, (login) => commandEnvironment(login, environment));
}

/** Gets ready for the first command while nobody waits for it: the login environment, the launcher, a sandbox. */
export async function warmUp(options: ExecOptions): Promise<void> {
  const { processes, grant, sandbox, cwd } = options;
  const { spawner } = processes;
  const env = await readLoginEnv(options);
  if (!grant.confined || spawner.name !== "launcher") return;
  const { launch, finish } = await confine(
    { argv: ["true"] },
    { spawner, grant, sandbox, cwd, env, tty: false, onRequest: undefined },
  );
  if (launch.shelter) spawner.prepare(launch.shelter);
  await finish(noEnding);
}

/** A sandbox that could not be built is tried once more: a path that it was to hide may just have gone. */
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

/** What runs a line: bash, because the gate has read the line as bash reads it; else sh, which knows less. */
function lineShell(): string {
  return ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"].find(isThere) ?? "/bin/sh";
}

/** Whose login files make the environment: the user's own shell, if it takes `-lc`. */
function userShell(env: Readonly<Record<string, string>>): string {
  const wanted = env["SHELL"];
  return wanted && /\/(?:ba|z|da|k)?sh$/.test(wanted) && isThere(wanted) ? wanted : lineShell();
}

function isThere(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // a SHELL that is not installed here
  }
}
