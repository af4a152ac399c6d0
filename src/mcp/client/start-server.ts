/** A stdio server's process: its environment, its sandbox, and the guarantee that it does not outlive us. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { commandEnvironment } from "../../runtime/environment.ts";
import type { Sandbox } from "../../runtime/sandbox/backend.ts";
import { findProgram } from "../../runtime/sandbox/machine.ts";
import { startConfined } from "../../runtime/sandbox/sandbox.ts";
import type { Grant } from "../../spec/access.ts";
import type { ServerConfig, StdioConfig } from "../config.ts";

/** Where and how a server's process is started. */
export interface StartContext {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly sandbox?: Sandbox;
  /** What a server under the sandbox may touch. */
  readonly grant?: Grant;
}

export async function startServer(
  config: ServerConfig & { readonly transport: StdioConfig },
  context: StartContext,
): Promise<ChildProcess> {
  const { command, args, env: own, envNames, cwd = context.cwd } = config.transport;
  const taken = Object.fromEntries(
    envNames.flatMap((name) => (context.env[name] === undefined ? [] : [[name, context.env[name]]])),
  );
  const env = { ...commandEnvironment(context.env, { inherit: "core" }), ...taken, ...own };
  // Reported here in our own words, because the program that starts it would name itself.
  if (!isStartable(command, env, cwd)) throw new Error(`there is no program '${command}' on this machine (PATH)`);
  if (config.sandbox) {
    // Never weakened silently: a server that was to be confined does not run unconfined.
    if (!context.sandbox || !context.grant) throw new Error("its settings say 'sandbox', and there is none here");
    const confined = await context.sandbox.confine({
      argv: [command, ...args],
      cwd,
      env,
      grant: { ...context.grant, confined: true },
    });
    return startConfined(confined, { stdio: "pipe", input: true });
  }
  const [program, ...words] = await tieToUs([command, ...args], context);
  const child = spawn(program!, words, {
    cwd,
    env,
    stdio: ["pipe", "pipe", "pipe"],
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  endWithUs(child);
  return child;
}

function isStartable(command: string, env: Readonly<Record<string, string | undefined>>, cwd: string): boolean {
  // Windows has further rules for finding programs.
  if (process.platform === "win32") return true;
  return command.includes("/") ? existsSync(resolve(cwd, command)) : findProgram(command, env) !== undefined;
}

/** For the whole process: one listener, however many servers there are. */
const running = new Set<ChildProcess>();

/** For an unexpected end: whatever still runs then is killed with its group. */
function endWithUs(child: ChildProcess): void {
  if (running.size === 0) process.on("exit", killRunning);
  running.add(child);
  child.once("exit", () => {
    running.delete(child);
    if (running.size === 0) process.off("exit", killRunning);
  });
}

function killRunning(): void {
  for (const { pid } of running) {
    try {
      if (pid !== undefined) process.kill(process.platform === "win32" ? pid : -pid, "SIGKILL");
    } catch {
      // It is gone already.
    }
  }
}

/**
 * On Linux, a separate process namespace ends the server and everything it started when we end, even
 * by SIGKILL. Bubblewrap makes it, or else util-linux. If neither can, its input is closed and its
 * group is killed on exit.
 */
async function tieToUs(argv: readonly string[], { env, sandbox }: StartContext): Promise<readonly string[]> {
  if (process.platform !== "linux") return argv;
  const bwrap = findProgram("bwrap", env);
  const works = bwrap !== undefined && (await sandbox?.confinement())?.name.startsWith("bwrap");
  if (works)
    return [bwrap, "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--die-with-parent", "--", ...argv];
  const setpriv = findProgram("setpriv", env);
  if (setpriv === undefined) return argv;
  const dieWithUs = [setpriv, "--pdeathsig", "KILL", "--"];
  const namespace = await ownNamespace(findProgram("unshare", env));
  return [...dieWithUs, ...namespace, ...argv];
}

/** The words before a command that give it a process namespace. Empty if that is not allowed. */
async function ownNamespace(unshare: string | undefined): Promise<readonly string[]> {
  if (unshare === undefined) return [];
  const asUser = process.getuid?.() === 0 ? [] : ["--user", "--map-current-user"];
  const words = [...asUser, "--pid", "--fork", "--kill-child", "--mount-proc", "--"];
  const isAllowed = await new Promise<boolean>((done) => {
    const child = spawn(unshare, [...words, "true"], { stdio: "ignore" });
    child.once("error", () => done(false));
    child.once("exit", (code) => done(code === 0));
  });
  return isAllowed ? [unshare, ...words] : [];
}
