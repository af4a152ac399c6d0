/** The machine as the engine uses it: files, commands, network, built from a call's grant and shared by all calls. */
import { mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { commandEnvironment, type EnvironmentPolicy } from "../runtime/environment.ts";
import { createExec } from "../runtime/exec.ts";
import { createFileMemory, createFiles, type FileChange } from "../runtime/files.ts";
import { createProcesses, type Processes } from "../runtime/processes.ts";
import type { Capabilities } from "../runtime/runtime.ts";
import type { Sandbox } from "../runtime/sandbox/backend.ts";
import { createSandbox } from "../runtime/sandbox/sandbox.ts";
import type { Confinement } from "../spec/stages.ts";

export interface HostOptions {
  /** The folder the tools work in. Left out: the current one. */
  readonly workspace?: string;
  /** Where relative paths and commands start. Left out: the workspace. */
  readonly cwd?: string;
  readonly environment?: EnvironmentPolicy;
  /** `off`, or the launcher's path. Left out: the one that set-up built. */
  readonly launcher?: string;
  /** Where outputs too long for a model are kept. Left out: a private temp folder. */
  readonly spillDir?: string;
  readonly onFileChange?: (change: FileChange) => void;
}

export interface Host {
  readonly workspace: string;
  readonly cwd: string;
  readonly capabilities: Capabilities;
  /** What confines commands here; probes run when it is first asked for. */
  confinement(): Promise<Confinement>;
  sandbox(): Sandbox;
  spill(callId: string, whole: string): Promise<string>;
  openTerminals(): readonly string[];
}

export function createHost(options: HostOptions): Host {
  const workspace = realpathSync(options.workspace ?? process.cwd());
  const cwd = resolve(workspace, options.cwd ?? ".");
  const memory = createFileMemory();
  // Most sessions start no command before the first answer: what commands need is built when one comes.
  let processes: Processes | undefined;
  let sandbox: Sandbox | undefined;
  let env: Readonly<Record<string, string>> | undefined;
  let spillDir = options.spillDir;
  const getSandbox = () => (sandbox ??= createSandbox());
  const getProcesses = () =>
    (processes ??= createProcesses(options.launcher === undefined ? {} : { launcher: options.launcher }));

  return {
    workspace,
    cwd,
    confinement: () => getSandbox().confinement(),
    sandbox: getSandbox,
    async spill(callId, whole) {
      spillDir ??= mkdtempSync(join(tmpdir(), "callgate-output-"));
      const path = join(spillDir, `${callId.replaceAll(/[^\w-]/g, "_")}.txt`);
      writeFileSync(path, whole, { mode: 0o600 });
      return path;
    },
    openTerminals: () =>
      (processes?.terminals.list() ?? [])
        .filter(({ running }) => running)
        .map(({ id, command }) => `${id}: ${command}`),
    capabilities: {
      files: ({ grant }) =>
        createFiles({
          workspace,
          cwd,
          grant,
          memory,
          ...(options.onFileChange === undefined ? {} : { onChange: options.onFileChange }),
        }),
      exec: ({ grant, signal, callId, onOutput, onDenied }) =>
        createExec({
          processes: getProcesses(),
          grant,
          sandbox: getSandbox(),
          cwd,
          env: (env ??= commandEnvironment(process.env, options.environment)),
          signal,
          callId,
          onOutput,
          onDenied,
        }),
      // Loaded when a tool first reaches for the network: node:http is dear to load on newer Node versions.
      fetch:
        ({ grant, signal }) =>
        async (url, init) => {
          const { createFetch } = await import("../runtime/network.ts");
          return createFetch({ network: grant.network, signal })(url, init);
        },
      async close() {
        await processes?.close();
        await sandbox?.close();
      },
    },
  };
}
