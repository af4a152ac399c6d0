/**
 * The interface one sandbox backend fills, and what the process layer gets from it. A backend turns
 * a command and a grant into a command line that confines itself; it starts nothing, reads no output
 * and knows no tool, no policy file and no person.
 */
import type { Denial, Grant } from "../../spec/access.ts";
import type { ProxiedRequest } from "../proxy.ts";

export interface ConfineRequest {
  readonly argv: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** The whole environment of the command (see `environment.ts`); nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly grant: Grant;
  /** The command is put on a terminal that was opened outside; inside it keeps its controlling terminal. */
  readonly tty?: boolean;
  /** Told of every request the command makes, where its network is a list of hosts. */
  readonly onRequest?: (request: ProxiedRequest) => void;
  /** Where the backend can: the sandbox apart from its command, for the launcher to make ahead. */
  readonly apart?: boolean;
}

/** A command line that confines itself, and what must be around it when it is started. */
export interface ConfinedCommand {
  readonly argv: readonly string[];
  /**
   * A command line that builds the sandbox with a process of the launcher's in it, which then starts `argv`. The
   * same grant and state of the protected paths give the same words, and equal ones may share one.
   */
  readonly shelter?: readonly string[];
  /** Environment to start `argv[0]` with: without a `shelter` that may be the sandbox program, which no variable may steer. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Start `argv[0]` as this user: root runs commands in somebody else's workspace as its owner. */
  readonly uid?: number;
  readonly gid?: number;
  /** Must be readable, from the start and once, at these descriptor numbers (3 to 7). */
  readonly fds?: readonly InheritedFd[];
  /** Applied by the launcher to the child just before it executes `argv`. Without a launcher it must not run. */
  readonly landlock?: LandlockRuleset;
  /** Whether the shelter may serve other commands; false for what is made for one call (its proxy). */
  readonly warm: boolean;
  /** What confines it: `bwrap+seccomp`, `bwrap(bound /proc)+seccomp`, `landlock+seccomp`, `seatbelt`, `container`, `none`. */
  readonly sandbox: string;
  /**
   * Call once per command, after its whole process tree is gone, whatever the ending was. Closes what
   * was opened for it, takes away protected names it made, and says what was refused where that is known.
   */
  cleanup(ending: Ending): Promise<Denial | undefined>;
}

export interface Ending {
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export interface InheritedFd {
  readonly fd: number;
  readonly data: Uint8Array;
}

/** What goes into the kernel's landlock structures, bits already reduced to what this kernel knows. */
export interface LandlockRuleset {
  readonly handledFs: number;
  readonly handledNet: number;
  readonly scoped: number;
  /** A path that does not exist is skipped; those that may be written must be free of links. */
  readonly rules: readonly { readonly path: string; readonly access: number }[];
  readonly netRules: readonly { readonly port: number; readonly access: number }[];
  /** Places below writable ones whose modes, owners and times stay as they are; free of links. */
  readonly held: readonly string[];
  /** A classic BPF program (`struct sock_filter[]`), installed last; the launcher answers what it asks. */
  readonly seccomp: Uint8Array;
}

/** The way out of one command's network, where the grant names hosts. */
export interface CommandProxy {
  /** Where our proxy listens on the host: a socket's path, or a loopback port. */
  readonly socket?: string;
  readonly port?: number;
  /** Asked for on a port, which other programs of the host could reach too. */
  readonly token?: string;
  /** Ends it; says which host was refused, if one was. */
  close(): Promise<Denial | undefined>;
}

export interface Backend {
  readonly name: string;
  /** How a command in here reaches our proxy: by a socket it is shown, or by a port of the host's. */
  readonly proxyBy: "socket" | "port";
  /** Really runs something; ok only if a command was confined. Never decides by an error's words. */
  probe(): Promise<ProbeResult>;
  /** `proxy` is there exactly when the grant's network is a list of hosts; closing it is the command's cleanup. */
  confine(request: ConfineRequest, proxy?: CommandProxy): ConfinedCommand;
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
  /** The candidate that was found; runs the probes (cached) the first time. */
  confinement(): Promise<{ readonly name: string; readonly available: boolean }>;
  /** CallError `no_sandbox` when the grant asks for confinement and there is none here. */
  confine(request: ConfineRequest): Promise<ConfinedCommand>;
  explain(grant: Grant): Promise<readonly string[]>;
  /** Ends proxies and removes the private temp folder. */
  close(): Promise<void>;
}
