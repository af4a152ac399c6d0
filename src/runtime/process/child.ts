/**
 * `process/` starts commands and hands over their bytes, with the launcher or without it. It knows
 * pipes, signals and limits; it knows nothing of grants, tools, shells or what is allowed.
 */
import { statSync } from "node:fs";

export type OutputStream = "stdout" | "stderr";

/** One command to start, ready for the kernel: whatever confines it is already part of these words. */
export interface Launch {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Data the program finds at a file descriptor (a seccomp program for bubblewrap). */
  readonly fds?: readonly FdData[];
  readonly uid?: number;
  readonly gid?: number;
  /** Started inside this sandbox, which the launcher may have kept ready. Only the launcher honours it. */
  readonly shelter?: Shelter;
  readonly landlock?: LandlockRules;
  readonly rlimits?: readonly Rlimit[];
  /** Left out: stdin is empty and closed. */
  readonly stdin?: "pipe";
  readonly tty?: TerminalSize;
  /** Bytes handed over as they come; what exceeds them is kept as a tail and handed over at the end. */
  readonly liveBytes: number;
  readonly tailBytes: number;
  /** How long, after the command ended, its output may stay open in another process's hands. */
  readonly graceMs: number;
  /** The bytes are the receiver's to keep. */
  readonly onOutput: (stream: OutputStream, bytes: Buffer) => void;
  /** Bytes that were read and thrown away, between what was handed over before and after. */
  readonly onDropped: (stream: OutputStream, count: number) => void;
}

export interface FdData {
  readonly fd: number;
  readonly data: Uint8Array;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** A sandbox around a process of the launcher's: the command line that builds it, without any command in it. */
export interface Shelter {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly fds?: readonly FdData[];
  readonly uid?: number;
  readonly gid?: number;
  /** Whether one may be started ahead for the next command with the same words. */
  readonly reusable: boolean;
}

/** As the kernel's landlock_ruleset_attr and landlock_path_beneath_attr have them. */
export interface LandlockRules {
  readonly handledFs: number;
  readonly handledNet: number;
  readonly scoped: number;
  readonly rules: readonly { readonly path: string; readonly access: number }[];
  readonly netRules: readonly { readonly port: number; readonly access: number }[];
  /** Whose modes, owners and times stay as they are, though they lie in a writable place. */
  readonly held: readonly string[];
  readonly seccomp: Uint8Array;
}

export type RlimitName = "cpu" | "fsize" | "data" | "core" | "nproc" | "nofile" | "as";

export interface Rlimit {
  readonly resource: RlimitName;
  readonly soft: number;
  readonly hard?: number;
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
  start(launch: Launch): Promise<Child>;
  /** Builds a sandbox ahead, where that is possible. */
  prepare(shelter: Shelter): void;
  close(): Promise<void>;
}
