/**
 * What a call touches, as one plain value. The tool states it (`Access`), the gate narrows it to what
 * was agreed (`Grant`), and the runtime and the sandbox are built from that and nothing else.
 */
import type { Shape } from "../base/shape.ts";

/** What a call will touch. It is stated before the call runs, and the gate judges it. */
export interface Access {
  /** Paths that will be read; relative ones are relative to the workspace. */
  readonly read?: readonly string[];
  /** Paths that will be created, changed or removed. */
  readonly write?: readonly string[];
  readonly commands?: readonly Command[];
  /** Hosts that will be contacted, `host` or `host:port`. */
  readonly network?: readonly string[];
  /**
   * What the call uses on MCP servers. The rules for those servers apply, whichever tool makes the call.
   * A remote tool's own use is added when the call is checked.
   */
  readonly servers?: readonly ServerUse[];
  /** The model asks to run outside the sandbox. */
  readonly escalation?: Escalation;
}

/**
 * Something on an MCP server: a tool by its name there, or the protocol's own word for anything else
 * (`resources/read`).
 */
export interface ServerUse {
  readonly server: string;
  readonly name: string;
}

/** A command a call will run: words, or one shell line. */
export interface Command {
  readonly argv?: readonly string[];
  readonly shell?: string;
  readonly dialect?: ShellDialect;
  readonly cwd?: string;
  /** The words with which a running process was started, if `shell` is typed into that process. */
  readonly typed?: readonly string[];
  /** It may outlive the call (a terminal, a server), so its writes cannot be held. */
  readonly stays?: boolean;
}

/** Which shell a command line is written for. */
export type ShellDialect = "bash" | "zsh" | "powershell";

/** The call asks to run outside the sandbox. */
export interface Escalation {
  readonly justification?: string;
}

const serverUse: Shape = { fields: { server: "string", name: "string" }, required: ["server", "name"], noun: "field" };

/** What an access may contain. An unknown word would leave something unstated. */
export const accessShape: Shape = {
  fields: {
    read: "strings",
    write: "strings",
    commands: {
      list: {
        fields: {
          argv: "strings",
          shell: "string",
          dialect: { oneOf: ["bash", "zsh", "powershell"] },
          cwd: "string",
          typed: "strings",
          stays: "boolean",
        } satisfies Record<keyof Command, Shape>,
        noun: "field",
      },
    },
    network: "strings",
    servers: { list: serverUse },
    escalation: { fields: { justification: "string" } satisfies Record<keyof Escalation, Shape>, noun: "field" },
  } satisfies Record<keyof Access, Shape>,
  noun: "field",
};

/** What confined commands may write. */
export type SandboxPolicy = "read-only" | "workspace-write" | "full-access";

/** `off`, `on`, or only these hosts (`host`, `host:port`, `*.host`). */
export type NetworkGrant = "off" | "on" | readonly string[];

/** What a call may touch: never wider than what policy or a person agreed to. All paths are absolute. */
export interface Grant {
  readonly policy: SandboxPolicy;
  /** True: commands run inside a sandbox, or not at all. */
  readonly confined: boolean;
  /** Folders that may be changed, with every link followed when it was agreed. `["/"]` under full-access. */
  readonly write: readonly string[];
  /** Names inside the writable roots that stay read-only (.git, our own config). */
  readonly protect: readonly string[];
  /** Paths that may not be read at all (credentials, host sockets). */
  readonly mask: readonly string[];
  readonly network: NetworkGrant;
  /**
   * `held`: what a command writes is kept apart until somebody agrees to it. `undoable`: it is kept
   * apart and then kept at once, so that it can be undone. Left out: it is written directly.
   */
  readonly writes?: "direct" | "held" | "undoable";
  /** Time limits of its commands are multiplied by this. Left out: as the call says. */
  readonly patience?: number;
  /** Programs that no command of the call may start in any way: the deny rules, compiled. */
  readonly denied?: readonly DeniedProgram[];
}

/** A deny rule about commands as plain data, so that the sandbox can check every program that is started. */
export interface DeniedProgram {
  /** The rule's name. */
  readonly rule: string;
  /** Names of the program, or absolute paths. */
  readonly program: readonly string[];
  /** What the words after it must contain. Empty: any words. */
  readonly words: readonly WordTest[];
}

/** One of these must be the next word, with options skipped; or one of these options must be among the words. */
export type WordTest = { readonly oneOf: readonly string[] } | { readonly options: readonly OptionTest[] };

/**
 * An option written exactly like this, or one letter of each group in a cluster, or a long name, which
 * may be abbreviated.
 */
export interface OptionTest {
  readonly text: string;
  readonly groups: readonly { readonly letters: string; readonly names: readonly string[] }[];
}

/** What a sandbox or a capability refused. It is a value, and never concluded from the words of an output. */
export interface Denial {
  readonly what: "read" | "write" | "network" | "command" | "time";
  readonly target?: string;
  readonly reason: string;
  /** A rule refused it, so nobody is asked for more. */
  readonly rule?: string;
  /** Concluded from what the command names and from its failure. Nothing has reported it. */
  readonly inferred?: true;
  /** What else was refused. */
  readonly more?: readonly Denial[];
}
