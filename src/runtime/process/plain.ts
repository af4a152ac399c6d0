/**
 * Runs commands through Node's own child_process. It works everywhere, but forks the whole Node
 * process for each command.
 */
import { checkOptions, optionsShape } from "../../base/shape.ts";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Writable } from "node:stream";
import { CallError } from "../../base/error.ts";
import { defined } from "../../base/json.ts";
import type { Child, ChildEnd, Confined, Sink, Spawner } from "./child.ts";
import { cannotRun, checkCwd, StartError } from "./child.ts";
import { launcherPath } from "./launcher-path.ts";
import { encodeLaunch } from "./launcher-protocol.ts";
import { startPty } from "./plain-pty.ts";
import { readSandboxStatus } from "./sandbox-status.ts";
import type { SandboxStatus } from "./sandbox-status.ts";
import { findTree, isReadingInput, killTree, signalTree, treeMark } from "./tree.ts";
import type { Tree } from "./tree.ts";

export function createPlainSpawner(): Spawner {
  const running = new Set<Child>();

  async function start(launch: Confined, sink: Sink): Promise<Child> {
    checkCwd(launch.cwd);
    if (launch.landlock || launch.wrapper)
      throw new StartError("sandbox", "ENOSYS", "this sandbox needs the launcher, which is not there");
    const mark = randomBytes(8).toString("hex");
    const marked = { ...launch, env: { ...launch.env, [treeMark]: mark } };
    const child = launch.tty ? await startPty(marked, launch.tty, sink, mark) : await startPipes(marked, sink, mark);
    running.add(child);
    const forget = () => void running.delete(child);
    child.ended.then(forget, forget);
    return child;
  }

  return {
    name: "plain",
    start,
    prepare() {}, // nothing can be kept ready without the launcher
    async close() {
      for (const child of running) child.kill();
      await Promise.allSettled([...running].map((child) => child.ended));
    },
  };
}

async function startPipes(launch: Confined, sink: Sink, mark: string): Promise<Child> {
  const process = await spawned(launch);
  const tree: Tree = { pid: process.pid!, mark };
  process.stdout?.on("data", (bytes: Buffer) => sink.onOutput("stdout", bytes));
  const status = readSandboxStatus(process, launch, (bytes) => sink.onOutput("stderr", bytes));
  process.stderr?.on("data", status.take);
  process.stdin?.on("error", () => {}); // the command may end before it has read everything
  return {
    ended: endOf(process, tree, sink.graceMs, status),
    write: (data) => void process.stdin?.write(data),
    endInput: () => void process.stdin?.end(),
    resize() {}, // a pipe has no size
    signal: (name) => signalTree(tree, name),
    kill: () => void killTree(tree),
    more() {}, // everything is handed over as it comes
    isWaiting: async () => isReadingInput(findTree(tree)),
  };
}

function spawned(launch: Confined): Promise<ChildProcess> {
  const [program = ""] = launch.argv;
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => reject(toStartError(error, program));
    try {
      // It gets its own session and group, so that it can be killed as one and cannot reach a terminal of ours.
      const child = startConfined(launch, { input: launch.stdin !== undefined, detached: true });
      child.once("error", fail);
      child.once("spawn", () => resolve(child));
    } catch (error) {
      fail(error); // a NUL byte, an empty name
    }
  });
}

/** How a command is started. */
export interface StartOptions {
  /** What becomes of the command's input, output and errors. */
  readonly stdio?: "pipe" | "inherit" | "ignore";
  /** With `pipe`: its input stays open, for a program that is sent more later. */
  readonly input?: boolean;
  /** Starts it in a session of its own. */
  readonly detached?: boolean;
}

const startConfinedShape = optionsShape<StartOptions>({
  stdio: { oneOf: ["pipe", "inherit", "ignore"] },
  input: "boolean",
  detached: "boolean",
});

/**
 * Starts a confined command with Node's own spawn, without limits on time and output. Used for probes,
 * servers and the command line.
 */
export function startConfined(launch: Confined, options: StartOptions = {}): ChildProcess {
  checkOptions("startConfined", options, startConfinedShape);
  if (launch.landlock !== undefined) return startConfined(appliedByLauncher(launch), options);
  const { stdio = "pipe", input = false, detached = false } = options;
  const [program = "", ...args] = launch.argv;
  const slots: ("pipe" | "inherit" | "ignore")[] = [stdio === "pipe" && !input ? "ignore" : stdio, stdio, stdio];
  for (const { fd } of launch.fds ?? []) slots[fd] = "pipe";
  if (launch.statusFd !== undefined) slots[launch.statusFd] = "pipe";
  const child = spawn(program, args, {
    cwd: launch.cwd,
    env: launch.env,
    stdio: Array.from(slots, (slot) => slot ?? "ignore"),
    detached,
    windowsHide: true,
    ...defined({ uid: launch.uid, gid: launch.gid }),
  });
  for (const { fd, data } of launch.fds ?? []) {
    const slot = child.stdio[fd] as Writable | null | undefined; // asked for as a pipe above, hence writable
    slot?.on("error", () => {}); // the program may end without reading it
    slot?.end(data);
  }
  return child;
}

/** The launcher reads the whole request from a descriptor, confines itself and becomes the command. */
function appliedByLauncher({ landlock, uid, gid, ...launch }: Confined): Confined {
  const launcher = launcherPath();
  if (launcher === undefined)
    throw new CallError("no_sandbox", "a Landlock sandbox is applied by the launcher, and there is none");
  const { stdin: _written, tty: _opened, ...request } = { ...launch, ...defined({ landlock }) };
  const data = encodeLaunch(request, { liveBytes: 0, tailBytes: 0, graceMs: 0 });
  return { ...launch, argv: [launcher, "once", "3"], fds: [{ fd: 3, data }], ...defined({ uid, gid }) };
}

/** Does not wait for 'close' alone, because a background process may hold the pipes for ever. */
function endOf(child: ChildProcess, tree: Tree, graceMs: number, status: SandboxStatus): Promise<ChildEnd> {
  return new Promise((resolve, reject) => {
    let end: { readonly exitCode: number | null; readonly signal: NodeJS.Signals | null } = {
      exitCode: null,
      signal: null,
    };
    let heldOpen = false;
    let timer: NodeJS.Timeout | undefined;
    child.once("exit", (exitCode, signal) => {
      end = { exitCode, signal };
      timer = setTimeout(() => {
        heldOpen = true;
        killTree(tree); // the pipes end with their last writer, so what is still in them arrives
        timer = setTimeout(() => {
          child.stdout?.destroy();
          child.stderr?.destroy();
        }, 200);
      }, graceMs);
    });
    child.once("close", () => {
      clearTimeout(timer);
      // A process that closed the output and went into the background is ended too, without making the caller wait.
      setImmediate(() => killTree(tree)).unref();
      const failure = status.end(end.exitCode);
      if (failure === undefined) resolve({ ...end, heldOpen });
      else reject(failure);
    });
  });
}

function toStartError(error: unknown, program: string): StartError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "EINVAL";
  return new StartError("exec", code, cannotRun(program, code));
}
