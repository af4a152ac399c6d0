/** What commands need: the sandbox, the processes, the environment. Loaded as a whole when the first command comes. */
import { commandEnvironment, type EnvironmentPolicy } from "../runtime/environment.ts";
import { createExec } from "../runtime/exec.ts";
import { createProcesses } from "../runtime/processes.ts";
import type { CallScope } from "../runtime/runtime.ts";
import type { Sandbox } from "../runtime/sandbox/backend.ts";
import { createSandbox } from "../runtime/sandbox/sandbox.ts";
import type { Exec, TerminalInfo } from "../spec/capability.ts";

export interface CommandOptions {
  readonly cwd: string;
  readonly environment?: EnvironmentPolicy;
  readonly launcher?: string;
}

export interface Commands {
  readonly sandbox: Sandbox;
  exec(scope: CallScope): Exec;
  terminals(): readonly TerminalInfo[];
  close(): Promise<void>;
}

export function createCommands({ cwd, environment, launcher }: CommandOptions): Commands {
  const sandbox = createSandbox();
  const processes = createProcesses(launcher === undefined ? {} : { launcher });
  const env = commandEnvironment(process.env, environment);
  return {
    sandbox,
    exec: ({ grant, signal, callId, onOutput, onDenied }) =>
      createExec({ processes, sandbox, cwd, env, grant, signal, callId, onOutput, onDenied }),
    terminals: () => processes.terminals.list(),
    async close() {
      await processes.close();
      await sandbox.close();
    },
  };
}
