/**
 * What a handler can do to the world: files, commands, terminals, network. These are only types.
 * `runtime/` builds the capabilities from the call's grant, so that a handler cannot reach further
 * than was agreed.
 */
import type { Denial, Grant } from "./access.ts";

/** Files, as a handler may use them: every path is checked against the grant. */
export interface Files {
  /** The absolute path without links. Throws a CallError if it may not be used in that way. */
  resolve(path: string, use: "read" | "write"): Promise<string>;
  /** The bytes. Unlike `readText` and `slice`, this is not remembered as something the model has seen. */
  read(path: string): Promise<Uint8Array>;
  /**
   * `toWrite`: throws also if the file may not be written, before anything is read. The version is then
   * another one as soon as the file is touched.
   */
  readText(path: string, options?: { readonly toWrite?: boolean }): Promise<TextFile>;
  /** Lines `from` to `to` (1-based, inclusive), without reading what comes after them. */
  lines(path: string, from: number, to: number): AsyncIterable<string>;
  /** The same at once. Negative numbers count from the end: -50 to -1 are the last fifty lines. */
  slice(
    path: string,
    from: number,
    to: number,
    options?: { readonly maxLineBytes?: number; readonly maxBytes?: number },
  ): Promise<FileSlice>;
  /**
   * Writes a temporary file and renames it; keeps mode bits. `ifUnchanged` refuses if the file changed
   * since that version was read.
   */
  write(path: string, data: string | Uint8Array, options?: WriteOptions): Promise<FileVersion>;
  remove(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  mkdir(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  move(from: string, to: string): Promise<void>;
  copy(from: string, to: string): Promise<void>;
  /** Sorted by name. What may not be read is left out. */
  list(path: string): Promise<readonly FileEntry[]>;
  /** Only what the folder itself says about its entries: a walk over a whole tree need not look at every file. */
  names(path: string): Promise<readonly FileName[]>;
  stat(path: string): Promise<FileEntry | undefined>;
}

/** A text file, with what is needed to write it back unchanged. */
export interface TextFile {
  readonly text: string;
  readonly version: FileVersion;
  readonly bom: boolean;
  readonly encoding: "utf8" | "utf16le" | "latin1";
  readonly mode: number;
}

/** Some lines of a file, without their endings. */
export interface FileSlice {
  readonly lines: readonly string[];
  /** The number of the first line, counted from where it was asked for: negative from the end. */
  readonly first: number;
  /** There are lines after these. */
  readonly more: boolean;
  /** The file's first bytes (at most 512), for recognising its type. */
  readonly head: Uint8Array;
  readonly sizeBytes: number;
}

/** Identifies a file's content at one moment. It is only compared, never interpreted. */
export interface FileVersion {
  readonly path: string;
  readonly token: string;
}

/** Options of a write. */
export interface WriteOptions {
  /** Fail unless the file still has this version. */
  readonly ifUnchanged?: FileVersion;
  /** Fail if something exists there already. */
  readonly exclusive?: boolean;
  /** The mode of a new file. */
  readonly mode?: number;
  /** Create missing folders on the way. */
  readonly parents?: boolean;
  /** Overwrite the file even if it changed since this session last read it. */
  readonly evenIfChanged?: boolean;
}

/** What an entry of a folder is called and is. */
export interface FileName {
  readonly name: string;
  readonly path: string;
  readonly type: "file" | "directory" | "link" | "other";
}

/** One entry of a folder. */
export interface FileEntry extends FileName {
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly mode: number;
  readonly linkTarget?: string;
}

/**
 * One command, from the handler that asks for it to the program that starts it. A handler says what it
 * knows (`ExecRequest`), `exec` fills in the rest, and a sandbox wraps it.
 */
export interface Launch {
  readonly argv: readonly string[];
  /** The absolute path of the folder that it starts in. */
  readonly cwd: string;
  /** The whole environment of the command; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** Written to the command's input, which is then closed. Left out: empty, or the terminal. */
  readonly stdin?: string | Uint8Array;
  /** Given if it runs on a terminal of this size. */
  readonly tty?: TerminalSize;
  readonly limits?: Limits;
  readonly grant: Grant;
}

/** The size of a terminal, in characters. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** What a command may use. A limit that is left out is not set. */
export interface Limits {
  readonly timeoutMs?: number;
  /** Processes and threads at the same time. */
  readonly processes?: number;
  readonly memoryBytes?: number;
  /** The size of one file that it writes. */
  readonly fileBytes?: number;
  readonly openFiles?: number;
  /** The size of everything in the private temporary folder. */
  readonly tempBytes?: number;
}

/** A limit that ends the whole command when it is reached. */
export type LimitName = "processes" | "memoryBytes" | "tempBytes";

/**
 * What a handler says about a command: its words (`argv`), or one line for the shell (`shell`). What it
 * leaves out comes from the call: folder, environment, grant.
 */
export interface ExecRequest extends Pick<Launch, "stdin" | "limits"> {
  readonly argv?: readonly string[] | undefined;
  /** A line for bash, in place of `argv`. */
  readonly shell?: string | undefined;
  /** Start with the environment that the user's login files make. Left out: only a line does. */
  readonly login?: boolean | undefined;
  /** The folder that it starts in, seen from the call's own. */
  readonly cwd?: string | undefined;
  /** Variables besides those that the call's commands have. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Short for `limits.timeoutMs`. */
  readonly timeoutMs?: number | undefined;
  /** How much of each stream is held in memory, head and tail. */
  readonly maxOutputBytes?: number;
  /** False: longer output is not kept in a file, because nobody will read it. */
  readonly keep?: boolean;
  readonly onOutput?: (chunk: ExecChunk) => void;
  /**
   * For a dialogue with the command. Each line of its standard output is passed on as it comes, and
   * `reply` writes to its input, which stays open until it ends. Its standard output is then not part of
   * the result.
   */
  readonly onLine?: (line: string, reply: (text: string) => void) => void;
  /**
   * Runs in a sandbox whatever the call was granted: no network, and nothing to write except the
   * sandbox's own temporary folder.
   */
  readonly isolated?: boolean;
  /** Stops only this command. */
  readonly signal?: AbortSignal;
}

/** A piece of output as it comes. */
export interface ExecChunk {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
  /** How many bytes came after this piece and are not passed on. A flood is reported once, at its end. */
  readonly omittedBytes?: number;
}

/** How a command ended, and what it wrote. */
export interface ExecResult {
  /** Null when a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: CapturedOutput;
  readonly stderr: CapturedOutput;
  /** Both streams in the order they came. */
  readonly output: CapturedOutput;
  readonly timedOut: boolean;
  /** A background process kept the output open after the command had ended. */
  readonly heldOpen: boolean;
  readonly durationMs: number;
  /** The command was waiting for input that it could not get. */
  readonly waitingForInput?: boolean;
  readonly usage?: { readonly cpuMs: number; readonly peakBytes: number };
  /** What confined it: `bwrap+seccomp`, `landlock+seccomp`, `none`, … */
  readonly sandbox: string;
  /** Set if the sandbox itself reports that it refused something. */
  readonly denied?: Denial;
  /** The limit that ended the command; `denied` describes it. */
  readonly limit?: LimitName;
  /** The programs it started, if each start was judged (with a deny rule, a sandbox and the launcher). */
  readonly programs?: StartedPrograms;
}

/** In the order in which they were started. Long words and long lists are cut. */
export interface StartedPrograms {
  readonly list: readonly StartedProgram[];
  /** Started too, but not listed. */
  readonly unlisted: number;
}

/** A program that a command started, or was prevented from starting. */
export interface StartedProgram {
  readonly argv: readonly string[];
  /** The rule that prevented it from starting. */
  readonly refusedBy?: string;
}

/** The head and the tail of an output, with `droppedBytes` between them. The counts are those of the whole output. */
export interface CapturedOutput {
  readonly head: string;
  readonly tail: string;
  readonly droppedBytes: number;
  readonly totalBytes: number;
  /** How many line feeds it has. */
  readonly lineBreaks: number;
  readonly binary: boolean;
  /** The bytes themselves, if nothing was dropped and the output is not UTF-8 text. */
  readonly raw?: Uint8Array;
  /** Where a longer output was stored while it was read: all of it, or its first `bytes`. */
  readonly kept?: { readonly path: string; readonly bytes: number };
}

/** Commands, as a handler may run them: confined as the grant says. */
export interface Exec {
  /** Runs a command until it ends: `run({ argv: ["git", "diff"] })`, or a line: `run({ shell: "ls | wc -l" })`. */
  run(request: ExecRequest): Promise<ExecResult>;
  readonly terminals: Terminals;
}

/** Processes that outlive a call. */
export interface Terminals {
  open(request: TerminalRequest): Promise<TerminalView>;
  write(id: number, request: TerminalInput): Promise<TerminalView>;
  list(): readonly TerminalInfo[];
  close(id: number): Promise<void>;
}

/** A command that is to run in a terminal which stays open. */
export interface TerminalRequest extends Omit<ExecRequest, "stdin" | "onOutput" | "onLine" | "isolated" | "signal"> {
  readonly tty: boolean;
  readonly columns?: number;
  readonly rows?: number;
  /** How long to wait for output or the end before returning. */
  readonly yieldMs: number;
  readonly onOutput?: (chunk: ExecChunk) => void;
}

/** What is typed into an open terminal, and how long to wait for its output. */
export interface TerminalInput {
  readonly chars: string;
  readonly yieldMs: number;
  readonly maxOutputBytes?: number;
  readonly resize?: TerminalSize;
}

/** What came since the last look. `id` is absent after the process has ended. */
export interface TerminalView {
  readonly id?: number;
  readonly output: CapturedOutput;
  readonly exitCode?: number | null;
  readonly signal?: string | null;
  readonly wallMs: number;
  readonly sandbox: string;
  /** It is waiting to read from its terminal or its input. */
  readonly waitingForInput?: boolean;
}

/** A process that outlived its call: what was started, and what it was granted when it was opened. */
export interface TerminalInfo {
  readonly id: number;
  /** The words in one line, to be shown. */
  readonly command: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly tty: boolean;
  /** The grant under which it runs to its end, whatever is agreed to later. */
  readonly grant: Grant;
  readonly startedAt: number;
  readonly running: boolean;
}

/** `fetch`, limited to the granted hosts. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
