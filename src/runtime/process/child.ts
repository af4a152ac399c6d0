/**
 * `process/` starts commands and hands over their bytes, with the launcher or without it. It knows
 * pipes, signals and limits. It reads no grant, and knows no tool, no shell and nothing about what is
 * allowed.
 */
import { statSync } from "node:fs";
import { sep } from "node:path";
import type { Denial, DeniedProgram } from "../../spec/access.ts";
import type { ExecResult, Launch, LimitName, StartedPrograms, TerminalSize } from "../../spec/capability.ts";

export type OutputStream = "stdout" | "stderr";

/**
 * A launch that is ready for the kernel. `argv`, `cwd` and `env` are what is really started; whatever
 * confines the command is part of them, or is in one of the fields below.
 */
export interface Confined extends Launch {
  /**
   * The command line that builds the sandbox, with a process of the launcher in it that later starts
   * `argv`. Equal wrappers may share a sandbox that is kept ready. Only the launcher uses it.
   */
  readonly wrapper?: readonly string[];
  /** Which files the wrapper's words stand for. A sandbox that was built when they stood for others is not used. */
  readonly stamp?: string;
  /** Whether the wrapper may serve other commands. False for one that is made for a single call (its proxy). */
  readonly reusable?: boolean;
  /**
   * Start as this user: in somebody else's workspace, root runs commands as its owner. With a wrapper,
   * this applies to the wrapper.
   */
  readonly uid?: number;
  readonly gid?: number;
  /** Data that must be readable once, from the start, at these descriptors (3 to 7). With a wrapper: in the wrapper. */
  readonly fds?: readonly FdData[];
  /**
   * The descriptor on which the sandbox program in `argv` reports. It reports an exit code only if the
   * command began.
   */
  readonly statusFd?: number;
  /**
   * Applied by the launcher to the child, just before it executes `argv`. Without a launcher such a
   * command must not run.
   */
  readonly landlock?: LandlockRules;
  /** Where its writes are held, if they are. */
  readonly run?: HeldRun;
  /** Checked by the launcher for every program that the command starts. Only the launcher uses it. */
  readonly starts?: StartRules;
  /** What confines it: `bwrap+seccomp`, `bwrap(bound /proc)+seccomp`, `landlock+seccomp`, `seatbelt`, `container`, `none`. */
  readonly sandbox: string;
  /**
   * Called once per command, after its whole process tree is gone, however it ended. It closes what was
   * opened for the command, removes protected names that the command made, and returns what was refused
   * if that is known.
   */
  cleanup(ending: Ending): Promise<Denial | undefined>;
}

/** One command whose writes are in a folder of their own, until it is decided what becomes of them. */
export interface HeldRun {
  readonly id: string;
  readonly folder: string;
  /** The folders that are held. The workspace comes first. */
  readonly roots: readonly string[];
  /** Their owner, if root runs commands for somebody else. */
  readonly uid?: number;
  readonly gid?: number;
}

/** How a process ended. */
export interface Ending {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** What the command started, if starts were judged. */
  readonly programs?: StartedPrograms;
  /** The limit on the whole command that ended it. */
  readonly limit?: LimitName;
}

/** Data that the program finds at a file descriptor, such as a seccomp program for bubblewrap. */
export interface FdData {
  readonly fd: number;
  readonly data: Uint8Array;
}

/** The content of the kernel's landlock structures, with bits already reduced to what this kernel knows. */
export interface LandlockRules {
  readonly handledFs: number;
  readonly handledNet: number;
  readonly scoped: number;
  /** A path that does not exist is skipped. Writable paths must be free of links. */
  readonly rules: readonly { readonly path: string; readonly access: number }[];
  readonly netRules: readonly { readonly port: number; readonly access: number }[];
  /** Places below writable ones whose modes, owners and times must not change. They are free of links. */
  readonly held: readonly string[];
  /** A classic BPF program (`struct sock_filter[]`), installed last. The launcher answers what it asks. */
  readonly seccomp: Uint8Array;
}

/** The rules that every started program is checked against. */
export interface StartRules {
  readonly rules: readonly DeniedProgram[];
  /** The files of these programs as known outside the sandbox, to recognise copies of them. */
  readonly files: readonly ProgramFile[];
  /** A BPF program that asks about starts. Not used with `landlock`, whose own filter does that. */
  readonly filter?: Uint8Array;
}

/** A program that may not be started, by name and by content. */
export interface ProgramFile {
  readonly name: string;
  readonly path: string;
  readonly isHidden: boolean;
  /** FNV-1a, 64 bits, of the first 4096 bytes. */
  readonly fingerprint: bigint;
}

/** Where the output of a command goes. */
export interface Sink {
  /** How many bytes are handed over as they come. What exceeds them is kept as a tail and handed over at the end. */
  readonly liveBytes: number;
  readonly tailBytes: number;
  /** How long another process may keep the output open after the command has ended. */
  readonly graceMs: number;
  /** The receiver may keep the bytes. */
  readonly onOutput: (stream: OutputStream, bytes: Buffer) => void;
  /**
   * Bytes that were read and thrown away between what was handed over before and after. `breaks` of them
   * end a line.
   */
  readonly onDropped: (stream: OutputStream, count: number, breaks: number) => void;
  /**
   * A file that does not exist yet, for what exceeds the live bytes. Whoever reads the output writes it,
   * up to `bytes` of the whole; the receiver writes its beginning. Only the launcher uses it.
   */
  readonly keep?: { readonly path: string; readonly bytes: number };
  /** That file was created and has this length. Called before the tail is handed over. */
  readonly onKept?: (length: number) => void;
}

export interface Child {
  /**
   * Settles when the command is over, its output has been handed over and nothing of it is left running.
   * Rejects with a StartError if it never ran, or if nobody can say how it ended.
   */
  readonly ended: Promise<ChildEnd>;
  write(data: string | Uint8Array): void;
  endInput(): void;
  resize(size: TerminalSize): void;
  /** Sends a signal to the command's process group; in a terminal, to the foreground group. */
  signal(name: NodeJS.Signals): void;
  /** Kills everything the command started, at once. */
  kill(): void;
  /** Allows this many more bytes to be handed over as they come. */
  more(bytes: number): void;
  /** True if a process of the command is waiting to read its input. */
  isWaiting(): Promise<boolean>;
}

/** How a command ended, with what only its result reports. */
export interface ChildEnd extends Ending, Pick<ExecResult, "heldOpen" | "usage"> {}

/**
 * Why a command never ran. `code` is the system's (`ENOENT`, `EACCES`, `E2BIG`), or `launcher` if the
 * launcher went away.
 */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly code: string;
  /** Which step failed: `exec`, `chdir`, `sandbox`, `landlock`, `seccomp`, `tty`, `launcher`. */
  readonly step: string;

  constructor(step: string, code: string, message: string) {
    super(message);
    this.step = step;
    this.code = code;
  }
}

const whyNotRun = new Map([
  ["ENOENT", "no such program"],
  ["EACCES", "not executable"],
  ["E2BIG", "the arguments are too long"],
]);

/** Why the system did not start a program, by the code of its error. */
export function cannotRun(program: string, code: string): string {
  return `cannot run ${JSON.stringify(program)}: ${whyNotRun.get(code) ?? code}`;
}

/**
 * What a sandbox program said about its own failure, without paths that must not be shown: it lists
 * what it hides, and that may belong to other users.
 */
export function sandboxWords(said: string, { cwd, grant }: Pick<Launch, "cwd" | "grant">): string {
  const own = [cwd, ...grant.write, "/proc", "/dev", "/sys", "/usr"];
  const isOwn = (path: string) => own.some((place) => path === place || path.startsWith(place + sep));
  const lines = said.trim().split("\n");
  return (lines.findLast((line) => line !== "") ?? "it ended before the command was started").replaceAll(
    /(?<![\w.])\/(?:(?!: ).)*/g,
    (path) =>
      path === sep || isOwn(path.replace(/^\/(?:newroot|oldroot)(?=\/)/, "")) ? path : "a path outside the workspace",
  );
}

/**
 * Checked first, because Node reports a missing folder as a missing program, and bubblewrap reports it
 * in its own words.
 */
export function checkCwd(cwd: string): void {
  const stats = statSync(cwd, { throwIfNoEntry: false });
  if (!stats?.isDirectory())
    throw new StartError(
      "chdir",
      stats ? "ENOTDIR" : "ENOENT",
      `the working directory ${cwd} ${stats ? "is no directory" : "does not exist"}`,
    );
}

export interface Spawner {
  readonly name: "launcher" | "plain";
  /** Rejects with a StartError if the command could not be started. That may also show later, in `ended`. */
  start(launch: Confined, sink: Sink): Promise<Child>;
  /** Prepares for a command if possible: starts the launcher, and builds the sandbox of such a command. */
  prepare(launch?: Confined): void;
  close(): Promise<void>;
}
