/** What every command prints with, and how its endings become exit codes. `cli/` is the only folder that prints. */
import { fstatSync, statSync, writeSync } from "node:fs";

/** 0 done · 1 ended in an error · 2 bad usage or config · 3 refused or nobody could approve · 130 interrupted. */
export const exitCodes = { done: 0, failed: 1, usage: 2, refused: 3, interrupted: 130 } as const;

/** A user's mistake: one line on stderr, exit code 2 (or the given one), no stack trace. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly exitCode: number;
  constructor(message: string, exitCode: number = exitCodes.usage) {
    super(message);
    this.exitCode = exitCode;
  }
}

export function print(line: string): void {
  write("stdout", `${line}\n`);
}

export function printJson(value: unknown, pretty = true): void {
  print(pretty ? JSON.stringify(value, null, 2) : JSON.stringify(value));
}

export function say(line: string): void {
  write("stderr", `${line}\n`);
}

type OutputName = "stdout" | "stderr";

const descriptors = { stdout: 1, stderr: 2 } as const;
/** Outputs of which nobody has asked for Node's stream yet. */
const unopened = new Map<OutputName, (error: NodeJS.ErrnoException) => void>();

/**
 * Has Node open its streams for our output when they are first asked for, each with somebody who is told when it breaks:
 * loading streams takes longer than making most lists. What is printed before that goes straight to the descriptor.
 */
export function openOutputsLate(
  whenBroken: Readonly<Record<OutputName, (error: NodeJS.ErrnoException) => void>>,
): void {
  for (const name of ["stdout", "stderr"] as const) {
    const own = Object.getOwnPropertyDescriptor(process, name)!;
    const open = (): NodeJS.WriteStream => {
      unopened.delete(name);
      Object.defineProperty(process, name, own);
      return process[name].on("error", whenBroken[name]);
    };
    unopened.set(name, whenBroken[name]);
    Object.defineProperty(process, name, { configurable: true, enumerable: true, get: open });
  }
}

/** Whether a person looks at what is printed. */
export function isTerminal(): boolean {
  const output = fstatSync(descriptors.stdout);
  // A terminal is such a device, and so are others, which only Node's stream can tell from it. The most usual one we know.
  if (!output.isCharacterDevice() || output.rdev === statSync("/dev/null", { throwIfNoEntry: false })?.rdev)
    return false;
  return process.stdout.isTTY;
}

/** Calls back when everything that was printed has been handed to the system, or never if it cannot be. */
export function whenPrinted(done: () => void): void {
  if (unopened.has("stdout")) done();
  else process.stdout.write("", (error) => (error ? undefined : done()));
}

export function write(name: OutputName, text: string): void {
  const whenBroken = unopened.get(name);
  const rest = whenBroken === undefined ? text : writeNow(descriptors[name], text, whenBroken);
  if (rest.length > 0) process[name].write(rest);
}

/** What could not be written without waiting: somebody has set a pipe to not block, and its reader is slow. */
function writeNow(
  descriptor: number,
  text: string,
  whenBroken: (error: NodeJS.ErrnoException) => void,
): Uint8Array | string {
  let rest = Buffer.from(text);
  try {
    while (rest.length > 0) rest = rest.subarray(writeSync(descriptor, rest));
  } catch (error) {
    // Only the system throws here.
    const failure = error as NodeJS.ErrnoException;
    if (failure.code === "EAGAIN") return rest;
    whenBroken(failure);
  }
  return "";
}

/** Runs a command's body. This is the only place where errors become exit codes. */
export async function runCommand(body: () => Promise<number | void>): Promise<void> {
  try {
    process.exitCode = (await body()) ?? exitCodes.done;
  } catch (error) {
    // It may contain names that anybody chose: of a file, a server, a model.
    const { visible } = await import("./chat/visible.ts");
    say(visible(`callgate: ${error instanceof Error ? error.message : String(error)}`));
    // It is a fault of ours: one line for the user, and the stack only for whoever asks for it.
    const isFault = !(error instanceof UsageError);
    if (isFault && process.env["CALLGATE_DEBUG"] && error instanceof Error) say(visible(error.stack ?? ""));
    process.exitCode = isFault ? exitCodes.failed : error.exitCode;
  }
}

/** All of stdin as text. A person at a terminal is told that we wait for them. */
export async function readStdin(): Promise<string> {
  if (process.stdin.isTTY) say("callgate: reads what you type; ctrl-d on an empty line ends it");
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

/** `-` is stdin, anything else a file (`@FILE` allowed). */
export async function readInput(argument: string | undefined): Promise<string> {
  if (argument === undefined || argument === "-") return readStdin();
  const { readFile } = await import("node:fs/promises");
  const path = argument.startsWith("@") ? argument.slice(1) : argument;
  return readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(unreadable(path, error));
  });
}

/** What is said about a file that could not be read. */
export function unreadable(path: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return `there is no file ${path}`;
  if (code === "EISDIR") return `${path} is a folder, and a file is needed`;
  if (code === "EACCES" || code === "EPERM") return `${path} cannot be read: this user may not (${code})`;
  return `cannot read ${path}: ${code ?? String(error)}`;
}
