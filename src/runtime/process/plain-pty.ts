/** A terminal without the launcher: `@lydell/node-pty` where it is installed, else util-linux's `script`. */
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { createRequire } from "node:module";
import type { Writable } from "node:stream";
import type { TerminalSize } from "../../spec/capability.ts";
import { readSandboxStatus } from "./sandbox-status.ts";
import type { Child, ChildEnd, Confined, Sink } from "./child.ts";
import { StartError } from "./child.ts";
import { findTree, isReadingInput, killTree, send } from "./tree.ts";
import type { Tree } from "./tree.ts";

/** The part of node-pty that we use. It is not a dependency, so its types are not available. */
interface NodePty {
  spawn(
    file: string,
    args: string[],
    options: object,
  ): {
    readonly pid: number;
    readonly _pty?: string;
    onData(listener: (data: string | Buffer) => void): void;
    onExit(listener: (end: { exitCode: number; signal?: number }) => void): void;
    write(data: string): void;
    resize(columns: number, rows: number): void;
  };
}

export async function startPty(launch: Confined, size: TerminalSize, sink: Sink, mark: string): Promise<Child> {
  if (launch.fds?.length) return startScript(launch, size, sink, mark); // node-pty cannot pass on other descriptors
  const pty = loadNodePty();
  return pty ? startNodePty(pty, launch, size, sink, mark) : startScript(launch, size, sink, mark);
}

function loadNodePty(): NodePty | undefined {
  try {
    return createRequire(import.meta.url)("@lydell/node-pty") as NodePty;
  } catch {
    return undefined; // optional: not installed, or none for this platform
  }
}

function startNodePty(pty: NodePty, launch: Confined, size: TerminalSize, sink: Sink, mark: string): Child {
  const [program = "", ...args] = launch.argv;
  const terminal = pty.spawn(program, args, {
    cwd: launch.cwd,
    env: launch.env,
    cols: size.columns,
    rows: size.rows,
    encoding: null,
  });
  // Before libuv 1.52.1 the last bytes are lost when the other side hangs up; holding it open keeps them.
  const held = terminal._pty && process.platform === "linux" ? openSync(terminal._pty, "r+") : undefined;
  const tree: Tree = { pid: terminal.pid, mark };
  let lastData = 0;
  terminal.onData((data) => {
    lastData = performance.now();
    sink.onOutput("stdout", Buffer.from(data));
  });
  const ended = new Promise<ChildEnd>((resolve) => {
    terminal.onExit(({ exitCode, signal }) => {
      const drained = () => {
        if (performance.now() - lastData < 50) return void setTimeout(drained, 20);
        if (held !== undefined) closeSync(held);
        killTree(tree);
        resolve({ exitCode: signal ? 128 + signal : exitCode, signal: null, heldOpen: false });
      };
      setTimeout(drained, 20);
    });
  });
  return {
    ended,
    write: (data) => terminal.write(typeof data === "string" ? data : Buffer.from(data).toString("utf8")),
    endInput: () => terminal.write("\u0004"),
    resize: ({ columns, rows }) => terminal.resize(columns, rows),
    signal: (name) => void send(-tree.pid, name),
    kill: () => void killTree(tree),
    more() {},
    isWaiting: async () => isReadingInput(findTree(tree)),
  };
}

/** `script` gives the command a terminal of its own and pumps it to pipes. It cannot be resized. */
function startScript(launch: Confined, size: TerminalSize, sink: Sink, mark: string): Promise<Child> {
  const words = launch.sandbox.startsWith("bwrap") ? inFront(launch.argv) : launch.argv;
  const line = `stty rows ${size.rows} cols ${size.columns} 2>/dev/null; exec ${words.map(quote).join(" ")}`;
  const fds = launch.fds ?? [];
  const stdio: ("pipe" | "ignore")[] = ["pipe", "pipe", "pipe"];
  const handedOn = [...fds.map(({ fd }) => fd), ...(launch.statusFd === undefined ? [] : [launch.statusFd])];
  for (const fd of handedOn) {
    while (stdio.length <= fd) stdio.push("ignore");
    stdio[fd] = "pipe";
  }
  const child = spawn("script", ["-qefc", line, "/dev/null"], {
    cwd: launch.cwd,
    env: { ...launch.env, SHELL: "/bin/sh" },
    detached: true,
    stdio,
  });
  for (const { fd, data } of fds) (child.stdio[fd] as Writable | null)?.on("error", () => {}).end(data);
  return new Promise((resolve, reject) => {
    child.once("error", () =>
      reject(
        new StartError(
          "tty",
          "ENOENT",
          "no terminal can be made here: neither the launcher, nor @lydell/node-pty, nor `script` is there",
        ),
      ),
    );
    child.once("spawn", () => {
      const tree: Tree = { pid: child.pid!, mark };
      child.stdin?.on("error", () => {});
      const status = readSandboxStatus(child, launch, (bytes) => sink.onOutput("stdout", bytes));
      child.stdout?.on("data", status.take);
      child.stderr?.on("data", status.take);
      const ended = new Promise<ChildEnd>((done, fail) => {
        child.once("close", (exitCode, signal) => {
          killTree(tree);
          const failure = status.end(exitCode);
          if (failure === undefined) done({ exitCode, signal, heldOpen: false });
          else fail(failure);
        });
      });
      resolve({
        ended,
        write: (data) => void child.stdin?.write(data),
        endInput: () => void child.stdin?.end(),
        resize() {},
        signal: (name) => signalForeground(tree, name),
        kill: () => void killTree(tree),
        more() {},
        isWaiting: async () => isReadingInput(findTree(tree)),
      });
    });
  });
}

/**
 * Ctrl-C goes to every process of the foreground group. Bubblewrap would end with it, and take the
 * sandbox along. A bash with job control inside puts the command into a foreground group of its own.
 * Other shells complain at their end that the group before theirs is outside the sandbox.
 */
function inFront(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf("--");
  if (end < 0 || !existsSync(bash)) return argv;
  const shell = [bash, "-c", 'set -m; "$@"; exit $?', "bash"];
  return [...argv.slice(0, end + 1), ...shell, ...argv.slice(end + 1)];
}

const bash = "/bin/bash";

/** The command has its own session below `script`. */
function signalForeground(tree: Tree, name: NodeJS.Signals): void {
  for (const pid of findTree(tree)) if (pid !== tree.pid) send(pid, name);
}

function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
