/** Commands through Node's own child_process: works everywhere, forks the whole Node process for each. */
import { spawn } from "node:child_process";
import type { ChildProcess, StdioOptions } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Writable } from "node:stream";
import type { Child, ChildEnd, Launch, Spawner } from "./child.ts";
import { checkCwd, StartError } from "./child.ts";
import { startPty } from "./plain-pty.ts";
import { findTree, isReadingInput, killTree, signalTree, treeMark } from "./tree.ts";
import type { Tree } from "./tree.ts";

export function createPlainSpawner(): Spawner {
  const running = new Set<Child>();

  async function start(launch: Launch): Promise<Child> {
    checkCwd(launch.cwd);
    if (launch.landlock || launch.shelter)
      throw new StartError("sandbox", "ENOSYS", "this sandbox needs the launcher, which is not there");
    const mark = randomBytes(8).toString("hex");
    const marked = { ...launch, env: { ...launch.env, [treeMark]: mark } };
    const child = launch.tty ? await startPty(marked, launch.tty, mark) : await startPipes(marked, mark);
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

async function startPipes(launch: Launch, mark: string): Promise<Child> {
  const process = await spawned(launch);
  const tree: Tree = { pid: process.pid!, mark };
  for (const { fd, data } of launch.fds ?? []) {
    const slot = process.stdio[fd] as Writable | null; // asked for as a pipe, hence writable
    slot?.on("error", () => {}); // the program may end without reading it
    slot?.end(data);
  }
  process.stdout?.on("data", (bytes: Buffer) => launch.onOutput("stdout", bytes));
  process.stderr?.on("data", (bytes: Buffer) => launch.onOutput("stderr", bytes));
  process.stdin?.on("error", () => {}); // the command may end before it has read everything
  return {
    ended: endOf(process, tree, launch.graceMs),
    write: (data) => void process.stdin?.write(data),
    endInput: () => void process.stdin?.end(),
    resize() {}, // a pipe has no size
    signal: (name) => signalTree(tree, name),
    kill: () => void killTree(tree),
    more() {}, // everything is handed over as it comes
    isWaiting: async () => isReadingInput(findTree(tree)),
  };
}

function spawned(launch: Launch): Promise<ChildProcess> {
  const [program = "", ...args] = launch.argv;
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => reject(toStartError(error, program));
    try {
      const child = spawn(program, args, {
        cwd: launch.cwd,
        env: launch.env,
        detached: true, // a session and group of its own: it can be killed as one, and no terminal of ours is in reach
        stdio: stdioOf(launch),
        windowsHide: true,
        ...(launch.uid === undefined ? {} : { uid: launch.uid }),
        ...(launch.gid === undefined ? {} : { gid: launch.gid }),
      });
      child.once("error", fail);
      child.once("spawn", () => resolve(child));
    } catch (error) {
      fail(error); // a NUL byte, an empty name
    }
  });
}

function stdioOf(launch: Launch): StdioOptions {
  const stdio: ("ignore" | "pipe")[] = [launch.stdin === "pipe" ? "pipe" : "ignore", "pipe", "pipe"];
  for (const { fd } of launch.fds ?? []) {
    while (stdio.length <= fd) stdio.push("ignore");
    stdio[fd] = "pipe";
  }
  return stdio;
}

/** Never waits for 'close' alone: a background process may hold the pipes for ever. */
function endOf(child: ChildProcess, tree: Tree, graceMs: number): Promise<ChildEnd> {
  return new Promise((resolve) => {
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
        killTree(tree); // the pipes end with their last writer, so that what is in them still arrives
        timer = setTimeout(() => {
          child.stdout?.destroy();
          child.stderr?.destroy();
        }, 200);
      }, graceMs);
    });
    child.once("close", () => {
      clearTimeout(timer);
      // Whoever closed the output and went into the background is ended too, off the caller's way.
      setImmediate(() => killTree(tree)).unref();
      resolve({ ...end, heldOpen });
    });
  });
}

function toStartError(error: unknown, program: string): StartError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "EINVAL";
  const reason =
    code === "ENOENT"
      ? "no such program"
      : code === "EACCES"
        ? "not executable"
        : code === "E2BIG"
          ? "the arguments are too long"
          : code;
  return new StartError("exec", code, `cannot run ${JSON.stringify(program)}: ${reason}`);
}
