/**
 * What a call touches, as one plain value: the tool states it (`Access`), the gate narrows it to
 * what was agreed (`Grant`), the runtime and the sandbox are built from that and nothing else.
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
  /** What the call uses of MCP servers: their rules hold for it, whichever tool makes it. A remote tool's own use is added when it is checked. */
  readonly servers?: readonly ServerUse[];
  /** The model asks to run outside the sandbox. */
  readonly escalation?: Escalation;
}

/** Something of an MCP server's: a tool by its name there, or the protocol's word for what is no tool (`resources/read`). */
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
  /** `shell` is typed into a process that runs already, which was started with these words. */
  readonly typed?: readonly string[];
  /** It may go on after the call (a terminal, a server): what it writes cannot be held. */
  readonly stays?: boolean;
}

/** Which shell a command line is written for. */
export type ShellDialect = "bash" | "zsh" | "powershell";

/** The call asks to run outside the sandbox. */
export interface Escalation {
  readonly justification?: string;
}

const serverUse: Shape = { fields: { server: "string", name: "string" }, required: ["server", "name"], noun: "field" };

/** What an access may say. A word that nobody knows would leave something unsaid. */
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
  /** Roots that may be changed, with every link followed when it was agreed. `["/"]` under full-access. */
  readonly write: readonly string[];
  /** Names inside the writable roots that stay read-only (.git, our own config). */
  readonly protect: readonly string[];
  /** Paths that may not be read at all (credentials, host sockets). */
  readonly mask: readonly string[];
  readonly network: NetworkGrant;
  /**
   * `held`: what a command writes is kept apart until it has been agreed to. `undoable`: kept apart too, then
   * kept at once. Left out: it is written directly.
   */
  readonly writes?: "direct" | "held" | "undoable";
  /** Time limits of its commands are this many times as long. Left out: as the call says. */
  readonly patience?: number;
  /** Programs that no command of the call may start, by whatever way: the deny rules, compiled. */
  readonly denied?: readonly DeniedProgram[];
}

/** A deny rule about commands as plain data, so that the sandbox can hold it against every program that is started. */
export interface DeniedProgram {
  /** What the rule is called. */
  readonly rule: string;
  /** Names of the program, or absolute paths. */
  readonly program: readonly string[];
  /** What the words behind it must hold; none: whatever they are. */
  readonly words: readonly WordTest[];
}

/** One of these must be the next word, options passed over; or one of these options must be among the words. */
export type WordTest = { readonly oneOf: readonly string[] } | { readonly options: readonly OptionTest[] };

/** Written just so, or of every group one letter in a cluster or one long name, which may be shortened. */
export interface OptionTest {
  readonly text: string;
  readonly groups: readonly { readonly letters: string; readonly names: readonly string[] }[];
}

/** What a sandbox or a capability refused: a value, never words found in an output. */
export interface Denial {
  readonly what: "read" | "write" | "network" | "command" | "time";
  readonly target?: string;
  readonly reason: string;
  /** A rule said no: nobody is asked for more. */
  readonly rule?: string;
  /** Concluded from what the command names and that it failed: nothing has reported it. */
  readonly inferred?: true;
  /** What else was refused. */
  readonly more?: readonly Denial[];
}
