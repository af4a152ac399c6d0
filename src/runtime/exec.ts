/**
 * Commands as a handler gets them: each starts inside what the call was granted, or not at all. This
 * is the one place where a grant meets the sandbox and the process layer.
 */
import { accessSync, constants } from "node:fs";
import { resolve } from "node:path";
import { CallError } from "../base/error.ts";
import type { Denial, Grant } from "../spec/access.ts";
import type { Exec, ExecChunk, ExecRequest, ExecResult, TerminalRequest } from "../spec/capability.ts";
import type { Launch } from "./process/child.ts";
import { checkCwd, StartError } from "./process/child.ts";
import type { Processes } from "./processes.ts";
import { quietEnv, terminalEnv } from "./process/quiet-env.ts";
import { runToEnd } from "./process/run.ts";
import type { ConfinedCommand, Ending, Sandbox } from "./sandbox/backend.ts";

export interface ExecOptions {
  readonly processes: Processes;
  readonly grant: Grant;
  /** Needed where the grant says `confined`; without it such a command does not run. */
  readonly sandbox?: Sandbox;
  /** Absolute: where commands start unless they say otherwise. */
  readonly cwd: string;
  /** The whole environment, already cut down by policy. */
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly callId?: string;
  /** Output of every command of this call, as it comes. */
  readonly onOutput?: (stream: ExecChunk["stream"], text: string) => void;
  /** The sandbox stopped something, which the handler may not even notice. */
  readonly onDenied?: (denial: Denial) => void;
  /** Runs lines, and its login files make the environment. Left out: bash, and the user's own shell. */
  readonly shell?: string;
}

/** Output kept per command unless the request says otherwise. */
const defaultMaxOutputBytes = 1024 * 1024;

/** What the launcher's keeper is called inside a sandbox: its own program, open at descriptor 9. */
const keeperArgv = ["/proc/self/fd/9", "keeper"] as const;

export function createExec(options: ExecOptions): Exec {
  const { processes, signal } = options;
  const shellPath = options.shell ?? lineShell();
  const loginEnv = () => processes.loginEnv.read(options.shell ?? userShell(options.env), options.env);

  function listener(request: {
    readonly onOutput?: (chunk: ExecChunk) => void;
  }): ((chunk: ExecChunk) => void) | undefined {
    if (!options.onOutput) return request.onOutput;
    return (chunk) => {
      request.onOutput?.(chunk);
      options.onOutput?.(chunk.stream, chunk.text);
    };
  }

  async function run(request: ExecRequest, base = options.env): Promise<ExecResult> {
    if (signal.aborted) throw new CallError("aborted", "the call was stopped before the command started");
    const ready = await confine(options, request, { base, tty: false });
    try {
      const { aborted, waitingForInput, ...end } = await runToEnd(processes.spawner, ready.launch, {
        timeoutMs: request.timeoutMs,
        maxOutputBytes: request.maxOutputBytes ?? defaultMaxOutputBytes,
        stdin: request.stdin,
        onOutput: listener(request),
        signal,
      });
      const denied = await ready.finish(end);
      if (denied) options.onDenied?.(denied);
      if (aborted)
        throw new CallError("aborted", "the command was stopped before it ended", {
          data: { output: end.output.head },
        });
      return {
        ...end,
        sandbox: ready.sandbox,
        ...(waitingForInput ? { waitingForInput } : {}),
        ...(denied ? { denied } : {}),
      };
    } catch (error) {
      await ready.finish({ exitCode: null, signal: null });
      throw toCallError(error);
    }
  }

  async function open(request: TerminalRequest) {
    const base = request.login ? await loginEnv() : options.env;
    const ready = await confine(options, request, { base, tty: request.tty });
    const { launch, sandbox, finish } = ready;
    const onOutput = listener(request);
    return processes.terminals
      .open(
        { ...request, ...(onOutput ? { onOutput } : {}) },
        { start: (output) => processes.spawner.start({ ...launch, ...output }), sandbox, finish },
        signal,
      )
      .catch((error: unknown) => {
        throw toCallError(error);
      });
  }

  return {
    shellPath,
    run: (request) => run(request),
    async shell(line, { login = true, ...request } = {}) {
      const base = login ? await loginEnv() : options.env;
      return run({ ...request, argv: [shellPath, "-c", line] }, base);
    },
    terminals: {
      open,
      write: (id, input) => processes.terminals.write(id, input, signal),
      list: () => processes.terminals.list(),
      close: (id) => processes.terminals.close(id),
    },
  };
}

/** Gets ready for the first command while nobody waits for it: the login environment, the launcher, a sandbox. */
export async function warmUp(options: ExecOptions): Promise<void> {
  const { processes } = options;
  const base = await processes.loginEnv.read(options.shell ?? userShell(options.env), options.env);
  if (!options.grant.confined || processes.spawner.name !== "launcher") return;
  const { launch, finish } = await confine(options, { argv: ["true"] }, { base, tty: false });
  if (launch.shelter) processes.spawner.prepare(launch.shelter);
  await finish({ exitCode: 0, signal: null });
}

interface Ready {
  readonly launch: Pick<Launch, "argv" | "cwd" | "env" | "fds" | "uid" | "gid" | "shelter" | "landlock">;
  readonly sandbox: string;
  /** Once the command and everything it started is gone; a second call does nothing. */
  finish(ending: Ending): Promise<Denial | undefined>;
}

/** `base` is the environment below the quiet settings; what the request itself sets lies above them. */
interface Setting {
  readonly base: Readonly<Record<string, string>>;
  readonly tty: boolean;
}

async function confine(
  options: ExecOptions,
  request: Pick<ExecRequest, "argv" | "cwd" | "env">,
  { base, tty }: Setting,
): Promise<Ready> {
  const { grant, sandbox, processes, callId } = options;
  const argv = request.argv;
  if (argv.length === 0 || argv[0] === "")
    throw new CallError("invalid_input", "the command is empty", { hint: "give the program and its arguments" });
  const cwd = resolve(options.cwd, request.cwd ?? "");
  const env = { ...base, ...(tty ? terminalEnv : quietEnv), ...request.env };
  if (!sandbox && !grant.confined)
    return { launch: { argv, cwd, env }, sandbox: "none", finish: async () => undefined };
  if (!sandbox)
    throw new CallError("no_sandbox", "commands must run in a sandbox here, and there is none", {
      hint: "run `callgate doctor`",
    });
  refuseMissing(cwd);
  const place = { cwd, env, grant, ...(callId === undefined ? {} : { callId }) };
  const keeps =
    grant.confined && processes.spawner.name === "launcher" && (await sandbox.confinement()).name.startsWith("bwrap");
  const confined = await sandbox.confine({ ...place, argv: keeps ? keeperArgv : argv, tty: tty && !keeps });
  return {
    launch: toLaunch(confined, keeps, { argv, cwd, env }),
    sandbox: confined.sandbox,
    finish: once(confined, argv),
  };
}

function refuseMissing(cwd: string): void {
  try {
    checkCwd(cwd);
  } catch (error) {
    throw toCallError(error);
  }
}

function toLaunch(
  confined: ConfinedCommand,
  keeps: boolean,
  { argv, cwd, env }: Pick<Launch, "argv" | "cwd" | "env">,
): Ready["launch"] {
  const { fds, uid, gid } = confined;
  const owner = {
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    ...(fds === undefined ? {} : { fds }),
  };
  if (keeps) {
    const shelter = { argv: confined.argv, cwd: confined.cwd, reusable: confined.warm, ...owner };
    return { argv, cwd, env: { ...env, ...confined.env }, shelter };
  }
  const landlock = confined.landlock ? { landlock: confined.landlock } : {};
  return { argv: confined.argv, cwd: confined.cwd, env: { ...confined.env }, ...owner, ...landlock };
}

function once(confined: ConfinedCommand, argv: readonly string[]): Ready["finish"] {
  let done = false;
  return async (ending) => {
    if (done) return undefined;
    done = true;
    return confined.cleanup({ exitCode: ending.exitCode, signal: ending.signal, argv });
  };
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
