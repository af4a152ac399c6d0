/**
 * Everything a command needs: the sandbox, the processes and the environment. It is loaded as one
 * piece when the first command comes.
 */
import { commandEnvironment, type EnvironmentPolicy } from "../runtime/environment.ts";
import { createExec, warmUp, type ExecOptions } from "../runtime/exec.ts";
import type { KeptFile } from "../runtime/process/run.ts";
import { tryHeld } from "../runtime/effects/probe.ts";
import { createProcesses, type Processes } from "../runtime/processes.ts";
import type { CallScope } from "../runtime/context.ts";
import type { Sandbox } from "../runtime/sandbox/backend.ts";
import { createSandbox } from "../runtime/sandbox/sandbox.ts";
import type { Grant } from "../spec/access.ts";
import type { OwnTerminals } from "../runtime/terminal.ts";
import { defined } from "../base/json.ts";
import type { Logger } from "../spec/tool.ts";
import type { Exec, Limits } from "../spec/capability.ts";

export interface CommandOptions {
  readonly cwd: string;
  /** The folder of kept outputs, which commands may read. */
  readonly kept?: string;
  readonly environment?: EnvironmentPolicy;
  readonly launcher?: string;
  readonly commandLimits?: Limits;
  readonly maxCommands?: number;
  readonly loginFiles?: boolean;
  readonly log?: Logger;
}

export interface CommandScope extends CallScope {
  /** Whose terminals these are. */
  readonly conversation: string;
  /** Opens a file for an output too long for memory. */
  readonly keep: () => KeptFile;
  readonly keepBytes: number;
}

export interface Commands {
  readonly sandbox: Sandbox;
  exec(scope: CommandScope): Exec;
  /** Gets ready for the first command while nobody waits for it. */
  warmUp(grant: Grant): Promise<void>;
  terminals(conversation: string): OwnTerminals;
  close(): Promise<void>;
}

export function createCommands(options: CommandOptions): Commands {
  const { cwd, environment, launcher, loginFiles, log, commandLimits, maxCommands, kept } = options;
  const processes = createProcesses({
    ...defined({ launcher, loginFiles, maxCommands }),
    onWarning: (text) => log?.warn(text),
  });
  const sandbox = triedBeforeHeld(createSandbox(defined({ kept })), processes);
  const env = commandEnvironment(process.env, environment);
  const shared = { processes, sandbox, cwd, env, ...defined({ environment, limits: commandLimits }) };
  return {
    sandbox,
    exec: (scope) => createExec({ ...shared, ...execScope(scope) }),
    warmUp: (grant) => warmUp({ ...shared, grant, signal: new AbortController().signal }),
    terminals: (conversation) => processes.terminals.of(conversation),
    async close() {
      await processes.close();
      await sandbox.close();
    },
  };
}

/** Whether a command can be held is tried once for each folder, because only the kernel can say for certain. */
function triedBeforeHeld(sandbox: Sandbox, { spawner }: Processes): Sandbox {
  const tried = new Map<string, Promise<string | undefined>>();
  return {
    ...sandbox,
    async whyNotHeld(grant, cwd) {
      const why = await sandbox.whyNotHeld(grant, cwd);
      if (why !== undefined) return why;
      const folder = grant.write[0] ?? cwd;
      const trial = tried.get(folder) ?? tryHeld({ sandbox, spawner, grant, cwd });
      tried.set(folder, trial);
      return trial;
    },
  };
}

/** Reads the getters of the scope once: each of them makes its value when it is first asked for. */
function execScope(scope: CommandScope): Omit<ExecOptions, "processes" | "cwd" | "env"> {
  const { conversation, nested, grant, signal, keep, keepBytes } = scope;
  const { onOutput, onRequest, onPrograms, onDenied, onHeld } = scope;
  return { conversation, nested, grant, signal, keep, keepBytes, onOutput, onRequest, onPrograms, onDenied, onHeld };
}
