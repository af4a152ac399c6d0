/**
 * `process/` starts commands and hands over their bytes, with the launcher or without it. It knows
 * pipes, signals and limits; it reads no grant and knows no tool, no shell and nothing of what is allowed.
 */
import { statSync } from "node:fs";
import { sep } from "node:path";
import type { Denial, DeniedProgram } from "../../spec/access.ts";
import type { Launch, LimitName, StartedPrograms, TerminalSize } from "../../spec/capability.ts";

export type OutputStream = "stdout" | "stderr";

/**
 * A launch ready for the kernel: `argv`, `cwd` and `env` are what is really started, with whatever
 * confines the command already part of them, or in one of the fields below.
 */
export interface Confined extends Launch {
  /**
   * The command line that builds the sandbox, with a process of the launcher's in it that then starts
   * `argv`. Equal words may share a sandbox that is kept ready. Only the launcher honours it.
   */
  readonly wrapper?: readonly string[];
  /** Whether the wrapper may serve other commands; false for what is made for one call (its proxy). */
  readonly reusable?: boolean;
  /** Start as this user: root runs commands in somebody else's workspace as its owner. With a wrapper: the wrapper. */
  readonly uid?: number;
  readonly gid?: number;
  /** Must be readable, from the start and once, at these descriptor numbers (3 to 7). With a wrapper: in the wrapper. */
  readonly fds?: readonly FdData[];
  /** Where the sandbox program in `argv` says what became of the command: its exit code stands there only if it began. */
  readonly statusFd?: number;
  /** Applied by the launcher to the child just before it executes `argv`. Without a launcher it must not run. */
  readonly landlock?: LandlockRules;
  /** Where what it writes is held, if it is. */
  readonly run?: HeldRun;
  /** Held by the launcher against every program the command starts. Only the launcher honours it. */
  readonly starts?: StartRules;
  /** What confines it: `bwrap+seccomp`, `bwrap(bound /proc)+seccomp`, `landlock+seccomp`, `seatbelt`, `container`, `none`. */
  readonly sandbox: string;
  /**
   * Call once per command, after its whole process tree is gone, whatever the ending was. Closes what
   * was opened for it, takes away protected names it made, and says what was refused where that is known.
   */
  cleanup(ending: Ending): Promise<Denial | undefined>;
}

/** One command whose writes lie in a folder of their own, until it is decided what becomes of them. */
export interface HeldRun {
  readonly id: string;
  readonly folder: string;
  /** The folders that are held, the workspace first. */
  readonly roots: readonly string[];
  /** Whose they are, where root runs commands for somebody else. */
  readonly uid?: number;
  readonly gid?: number;
}

/** How a process ended. */
export interface Ending {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** What the command started, where that was judged. */
  readonly programs?: StartedPrograms;
  readonly limit?: LimitName;
}

/** Data the program finds at a file descriptor (a seccomp program for bubblewrap). */
export interface FdData {
  readonly fd: number;
  readonly data: Uint8Array;
}

/** What goes into the kernel's landlock structures, bits already reduced to what this kernel knows. */
export interface LandlockRules {
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

/** What is held against every program that is started. */
export interface StartRules {
  readonly rules: readonly DeniedProgram[];
  /** Files of those programs as they are known outside, for telling copies of them. */
  readonly files: readonly ProgramFile[];
  /** Asks about starts (a BPF program); not with `landlock`, whose own filter does. */
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
  /** Bytes handed over as they come; what exceeds them is kept as a tail and handed over at the end. */
  readonly liveBytes: number;
  readonly tailBytes: number;
  /** How long, after the command ended, its output may stay open in another process's hands. */
  readonly graceMs: number;
  /** The bytes are the receiver's to keep. */
  readonly onOutput: (stream: OutputStream, bytes: Buffer) => void;
  /** Bytes that were read and thrown away, between what was handed over before and after; `breaks` of them end a line. */
  readonly onDropped: (stream: OutputStream, count: number, breaks: number) => void;
  /**
   * A file that does not exist yet, for what exceeds the live bytes: written by whoever reads the output, up to
   * `bytes` of the whole. Its beginning is the receiver's to write. Only the launcher honours it.
   */
  readonly keep?: { readonly path: string; readonly bytes: number };
  /** That file was made and has this length; told before what was kept back. */
  readonly onKept?: (length: number) => void;
}

export interface Child {
  /**
   * Settles once the command is over, its output has been handed over and nothing of it is left running.
   * Rejects with a StartError if it never ran, or if nobody can say how it ended.
   */
  readonly ended: Promise<ChildEnd>;
  write(data: string | Uint8Array): void;
  endInput(): void;
  resize(size: TerminalSize): void;
  /** To the command's process group; in a terminal, to the foreground group. */
  signal(name: NodeJS.Signals): void;
  /** Everything the command started, at once. */
  kill(): void;
  /** That many more bytes may be handed over as they come. */
  more(bytes: number): void;
  /** True if something of the command sits in a read of its input. */
  isWaiting(): Promise<boolean>;
}

export interface ChildEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly heldOpen: boolean;
  /** The limit of the whole command that ended it. */
  readonly limit?: LimitName;
  readonly programs?: StartedPrograms;
  readonly usage?: { readonly cpuMs: number; readonly peakBytes: number };
}

/** Why a command never ran. `code` is the system's (`ENOENT`, `EACCES`, `E2BIG`) or `launcher` when the launcher went away. */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly code: string;
  /** What was being done: `exec`, `chdir`, `sandbox`, `landlock`, `seccomp`, `tty`, `launcher`. */
  readonly step: string;

  constructor(step: string, code: string, message: string) {
    super(message);
    this.step = step;
    this.code = code;
  }
}

/**
 * What a sandbox program said about its own failure, without paths that are nobody's business here: it lists what
 * it hides, and that may be other users'.
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

/** Node reports a missing folder as a missing program, and bubblewrap in words of its own: it is looked at first. */
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
  /** Rejects with a StartError if the command could not be started; that may also show later, in `ended`. */
  start(launch: Confined, sink: Sink): Promise<Child>;
  /** Gets ready for such a command, where that is possible: the launcher runs, the sandbox is built. */
  prepare(launch: Confined): void;
  close(): Promise<void>;
}
