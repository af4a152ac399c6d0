/** The machine as the engine uses it: files, commands, network, built from a call's grant and shared by all calls. */
import { randomBytes } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { EnvironmentPolicy } from "../runtime/environment.ts";
import { createFileMemory, createFiles, type FileChange } from "../runtime/files.ts";
import { defaultKeepBytes, keepWhole, openKept } from "../runtime/kept.ts";
import type { CallScope, Capabilities } from "../runtime/runtime.ts";
import type { Sandbox } from "../runtime/sandbox/backend.ts";
import { lineShell } from "../runtime/shell.ts";
import type { Spill } from "../result/cut.ts";
import type { Grant } from "../spec/access.ts";
import type { Exec } from "../spec/capability.ts";
import type { Confinement } from "../spec/stages.ts";
import type { CommandOptions, Commands, CommandScope } from "./commands.ts";

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
  /** The most that is kept of one output, in bytes (64 MiB); what comes after it is only counted. */
  readonly keepBytes?: number;
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
  readonly spillDir: string;
  spill: Spill;
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
  const spillDir = options.spillDir ?? join(tempRoot(), `callgate-output-${randomBytes(9).toString("base64url")}`);
  const { keepBytes = defaultKeepBytes } = options;

  return {
    workspace,
    cwd,
    confinement: () => commands.sandbox.confinement(),
    sandbox: () => commands.sandbox,
    warmUp: commands.warmUp,
    spillDir,
    spill: async (callId, whole) => keepWhole(openKept(spillDir, callId), whole, keepBytes),
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
      exec: (scope) => commands.exec({ ...scope, keep: () => openKept(spillDir, scope.id), keepBytes }),
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

/** A command in a sandbox has a temp folder of its own, but sees this one and can read what was kept. */
function tempRoot(): string {
  return existsSync("/var/tmp") ? "/var/tmp" : tmpdir();
}

interface LazyCommands extends Pick<Commands, "warmUp"> {
  readonly sandbox: Sandbox;
  exec(scope: CommandScope): Exec;
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
