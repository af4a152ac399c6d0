/**
 * A server as our child, with one JSON message per line. The server and everything it starts end when
 * we end, whatever ends us.
 */
import type { ChildProcess } from "node:child_process";
import type { Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { floodWindowMs, maxMessageBytes, maxMessages, tooLong, tooMany } from "./limits.ts";

const stderrTailChars = 4_000;
const answersPerRequest = 10;

export interface StdioTransport extends Transport {
  /** The end of its stderr, which is the best hint why it did not start. */
  stderrTail(): string;
}

/** `start` gives a child in its own process group, with pipes. */
export function createStdioTransport(start: () => Promise<ChildProcess>, now = Date.now): StdioTransport {
  let child: ChildProcess | undefined;
  let tail = "";
  let closed = false;
  /** Whether it ever sent anything. If not, it has nothing to finish. */
  let heard = false;
  let window = { since: 0, count: 0 };
  /** What all messages wait for while the server reads more slowly than we write. */
  let draining: Promise<void> | undefined;

  const transport: StdioTransport = {
    stderrTail: () => tail.trim(),
    async start() {
      const started = await start();
      child = started;
      started.stderr?.setEncoding("utf8").on("data", (text: string) => (tail = (tail + text).slice(-stderrTailChars)));
      started.stdin?.on("error", (error) => transport.onerror?.(error));
      started.on("error", (error) => end(error));
      started.on("exit", () => end());
      readLines(
        started,
        (line) => receive(line),
        (error) => void fail(error),
      );
      await new Promise<void>((resolve, reject) => {
        started.once("spawn", resolve);
        started.once("error", reject);
      });
    },
    async send(message) {
      if (closed || !child?.stdin?.writable) throw new Error("the server is gone");
      const { stdin } = child;
      // However fast we ask, the answers to our requests, with their progress, must not count as a flood.
      window.count = Math.max(0, window.count - answersPerRequest);
      if (stdin.write(`${JSON.stringify(message)}\n`)) return;
      draining ??= untilDrained(child, stdin).finally(() => (draining = undefined));
      await draining;
    },
    async close() {
      if (child) {
        await stopTree(child, heard);
        await allHeard(child);
      }
      end();
    },
  };

  function receive(line: string): void {
    if (line.trim() === "") return;
    heard = true;
    if (closed || floods()) return;
    try {
      // The protocol layer validates the message; here it is only a line of JSON.
      transport.onmessage?.(JSON.parse(line) as JSONRPCMessage);
    } catch (error) {
      transport.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }
  function floods(): boolean {
    if (window.count++ === 0 || now() - window.since > floodWindowMs) window = { since: now(), count: 1 };
    if (window.count <= maxMessages) return false;
    if (window.count === maxMessages + 1) {
      child?.stdout?.destroy();
      void fail(new Error(tooMany));
    }
    return true;
  }
  async function fail(error: Error): Promise<void> {
    transport.onerror?.(error);
    await transport.close();
  }
  function end(error?: Error): void {
    if (closed) return;
    closed = true;
    if (error) transport.onerror?.(error);
    transport.onclose?.();
  }
  return transport;
}

/** Neither listener stays behind, because a server that reads slowly is waited for many times. */
function untilDrained(child: ChildProcess, stdin: Writable): Promise<void> {
  return new Promise((resolve, reject) => {
    const drained = () => {
      child.off("exit", gone);
      resolve();
    };
    const gone = () => {
      stdin.off("drain", drained);
      reject(new Error("the server is gone"));
    };
    stdin.once("drain", drained);
    child.once("exit", gone);
  });
}

function readLines(child: ChildProcess, onLine: (line: string) => void, onError: (error: Error) => void): void {
  let pieces: string[] = [];
  let length = 0;
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    let from = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", from)) {
      onLine(pieces.join("") + text.slice(from, end));
      pieces = [];
      length = 0;
      from = end + 1;
    }
    if (from === text.length) return;
    pieces.push(text.slice(from));
    length += text.length - from;
    if (length > maxMessageBytes) {
      // The rest cannot be a message either, so nothing more is read.
      pieces = [];
      child.stdout?.destroy();
      onError(new Error(tooLong));
    }
  });
}

const politeMs = 1_000;
const hastyMs = 100;

/** Closes its input, which ends a well-behaved server; then asks it to end; then kills the whole group. */
async function stopTree(child: ChildProcess, patient: boolean): Promise<void> {
  const gone = new Promise<void>((resolve) =>
    child.exitCode !== null || child.signalCode !== null ? resolve() : child.once("exit", () => resolve()),
  );
  child.stdin?.end();
  if (!patient) killGroup(child, "SIGTERM");
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    const waited = new Promise((resolve) => setTimeout(resolve, patient ? politeMs : hastyMs, "late").unref());
    if ((await Promise.race([gone, waited])) !== "late") break;
    killGroup(child, signal);
  }
  // Even if it ended by itself, what it started may still be running.
  killGroup(child, "SIGKILL");
}

/** A process may be gone before its last output was read, and a child of it may keep the pipe open for ever. */
async function allHeard({ stderr }: ChildProcess): Promise<void> {
  if (stderr === null || stderr.closed) return;
  await new Promise<void>((resolve) => {
    const late = setTimeout(resolve, hastyMs);
    stderr.once("close", () => {
      clearTimeout(late);
      resolve();
    });
  });
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The group is gone already.
  }
}
