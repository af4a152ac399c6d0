/**
 * The interface one sandbox backend fills, and what the process layer gets from it. A backend turns
 * a command and a grant into a command line that confines itself; it starts nothing, reads no output
 * and knows no tool, no policy file and no person.
 */
import type { Denial, Grant } from "../../spec/access.ts";

export interface ConfineRequest {
  readonly argv: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** The whole environment of the command (see `environment.ts`); nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly grant: Grant;
  /** The command is put on a terminal that was opened outside; inside it keeps its controlling terminal. */
  readonly tty?: boolean;
  /** Names the call in the proxy's log. */
  readonly callId?: string;
}

/** A command line that confines itself, and what must be around it when it is started. */
export interface ConfinedCommand {
  readonly argv: readonly string[];
  /** Environment of `argv[0]`, whole. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Start `argv[0]` as this user (root runs commands in somebody else's workspace as its owner). */
  readonly identity?: Identity;
  /** Must be readable, from the start and once, at these descriptor numbers (a pipe, file or memfd will do). */
  readonly fds?: readonly InheritedFd[];
  /** Applied by the launcher to itself just before it executes `argv`; only ever set by the Landlock backend. */
  readonly landlock?: LandlockRules;
  /**
   * Start it with a Node IPC channel (`stdio: [..., "ipc"]`) and hand every message here: the way the
   * sandbox passes the listening socket of its own network namespace to our proxy.
   */
  readonly onMessage?: (message: unknown, handle: unknown) => void;
  /** The same confinement, started ahead of its command. Absent where a backend cannot (or need not) do that. */
  readonly warm?: WarmRecipe;
  /** What confines it: `bwrap+seccomp`, `bwrap(bound /proc)+seccomp`, `landlock+seccomp`, `seatbelt`, `container`, `none`. */
  readonly sandbox: string;
  /**
   * Call once, after the whole process tree is gone, whatever the ending was. Closes what was opened for
   * the command, removes protected names it made, and says what was refused where that is known.
   */
  cleanup(ending: Ending): Promise<Denial | undefined>;
}

export interface Ending {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

export interface InheritedFd {
  readonly fd: number;
  readonly data: Uint8Array;
}

/**
 * A sandbox that waits for its command. Start `argv` followed by a program that takes argv, env and
 * cwd later (the launcher's stage-2 mode); the command it then runs is confined as the cold one is.
 */
export interface WarmRecipe {
  /** Equal keys confine equally. A warm sandbox under another key must not be used for this command. */
  readonly key: string;
  /** Ends with the word after which the program inside comes. */
  readonly argv: readonly string[];
  /** Environment of `argv[0]`; says nothing about the command's. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly identity?: Identity;
  readonly fds?: readonly InheritedFd[];
}

/** Rights by path prefix. Handled by the launcher: what the kernel's ABI does not know is left out. */
export interface LandlockRules {
  /** Read and execute files below. */
  readonly read: readonly string[];
  /** List folders below (names only). */
  readonly list: readonly string[];
  /** Everything below may be changed. */
  readonly write: readonly string[];
  /** Single files (devices) that may be written and truncated, not made. */
  readonly writeFiles: readonly string[];
  /** TCP ports that may be connected to; absent: any. */
  readonly connectPorts?: readonly number[];
  /** TCP ports that may be bound; absent: any. */
  readonly bindPorts?: readonly number[];
  /** No abstract sockets and no signals beyond the command's own processes (ABI 6). */
  readonly scoped: boolean;
  /** A classic BPF program (`struct sock_filter[]`), installed after the rules with no_new_privs. */
  readonly seccomp: Uint8Array;
}

export interface Backend {
  readonly name: string;
  /** Really runs something; true only if a command was confined. Never decides by an error's words. */
  probe(): Promise<ProbeResult>;
  confine(request: ConfineRequest): Promise<ConfinedCommand>;
  /** What the sandbox allows and forbids under this grant, one sentence each. */
  explain(grant: Grant): readonly string[];
}

export interface ProbeResult {
  readonly ok: boolean;
  /** What was tried and how far it came; for people. */
  readonly detail: string;
  /** One line a person can run or do to make it work. */
  readonly fix?: string;
}

export interface Sandbox {
  /** The rung that was found; asks the probes (cached) the first time. */
  confinement(): Promise<{ readonly name: string; readonly available: boolean }>;
  /** CallError `no_sandbox` when the grant asks for confinement and there is none here. */
  confine(request: ConfineRequest): Promise<ConfinedCommand>;
  explain(grant: Grant): Promise<readonly string[]>;
  /** The warm recipe alone, to start a sandbox before there is a command; undefined where there is none. */
  prepare(request: Omit<ConfineRequest, "argv">): Promise<WarmRecipe | undefined>;
  /** Ends proxies and removes the private temp folder. */
  close(): Promise<void>;
}
