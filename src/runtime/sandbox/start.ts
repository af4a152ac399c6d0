/** Starts a confined command by Node's own spawn: for use without the process layer (probes, the command line, tests). */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Writable } from "node:stream";
import { defined } from "../../base/json.ts";
import { CallError } from "../../base/error.ts";
import { launcherPath } from "../process/launcher-path.ts";
import { encodeLaunch } from "../process/launcher-protocol.ts";
import type { ConfinedCommand, Ending, LandlockRuleset } from "./backend.ts";

export interface StartOptions {
  /** For the command's input, output and errors. */
  readonly stdio?: "pipe" | "inherit" | "ignore";
  /** With `pipe`: its input stays open, for a program that is talked to. */
  readonly input?: boolean;
}

export function startConfined(
  command: ConfinedCommand,
  { stdio = "pipe", input = false }: StartOptions = {},
): ChildProcess {
  if (command.landlock !== undefined) return startConfined(byLauncher(command, command.landlock), { stdio, input });
  const [program = "", ...args] = command.argv;
  const slots: ("pipe" | "inherit" | "ignore")[] = [stdio === "pipe" && !input ? "ignore" : stdio, stdio, stdio];
  for (const { fd } of command.fds ?? []) slots[fd] = "pipe";
  const child = spawn(program, args, {
    cwd: command.cwd,
    env: command.env,
    stdio: Array.from(slots, (slot) => slot ?? "ignore"),
    ...defined({ uid: command.uid, gid: command.gid }),
  });
  for (const { fd, data } of command.fds ?? []) {
    const slot = child.stdio[fd] as Writable | null | undefined; // asked for as a pipe above, hence writable
    slot?.on("error", () => {}); // the program may end without reading it
    slot?.end(data);
  }
  return child;
}

/** The launcher reads the whole request from a descriptor, confines itself and becomes the command. */
function byLauncher({ landlock: _applied, ...command }: ConfinedCommand, landlock: LandlockRuleset): ConfinedCommand {
  const launcher = launcherPath();
  if (launcher === undefined)
    throw new CallError("no_sandbox", "a Landlock sandbox is applied by the launcher, and there is none");
  const { argv, cwd, env } = command;
  const nothing = { liveBytes: 0, tailBytes: 0, graceMs: 0, onOutput() {}, onDropped() {} };
  return {
    ...command,
    argv: [launcher, "once", "3"],
    fds: [{ fd: 3, data: encodeLaunch({ argv, cwd, env, landlock, ...nothing }) }],
  };
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
