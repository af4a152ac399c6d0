/**
 * The interface one sandbox backend fills, and what the process layer gets from it. A backend turns
 * a command and a grant into a command line that confines itself; it starts nothing, reads no output
 * and knows no tool, no policy file and no person.
 */
import type { Denial, Grant } from "../../spec/access.ts";
import type { Launch } from "../../spec/capability.ts";
import type { Confined } from "../process/child.ts";
import type { ProxiedRequest } from "../proxy.ts";

export type { Confined, Ending, FdData, LandlockRules } from "../process/child.ts";

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

/** One way to confine a command on this machine. */
export interface Backend {
  readonly name: string;
  /** How a command in here reaches our proxy: by a socket it is shown, or by a port of the host's. */
  readonly proxyBy: "socket" | "port";
  /** Really runs something; ok only if a command was confined. Never decides by an error's words. */
  probe(): Promise<ProbeResult>;
  /** Left out: it cannot hold back what a command writes. Else why these roots cannot be held, or undefined. */
  whyNotHeld?(grant: Grant, cwd: string): string | undefined;
  /** Puts the sandbox around a command. */
  confine(launch: Launch, how?: ConfineHow): Confined;
  /** What the sandbox allows and forbids under this grant, one sentence each. */
  explain(grant: Grant): readonly string[];
}

/** What a backend is told about the command it confines. */
export interface ConfineHow {
  /** Where the backend can: the sandbox apart from its command, as a `wrapper` that the launcher makes ahead. */
  readonly apart?: boolean;
  /** There exactly when the grant's network is a list of hosts; closing it is the command's cleanup. */
  readonly proxy?: CommandProxy;
}

/** Whether a backend works here, from a real try. */
export interface ProbeResult {
  readonly ok: boolean;
  /** What was tried and how far it came; for people. */
  readonly detail: string;
  /** One line a person can run or do to make it work. */
  readonly fix?: string;
}

/** The best way to confine commands that was found on this machine. */
export interface Sandbox {
  /** The candidate that was found; runs the probes (cached) the first time. */
  confinement(): Promise<{ readonly name: string; readonly available: boolean }>;
  /** CallError `no_sandbox` when the grant asks for confinement and there is none here. */
  confine(launch: Launch, options?: ConfineOptions): Promise<Confined>;
  /** Why what a command writes under this grant cannot be held here; undefined: it can. */
  whyNotHeld(grant: Grant, cwd: string): Promise<string | undefined>;
  explain(grant: Grant): Promise<readonly string[]>;
  /** Ends proxies and removes the private temp folder. */
  close(): Promise<void>;
}

/** Options of one confined command. */
export interface ConfineOptions extends Pick<ConfineHow, "apart"> {
  /** Told of every request the command makes, where its network is a list of hosts. */
  readonly onRequest?: (request: ProxiedRequest) => void;
}
