/**
 * The interface that each sandbox backend implements, and what the process layer gets from it. A
 * backend turns a command and a grant into a command line that confines itself. It starts nothing,
 * reads no output, and knows no tool, no policy file and no person.
 */
import type { Denial, Grant } from "../../spec/access.ts";
import type { Launch } from "../../spec/capability.ts";
import type { Confined } from "../process/child.ts";
import type { ProxiedRequest } from "../proxy.ts";

export type { Confined, Ending, FdData, LandlockRules } from "../process/child.ts";

/** The way out of one command's network, if the grant names hosts. */
export interface CommandProxy {
  /** Where our proxy listens on the host: the path of a socket, or a loopback port. */
  readonly socket?: string;
  readonly port?: number;
  /** Required on a port, which other programs of the host could reach too. */
  readonly token?: string;
  /** Ends it. Returns which host was refused, if one was. */
  close(): Promise<Denial | undefined>;
}

/** One way to confine a command on this machine. */
export interface Backend {
  readonly name: string;
  /** How a command in here reaches our proxy: through a socket that it can see, or through a port of the host. */
  readonly proxyBy: "socket" | "port";
  /** Really runs something. It is ok only if a command was confined, and never judged by the words of an error. */
  probe(): Promise<ProbeResult>;
  /**
   * Left out: the backend cannot hold back writes. Otherwise it returns why these roots cannot be held,
   * or undefined if they can.
   */
  whyNotHeld?(grant: Grant, cwd: string): string | undefined;
  /** Puts the sandbox around a command. */
  confine(launch: Launch, how?: ConfineHow): Confined;
  /** What the sandbox allows and forbids under this grant, one sentence each. */
  explain(grant: Grant): readonly string[];
}

/** What a backend is told about the command it confines. */
export interface ConfineHow {
  /**
   * If the backend can: the sandbox separate from its command, as a `wrapper` that the launcher builds
   * ahead of time.
   */
  readonly apart?: boolean;
  /** Given exactly if the grant's network is a list of hosts. The command's cleanup closes it. */
  readonly proxy?: CommandProxy;
}

/** Whether a backend works here, found out by really trying it. */
export interface ProbeResult {
  readonly ok: boolean;
  /** What was tried and how far it got, for people. */
  readonly detail: string;
  /** One line a person can run or do to make it work. */
  readonly fix?: string;
}

/** The best way to confine commands that was found on this machine. */
export interface Sandbox {
  /** The candidate that was found. The first call runs the probes, whose results are cached. */
  confinement(): Promise<{ readonly name: string; readonly available: boolean }>;
  /** Throws a CallError `no_sandbox` if the grant asks for confinement and nothing here can confine. */
  confine(launch: Launch, options?: ConfineOptions): Promise<Confined>;
  /** Why the writes of a command under this grant cannot be held here. Undefined if they can. */
  whyNotHeld(grant: Grant, cwd: string): Promise<string | undefined>;
  explain(grant: Grant): Promise<readonly string[]>;
  /** Ends proxies and removes the private temp folder. */
  close(): Promise<void>;
}

/** Options of one confined command. */
export interface ConfineOptions extends Pick<ConfineHow, "apart"> {
  /** Called for every request that the command makes, if its network is a list of hosts. */
  readonly onRequest?: (request: ProxiedRequest) => void;
}
