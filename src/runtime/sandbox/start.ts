/** Starts a confined command by Node's own spawn: for use without the process layer (probes, the command line, tests). */
import { spawn } from "node:child_process";
import type { ChildProcess, StdioOptions } from "node:child_process";
import type { Writable } from "node:stream";
import { CallError } from "../../base/error.ts";
import type { ConfinedCommand, Ending } from "./backend.ts";

export interface StartOptions {
  /** For the command's input, output and errors. */
  readonly stdio?: "pipe" | "inherit" | "ignore";
}

export function startConfined(command: ConfinedCommand, { stdio = "pipe" }: StartOptions = {}): ChildProcess {
  if (command.landlock !== undefined)
    throw new CallError("no_sandbox", "a Landlock sandbox is applied by the launcher, not by a plain spawn");
  const [program = "", ...args] = command.argv;
  const slots: ("pipe" | "inherit" | "ignore")[] = [stdio === "pipe" ? "ignore" : stdio, stdio, stdio];
  for (const { fd } of command.fds ?? []) slots[fd] = "pipe";
  const child = spawn(program, args, {
    cwd: command.cwd,
    env: command.env,
    stdio: Array.from(slots, (slot) => slot ?? "ignore") as StdioOptions,
    ...(command.uid === undefined ? {} : { uid: command.uid }),
    ...(command.gid === undefined ? {} : { gid: command.gid }),
  });
  for (const { fd, data } of command.fds ?? []) {
    const slot = child.stdio[fd] as Writable | null | undefined; // asked for as a pipe above, hence writable
    slot?.on("error", () => {}); // the program may end without reading it
    slot?.end(data);
  }
  return child;
}

export interface Finished extends Ending {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it to its end. A program that cannot be started ends with exit code 127. */
export function runConfined(command: ConfinedCommand, timeoutMs = 10_000): Promise<Finished> {
  return new Promise((resolve) => {
    const output = { stdout: "", stderr: "" };
    const done = (exitCode: number | null, signal: string | null) => {
      clearTimeout(timer);
      resolve({ ...output, exitCode, signal });
    };
    const child = startConfined(command);
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
    child.once("error", () => done(127, null));
    child.once("close", done);
  });
}
