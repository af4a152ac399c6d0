/** The machine as the engine uses it: files, commands, network, built from a call's grant and shared by all calls. */
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { EnvironmentPolicy } from "../runtime/environment.ts";
import { createFileMemory, createFiles, type FileChange } from "../runtime/files.ts";
import type { CallScope, Capabilities } from "../runtime/runtime.ts";
import type { Sandbox } from "../runtime/sandbox/backend.ts";
import { lineShell } from "../runtime/shell.ts";
import type { Grant } from "../spec/access.ts";
import type { Exec } from "../spec/capability.ts";
import type { Confinement } from "../spec/stages.ts";
import type { CommandOptions, Commands } from "./commands.ts";

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
  /** Gets ready for a first command under this grant, in the background. */
  warmUp(grant: Grant): Promise<void>;
  spill(callId: string, whole: string): Promise<string>;
  openTerminals(): readonly string[];
}

export function createHost(options: HostOptions): Host {
  const workspace = realpathSync(options.workspace ?? process.cwd());
  const cwd = resolve(workspace, options.cwd ?? ".");
  const memory = createFileMemory();
  const { environment, launcher, onFileChange } = options;
  const commands = createLazyCommands({
    cwd,
    ...(environment === undefined ? {} : { environment }),
    ...(launcher === undefined ? {} : { launcher }),
  });
  let spillDir = options.spillDir;

  return {
    workspace,
    cwd,
    confinement: () => commands.sandbox.confinement(),
    sandbox: () => commands.sandbox,
    warmUp: commands.warmUp,
    async spill(callId, whole) {
      spillDir ??= mkdtempSync(join(tmpdir(), "callgate-output-"));
      mkdirSync(spillDir, { recursive: true, mode: 0o700 });
      const path = join(spillDir, `${callId.replaceAll(/[^\w-]/g, "_")}.txt`);
      writeFileSync(path, whole, { mode: 0o600 });
      return path;
    },
    openTerminals: () =>
      (commands.loaded()?.terminals() ?? [])
        .filter(({ running }) => running)
        .map(({ id, command }) => `${id}: ${command}`),
    capabilities: {
      files: ({ grant }) =>
        createFiles({
          workspace,
          cwd,
          grant,
          memory,
          ...(onFileChange === undefined ? {} : { onChange: onFileChange }),
        }),
      exec: (scope) => commands.exec(scope),
      // Loaded when a tool first reaches for the network: node:http is dear to load on newer Node versions.
      fetch:
        ({ grant, signal }) =>
        async (url, init) => {
          const { createFetch } = await import("../runtime/network.ts");
          return createFetch({ network: grant.network, signal })(url, init);
        },
      close: async () => commands.loaded()?.close(),
    },
  };
}

interface LazyCommands extends Pick<Commands, "warmUp"> {
  readonly sandbox: Sandbox;
  exec(scope: CallScope): Exec;
  loaded(): Commands | undefined;
}

/** Most sessions start no command before the first answer: what commands need is loaded when one comes. */
function createLazyCommands(options: CommandOptions): LazyCommands {
  let loaded: Commands | undefined;
  const load = async () => (loaded ??= (await import("./commands.ts")).createCommands(options));
  return {
    loaded: () => loaded,
    warmUp: async (grant) => (await load()).warmUp(grant),
    sandbox: {
      confinement: async () => (await load()).sandbox.confinement(),
      confine: async (launch, how) => (await load()).sandbox.confine(launch, how),
      whyNotHeld: async (grant, cwd) => (await load()).sandbox.whyNotHeld(grant, cwd),
      explain: async (grant) => (await load()).sandbox.explain(grant),
      close: async () => loaded?.sandbox.close(),
    },
    exec(scope) {
      if (loaded) return loaded.exec(scope);
      const exec = async () => (await load()).exec(scope);
      return {
        get shellPath() {
          return lineShell();
        },
        run: async (request) => (await exec()).run(request),
        shell: async (line, request) => (await exec()).shell(line, request),
        terminals: {
          open: async (request) => (await exec()).terminals.open(request),
          write: async (id, input) => (await exec()).terminals.write(id, input),
          close: async (id) => (await exec()).terminals.close(id),
          list: () => loaded?.terminals() ?? [],
        },
      };
    },
  };
}
