/**
 * The machine as an engine uses it. All conversations share its sandboxes, processes and network; what
 * a conversation reads, leaves running or keeps is its own.
 */
import { randomBytes } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { EnvironmentPolicy } from "../runtime/environment.ts";
import { createFileMemory, createFiles, toFileChange, type FileChange } from "../runtime/files.ts";
import { defaultKeepBytes, keepWhole, newKept } from "../runtime/kept.ts";
import type { Capabilities } from "../runtime/context.ts";
import type { Sandbox } from "../runtime/sandbox/backend.ts";
import type { Spill } from "../result/cut.ts";
import type { Grant } from "../spec/access.ts";
import { defined } from "../base/json.ts";
import type { Logger } from "../spec/tool.ts";
import type { Exec, Fetch, Limits, TerminalInfo } from "../spec/capability.ts";
import { hash8 } from "../spec/name.ts";
import type { Confinement } from "../spec/stages.ts";
import type { CommandOptions, Commands, CommandScope } from "./commands.ts";

/** Where an engine works and what it may use there. */
export interface HostOptions {
  /** The folder the tools work in. Left out: the current one. */
  readonly workspace?: string;
  /** Where relative paths and commands start. Left out: the workspace. */
  readonly cwd?: string;
  /** Which variables of ours commands get. Left out: those that are known to be safe. */
  readonly environment?: EnvironmentPolicy;
  /** `off`, or the path of the launcher. Left out: the launcher that set-up built. */
  readonly launcher?: string;
  /** What each command may use, where that differs from the defaults (`defaultLimits`). 0 means no limit. */
  readonly commandLimits?: Limits;
  /** How many commands may run at once, counting all conversations. The rest wait, and places are shared out fairly. */
  readonly maxCommands?: number;
  /** False: the user's login files are not read for the environment of commands. */
  readonly loginFiles?: boolean;
  /** Told about the machine: what confines commands, and what is missing. */
  readonly log?: Logger;
  /**
   * Where outputs that are too long for a model are kept, in one folder per conversation. Left out: a
   * private temporary folder.
   */
  readonly spillDir?: string;
  /** How many bytes of one output are kept at most (64 MiB). What comes after that is only counted. */
  readonly keepBytes?: number;
  /** Called when a file tool has changed a file. */
  readonly onFileChange?: (change: FileChange) => void;
}

export interface Host {
  readonly workspace: string;
  readonly cwd: string;
  /** The part of the machine that belongs to one conversation. Without an id: the engine's own. */
  conversation(id?: string, filesRead?: Iterable<readonly [string, string]>): ConversationHost;
  /** What confines commands on this machine. It is found out when first asked for. */
  confinement(): Promise<Confinement>;
  sandbox(): Sandbox;
  /** Gets ready for a first command under this grant, in the background. */
  warmUp(grant: Grant): Promise<void>;
  close(): Promise<void>;
}

/**
 * What belongs to one conversation: the files it has read, the processes it left running, and the
 * outputs kept for it.
 */
export interface ConversationHost {
  readonly capabilities: Capabilities;
  /** The folder of its kept outputs. It exists once something is kept. */
  readonly spillDir: string;
  spill: Spill;
  terminals(): readonly TerminalInfo[];
  /** The files seen since this was last asked for, each with its version. */
  takeFilesRead(): readonly (readonly [string, string])[];
  /** Ends what it left running. */
  close(): Promise<void>;
}

export function createHost(options: HostOptions): Host {
  const workspace = realpathSync(options.workspace ?? process.cwd());
  const cwd = resolve(workspace, options.cwd ?? ".");
  const { environment, launcher, onFileChange, commandLimits, maxCommands, loginFiles, log } = options;
  const spillRoot = options.spillDir ?? join(tempRoot(), `callgate-output-${randomBytes(9).toString("base64url")}`);
  const { keepBytes = defaultKeepBytes } = options;
  const commands = createLazyCommands({
    cwd,
    kept: spillRoot,
    ...defined({ environment, launcher, commandLimits, maxCommands, loginFiles, log }),
  });

  let opened = 0;
  function conversation(id?: string, filesRead: Iterable<readonly [string, string]> = []): ConversationHost {
    const memory = createFileMemory(filesRead);
    // Conversations are kept apart even if the host gave them the same name. Only the folder of their outputs goes by
    // that name, so that it can be found again.
    const owner = `${++opened}`;
    const spillDir = join(spillRoot, id === undefined ? "main" : folderOf(id));
    return {
      spillDir,
      spill: async (callId, whole) => keepWhole(newKept(spillDir, callId), whole, keepBytes),
      terminals: () => commands.loaded()?.terminals(owner).list() ?? [],
      close: async () => commands.loaded()?.terminals(owner).closeAll(),
      takeFilesRead: memory.takeNew,
      capabilities: {
        files: ({ grant, onFileChange: onCallChange }) =>
          createFiles({
            workspace,
            cwd,
            grant,
            memory,
            onChange(change) {
              onCallChange(change);
              onFileChange?.(toFileChange(change));
            },
          }),
        exec: (scope) =>
          commands.exec({ ...scope, conversation: owner, keep: () => newKept(spillDir, scope.id), keepBytes }),
        // Loaded when a tool first uses the network, because node:http takes long to load on newer versions of Node.
        fetch: ({ grant, signal, idempotencyKey }) => {
          let open: Fetch | undefined;
          return async (url, init) => {
            const { createFetch } = await import("../runtime/network.ts");
            open ??= createFetch({ network: grant.network, signal, idempotencyKey });
            return open(url, init);
          };
        },
      },
    };
  }

  return {
    workspace,
    cwd,
    conversation,
    confinement: () => commands.sandbox.confinement(),
    sandbox: () => commands.sandbox,
    warmUp: commands.warmUp,
    close: async () => commands.loaded()?.close(),
  };
}

/**
 * An id comes from outside, so characters that cannot stand in a path are left out, and two ids never
 * share a folder.
 */
function folderOf(id: string): string {
  return `${id.replaceAll(/[^\w-]/g, "_").slice(0, 40)}-${hash8(id)}`;
}

/** A command in a sandbox has its own temporary folder, but it can see this one and read what was kept there. */
function tempRoot(): string {
  return existsSync("/var/tmp") ? "/var/tmp" : tmpdir();
}

interface LazyCommands extends Pick<Commands, "warmUp"> {
  readonly sandbox: Sandbox;
  exec(scope: CommandScope): Exec;
  loaded(): Commands | undefined;
}

/** Most sessions run no command before the first answer, so what commands need is loaded with the first of them. */
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
        run: async (request) => (await exec()).run(request),
        terminals: {
          open: async (request) => (await exec()).terminals.open(request),
          write: async (id, input) => (await exec()).terminals.write(id, input),
          close: async (id) => (await exec()).terminals.close(id),
          list: () => loaded?.terminals(scope.conversation).list() ?? [],
        },
      };
    },
  };
}
