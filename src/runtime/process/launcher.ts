/**
 * Runs commands through native/launcher.c: one small process that starts them, keeps sandboxes ready
 * and lets nothing survive.
 */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { defined } from "../../base/json.ts";
import type { StartedPrograms } from "../../spec/capability.ts";
import type { Child, ChildEnd, Confined, Sink, Spawner } from "./child.ts";
import { StartError } from "./child.ts";
import {
  createFrameReader,
  createSurroundings,
  decodeEnd,
  decodeFailure,
  decodePrograms,
  encodeFrame,
  encodeLaunch,
  encodeWrapper,
  signalNumber,
} from "./launcher-protocol.ts";
import type { Frame } from "./launcher-protocol.ts";

export interface LauncherOptions {
  readonly path: string;
  /** How many sandboxes are kept ready for each wrapper. */
  readonly ahead?: number;
}

/** One command that the launcher was given. */
interface Running {
  readonly launch: Confined;
  readonly sink: Sink;
  resolve(end: ChildEnd): void;
  fail(error: StartError): void;
  /** Callers that asked whether it waits for input, oldest first. */
  readonly asked: ((waiting: boolean) => void)[];
  /** The programs it started, as far as they were reported. */
  programs?: StartedPrograms;
}

interface Connection {
  readonly process: ChildProcess;
  readonly running: Map<number, Running>;
  send(type: string, id: number, body?: Uint8Array): void;
  add(id: number, running: Running): void;
  destroy(): void;
}

export function createLauncherSpawner({ path, ahead = 3 }: LauncherOptions): Spawner {
  let connection: Connection | undefined;
  let nextId = 1;
  let last: { readonly launch: Confined; readonly bytes: Buffer } | undefined;

  const surroundings = createSurroundings();

  /** Most commands of a session have the same sandbox, which is written once. */
  function encodeSandbox(launch: Confined): Buffer {
    if (last !== undefined && isSameSandbox(last.launch, launch)) return last.bytes;
    const bytes = encodeWrapper(launch, ahead);
    last = { launch, bytes };
    return bytes;
  }

  /** The running launcher, or a new one, because it may have been killed. */
  function connect(): Connection {
    return (connection ??= open(path, () => (connection = undefined)));
  }

  return {
    name: "launcher",
    async start(launch, sink) {
      const wrapper = launch.wrapper && encodeSandbox(launch);
      const request = encodeLaunch(launch, sink, wrapper, surroundings(launch));
      const to = connect();
      const id = nextId++;
      const child = createChild(to, id, launch, sink);
      to.send("S", id, request);
      return child;
    },
    prepare(launch) {
      const to = connect();
      if (launch?.wrapper && launch.reusable === true) to.send("P", 0, encodeSandbox(launch));
    },
    async close() {
      const last = connection;
      if (!last) return;
      connection = undefined;
      const { process } = last;
      const exited = new Promise((done) => process.once("exit", done));
      last.destroy(); // when its socket closes, the launcher ends everything it started
      process.ref();
      if (process.exitCode === null && process.signalCode === null) await exited;
    },
  };
}

function createChild(to: Connection, id: number, launch: Confined, sink: Sink): Child {
  const asked: Running["asked"] = [];
  const ended = new Promise<ChildEnd>((resolve, fail) => to.add(id, { launch, sink, resolve, fail, asked }));
  const isOver = () => !to.running.has(id);
  return {
    ended,
    write: (data) => to.send("I", id, typeof data === "string" ? Buffer.from(data) : data),
    endInput: () => to.send("E", id),
    resize: ({ columns, rows }) => to.send("R", id, Buffer.from(Uint16Array.of(columns, rows).buffer)),
    signal: (name) => to.send("G", id, Buffer.of(signalNumber(name))),
    kill: () => to.send("K", id),
    more: (bytes) => to.send("M", id, Buffer.from(Uint32Array.of(bytes).buffer)),
    isWaiting: () =>
      new Promise((answer) => {
        if (isOver()) return answer(false);
        asked.push(answer);
        to.send("Q", id);
      }),
  };
}

function open(path: string, onClose: () => void): Connection {
  const process = spawn(path, ["serve"], {
    // If it inherited ours, they would stay open for a program that reads them to the end.
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    detached: true, // a Ctrl-C for us is not meant for the launcher
    cwd: "/",
    env: {},
  });
  const socket = process.stdio[3] as Socket; // a pipe of ours, which is a socket underneath
  const running = new Map<number, Running>();
  let closed = false;

  function close(reason: string): void {
    if (closed) return;
    closed = true;
    onClose();
    const left = [...running.values()];
    running.clear();
    for (const { fail, asked } of left) {
      for (const answer of asked) answer(false);
      fail(new StartError("launcher", "launcher", `the launcher ended before the command did (${reason})`));
    }
  }

  process.once("error", (error) => close("code" in error ? String(error.code) : error.name));
  process.once("exit", (code, signal) => close(signal ?? `exit ${code}`));
  socket.on(
    "data",
    createFrameReader((frame) => onFrame(running, frame, () => running.size === 0 && socket.unref())),
  );
  socket.once("close", () => close("its socket closed"));
  socket.on("error", () => {}); // 'close' follows
  process.unref();
  socket.unref();

  return {
    process,
    running,
    send: (type, id, body) => void (closed || socket.write(encodeFrame(type, id, body))),
    add(id, command) {
      running.set(id, command);
      socket.ref(); // a running command keeps Node alive; an idle launcher does not
      if (closed) close("it could not be started");
    },
    destroy: () => void socket.destroy(),
  };
}

function onFrame(running: Map<number, Running>, { type, id, body }: Frame, onIdle: () => void): void {
  const command = running.get(id);
  if (!command) return;
  const { launch, sink, asked } = command;
  switch (type) {
    case "o":
      return sink.onOutput("stdout", body);
    case "e":
      return sink.onOutput("stderr", body);
    case "k":
      return sink.onKept?.(Number(body.readBigUInt64LE(0)));
    case "d":
      return sink.onDropped(
        body[0] === 1 ? "stderr" : "stdout",
        Number(body.readBigUInt64LE(1)),
        Number(body.readBigUInt64LE(9)),
      );
    case "q":
      return asked.shift()?.(body[0] === 1);
    case "p":
      command.programs = decodePrograms(body, command.programs);
      return;
    case "x":
    case "f":
      running.delete(id);
      for (const answer of asked) answer(false);
      if (type === "x") command.resolve({ ...decodeEnd(body), ...defined({ programs: command.programs }) });
      else command.fail(decodeFailure(body, launch, command.programs));
      return onIdle();
  }
}

/** Whether `encodeWrapper` would write the same. */
function isSameSandbox(a: Confined, b: Confined): boolean {
  const [words = [], others = []] = [a.wrapper, b.wrapper];
  return (
    (words === others || (words.length === others.length && words.every((word, at) => word === others[at]))) &&
    a.stamp === b.stamp &&
    a.uid === b.uid &&
    a.gid === b.gid &&
    a.fds === b.fds &&
    a.reusable === b.reusable
  );
}
