/**
 * What a handler can do to the world: files, commands, terminals, network. Types only; `runtime/`
 * builds them from the call's grant, so a handler cannot reach further than was agreed.
 */
import type { Denial, Grant } from "./access.ts";

/** Files, as a handler may use them: every path is checked against the grant. */
export interface Files {
  /** The absolute, link-free path, or a CallError if it may not be touched that way. */
  resolve(path: string, use: "read" | "write"): Promise<string>;
  /** The bytes. Unlike `readText` and `slice`, not remembered as what the model has seen. */
  read(path: string): Promise<Uint8Array>;
  readText(path: string): Promise<TextFile>;
  /** Lines `from`..`to` (1-based, inclusive), without reading what comes after them. */
  lines(path: string, from: number, to: number): AsyncIterable<string>;
  /** The same in one piece. Negative numbers count from the end: -50 to -1 are the last fifty lines. */
  slice(
    path: string,
    from: number,
    to: number,
    options?: { readonly maxLineBytes?: number; readonly maxBytes?: number },
  ): Promise<FileSlice>;
  /** Temp file + rename; keeps mode bits. `ifUnchanged` refuses when the file changed since that version was read. */
  write(path: string, data: string | Uint8Array, options?: WriteOptions): Promise<FileVersion>;
  remove(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  mkdir(path: string, options?: { readonly recursive?: boolean }): Promise<void>;
  move(from: string, to: string): Promise<void>;
  copy(from: string, to: string): Promise<void>;
  /** By name. What may not be read is left out. */
  list(path: string): Promise<readonly FileEntry[]>;
  stat(path: string): Promise<FileEntry | undefined>;
}

/** A text file, with what is needed to write it back unchanged. */
export interface TextFile {
  readonly text: string;
  readonly version: FileVersion;
  readonly bom: boolean;
  readonly encoding: "utf8" | "utf16le" | "latin1";
}

/** Some lines of a file, without their endings. */
export interface FileSlice {
  readonly lines: readonly string[];
  /** The number of the first line, as asked for. */
  readonly first: number;
  /** There are lines after these. */
  readonly more: boolean;
  /** The file's first bytes (512 at most), for telling what kind it is. */
  readonly head: Uint8Array;
  readonly sizeBytes: number;
}

/** Identity of a file's content at one moment: compared, never interpreted. */
export interface FileVersion {
  readonly path: string;
  readonly token: string;
}

/** Options of a write. */
export interface WriteOptions {
  readonly ifUnchanged?: FileVersion;
  /** Fail if something is there already. */
  readonly exclusive?: boolean;
  readonly mode?: number;
  readonly parents?: boolean;
  /** Write over the file even if it changed since this session last read it. */
  readonly evenIfChanged?: boolean;
}

/** One entry of a folder. */
export interface FileEntry {
  readonly name: string;
  readonly path: string;
  readonly type: "file" | "directory" | "link" | "other";
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly mode: number;
  readonly linkTarget?: string;
}

/**
 * One command, from the handler that asks for it to the program that starts it. A handler says what it
 * knows (`ExecRequest`), `exec` fills in the rest, and a sandbox puts its own words around it.
 */
export interface Launch {
  readonly argv: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** The whole environment of the command; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** Written to the command and then closed. Left out: empty, or the terminal. */
  readonly stdin?: string | Uint8Array;
  /** Put on a terminal of this size. */
  readonly tty?: TerminalSize;
  readonly limits?: Limits;
  readonly grant: Grant;
}

/** The size of a terminal, in characters. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** What a command may use up. A limit that is left out is not set. */
export interface Limits {
  readonly timeoutMs?: number;
  /** Processes and threads at one time. */
  readonly processes?: number;
  readonly memoryBytes?: number;
  /** Size of one file it writes. */
  readonly fileBytes?: number;
  readonly openFiles?: number;
  /** Everything together in the private temp folder. */
  readonly tempBytes?: number;
}

/** A limit that ends the whole command when it is reached. */
export type LimitName = "processes" | "memoryBytes" | "tempBytes";

/** What a handler says of a command. What it leaves out is the call's own: folder, environment, grant. */
export interface ExecRequest extends Pick<Launch, "argv" | "stdin" | "limits">, Partial<Pick<Launch, "cwd" | "env">> {
  /** Short for `limits.timeoutMs`. */
  readonly timeoutMs?: number;
  /** How much of each stream is held in memory, head and tail. */
  readonly maxOutputBytes?: number;
  /** False: what is longer is not kept in a file, because nobody is told of it. */
  readonly keep?: boolean;
  readonly onOutput?: (chunk: ExecChunk) => void;
  /**
   * Talks with the command: each line of its standard output is handed over as it comes, and `reply` writes to its
   * input, which stays open until it ends. Its standard output is then no part of the result.
   */
  readonly onLine?: (line: string, reply: (text: string) => void) => void;
  /** In a sandbox whatever the call was granted: no network, and nothing to write but the sandbox's own temp folder. */
  readonly isolated?: boolean;
  /** Stops this command alone. */
  readonly signal?: AbortSignal;
}

/** A piece of output as it comes. */
export interface ExecChunk {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
  /** Bytes that came after this piece and are not handed over: a flood is told of once, at its end. */
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
  /** A background process kept the output open after the command ended. */
  readonly heldOpen: boolean;
  readonly durationMs: number;
  /** The command sat waiting for input it could not get. */
  readonly waitingForInput?: boolean;
  readonly usage?: { readonly cpuMs: number; readonly peakBytes: number };
  /** What confined it: `bwrap+seccomp`, `landlock+seccomp`, `none`, … */
  readonly sandbox: string;
  /** Set when the sandbox itself reports that it refused something. */
  readonly denied?: Denial;
  /** The limit that ended it; `denied` says it in words. */
  readonly limit?: LimitName;
  /** The programs it started, where each start was judged (a deny rule, a sandbox and the launcher). */
  readonly programs?: StartedPrograms;
}

/** In the order they were started; long words and long lists are cut. */
export interface StartedPrograms {
  readonly list: readonly StartedProgram[];
  /** Started too, but not listed. */
  readonly unlisted: number;
}

/** A program that a command started or was kept from starting. */
export interface StartedProgram {
  readonly argv: readonly string[];
  /** The rule that kept it from starting. */
  readonly refusedBy?: string;
}

/** Head and tail of an output; `droppedBytes` lie between them. The counts are those of the whole output. */
export interface CapturedOutput {
  readonly head: string;
  readonly tail: string;
  readonly droppedBytes: number;
  readonly totalBytes: number;
  /** Line feeds. */
  readonly lineBreaks: number;
  readonly binary: boolean;
  /** The bytes themselves, where nothing was dropped and the text is in another encoding or none. */
  readonly raw?: Uint8Array;
  /** Where an output longer than this was kept while it was read: all of it, or its first `bytes`. */
  readonly kept?: { readonly path: string; readonly bytes: number };
}

/** Commands, as a handler may run them: confined as the grant says. */
export interface Exec {
  run(request: ExecRequest): Promise<ExecResult>;
  /** A shell line through the user's shell; the login environment comes from a snapshot. */
  shell(line: string, request?: Omit<ExecRequest, "argv"> & { readonly login?: boolean }): Promise<ExecResult>;
  readonly terminals: Terminals;
  /** The shell that `shell` uses. */
  readonly shellPath: string;
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
  /** Start with the login environment, from its snapshot. */
  readonly login?: boolean;
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

/** What came since the last look. `id` is absent once the process has ended. */
export interface TerminalView {
  readonly id?: number;
  readonly output: CapturedOutput;
  readonly exitCode?: number | null;
  readonly signal?: string | null;
  readonly wallMs: number;
  readonly sandbox: string;
  /** It sits in a read of its terminal or its input. */
  readonly waitingForInput?: boolean;
}

/** A process that outlived its call: what was started, and what was granted to it when it was opened. */
export interface TerminalInfo {
  readonly id: number;
  /** The words in one line, to be shown. */
  readonly command: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly tty: boolean;
  /** Under this it runs to its end, whatever is agreed to later. */
  readonly grant: Grant;
  readonly startedAt: number;
  readonly running: boolean;
}

/** `fetch`, limited to the granted hosts. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
