/**
 * One command from start to end, with a spawner of the test's own: what it is told, when, and what is
 * left over when it has ended.
 */
import { once } from "node:events";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Child, ChildEnd, Sink, Spawner } from "../../../src/runtime/process/child.ts";
import { runToEnd } from "../../../src/runtime/process/run.ts";
import type { RunOptions } from "../../../src/runtime/process/run.ts";
import { createPlainSpawner } from "../../../src/runtime/process/plain.ts";
import { unconfined } from "./spawners.ts";

const end: ChildEnd = { exitCode: 0, signal: null, heldOpen: false };

/** A command that does what the test says. `told` is everything that was done to it. */
function scripted(script: (sink: Sink, finish: (how?: Partial<ChildEnd>) => void, told: string[]) => void = () => {}) {
  const told: string[] = [];
  let finish: (how?: Partial<ChildEnd>) => void = () => {};
  const ended = new Promise<ChildEnd>((resolve) => (finish = (how = {}) => resolve({ ...end, ...how })));
  const child: Child = {
    ended,
    write: (data) => void told.push(`write ${String(data)}`),
    endInput: () => void told.push("endInput"),
    resize: () => {},
    signal: (name) => void told.push(name),
    kill: () => {
      told.push("kill");
      finish({ exitCode: null, signal: "SIGKILL" });
    },
    more: () => {},
    isWaiting: async () => true,
  };
  const spawner: Spawner = {
    name: "plain",
    async start(_launch, sink) {
      setImmediate(() => script(sink, finish, told));
      return child;
    },
    prepare() {},
    async close() {},
  };
  return { spawner, told, child };
}

const launch = unconfined({ argv: ["x"], cwd: "/", env: {} });
const options = (more: Partial<RunOptions> = {}): RunOptions => ({
  maxOutputBytes: 1_000,
  onOutput: undefined,
  signal: new AbortController().signal,
  ...more,
});
const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe("a command's time", () => {
  test("that is up ends it, and whether it sat waiting for input is told", async () => {
    const { spawner, told } = scripted();
    const run = await runToEnd(spawner, { ...launch, limits: { timeoutMs: 10 } }, options());
    expect(run).toMatchObject({ timedOut: true, aborted: false, waitingForInput: true, signal: "SIGKILL" });
    expect(told).toEqual(["kill"]);
  });

  test("that is up ends it also where nobody can tell what it waits for", async () => {
    const { spawner, child } = scripted();
    const deaf: Spawner = {
      ...spawner,
      start: async () => ({ ...child, isWaiting: () => Promise.reject(new Error("gone")) }),
    };
    const run = await runToEnd(deaf, { ...launch, limits: { timeoutMs: 10 } }, options());
    expect(run).toMatchObject({ timedOut: true, waitingForInput: false });
  });

  test("that was long enough is forgotten: nothing is done to whoever has its number later", async () => {
    const { spawner, told } = scripted((_sink, finish) => finish());
    const run = await runToEnd(spawner, { ...launch, limits: { timeoutMs: 20 } }, options());
    await later(60);
    expect([run.timedOut, told]).toEqual([false, []]);
  });

  test("may be longer than a timer can be", async () => {
    const { spawner } = scripted((_sink, finish) => setTimeout(() => finish({ exitCode: 3 }), 20));
    const run = await runToEnd(spawner, { ...launch, limits: { timeoutMs: 2 ** 40 } }, options());
    expect(run).toMatchObject({ exitCode: 3, timedOut: false });
  });
});

describe("a caller who stops a command", () => {
  test("lets it end by itself first, and kills it when it does not", async () => {
    const stop = new AbortController();
    const { spawner, told } = scripted(() => stop.abort());
    const run = await runToEnd(spawner, launch, options({ signal: stop.signal }));
    expect(run).toMatchObject({ aborted: true, timedOut: false, signal: "SIGKILL" });
    expect(told).toEqual(["SIGTERM", "kill"]);
  });

  test("does not kill one that ended when it was asked to", async () => {
    const stop = new AbortController();
    const { spawner, told } = scripted((_sink, finish) => {
      stop.abort();
      finish({ exitCode: 143 });
    });
    const run = await runToEnd(spawner, launch, options({ signal: stop.signal }));
    await later(100);
    expect([run.aborted, run.exitCode, told]).toEqual([true, 143, ["SIGTERM"]]);
  });

  test("may have stopped it before it began", async () => {
    const { spawner, told } = scripted();
    const run = await runToEnd(spawner, launch, options({ signal: AbortSignal.abort() }));
    expect([run.aborted, told]).toEqual([true, ["SIGTERM", "kill"]]);
  });

  test("does nothing to a command that has ended", async () => {
    const stop = new AbortController();
    const { spawner, told } = scripted((_sink, finish) => finish());
    const run = await runToEnd(spawner, launch, options({ signal: stop.signal }));
    stop.abort();
    await later(70);
    expect([run.aborted, told]).toEqual([false, []]);
  });
});

describe("a command's input", () => {
  test("is written and closed; without one, nothing is", async () => {
    const given = scripted((_sink, finish) => finish());
    await runToEnd(given.spawner, { ...launch, stdin: "text" }, options());
    expect(given.told).toEqual(["write text", "endInput"]);
    const empty = scripted((_sink, finish) => finish());
    await runToEnd(empty.spawner, { ...launch, stdin: "" }, options());
    expect(empty.told).toEqual(["write ", "endInput"]);
    const none = scripted((_sink, finish) => finish());
    await runToEnd(none.spawner, launch, options());
    expect(none.told).toEqual([]);
  });

  test("stays open in a dialogue, in which every line can be answered", async () => {
    const { spawner, told } = scripted((sink, finish) => {
      sink.onOutput("stdout", Buffer.from("one\ntw"));
      sink.onOutput("stderr", Buffer.from("complaint\n"));
      sink.onOutput("stdout", Buffer.from("o\n"));
      finish();
    });
    const run = await runToEnd(
      spawner,
      { ...launch, stdin: "hello\n" },
      options({ onLine: (line, reply) => reply(`re: ${line}`) }),
    );
    expect(told).toEqual(["write hello\n", "write re: one", "write re: two"]);
    expect([run.stdout.totalBytes, run.stderr.head]).toEqual([0, "complaint\n"]);
  });
});

describe("a dialogue", () => {
  test("has the lines that were printed, however they came in pieces; what has no end is no line", async () => {
    const line = fc.string({ unit: fc.constantFrom("a", "é", "😀", " ", "\r"), maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 8 }), line, fc.array(fc.nat(200)), async (whole, rest, cuts) => {
        const bytes = Buffer.from(`${whole.map((one) => `${one}\n`).join("")}${rest}`);
        const seen: string[] = [];
        const { spawner } = scripted((sink, finish) => {
          const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
          for (const [index, from] of at.slice(0, -1).entries())
            sink.onOutput("stdout", bytes.subarray(from, at[index + 1]));
          finish();
        });
        await runToEnd(spawner, launch, options({ onLine: (one) => void seen.push(one) }));
        expect(seen).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  });

  test("ends with a command that says one line without end, or more than can be heard", async () => {
    const piece = Buffer.alloc(1024 * 1024, "x");
    const endless = scripted((sink) => {
      for (let n = 0; n < 17; n++) sink.onOutput("stdout", piece);
    });
    expect(await runToEnd(endless.spawner, launch, options({ onLine: () => {} }))).toMatchObject({
      signal: "SIGKILL",
    });
    const dropped = scripted((sink) => sink.onDropped("stdout", 10, 0));
    expect(await runToEnd(dropped.spawner, launch, options({ onLine: () => {} }))).toMatchObject({
      signal: "SIGKILL",
    });
    const complaining = scripted((sink, finish) => {
      sink.onDropped("stderr", 10, 2);
      finish();
    });
    const run = await runToEnd(complaining.spawner, launch, options({ onLine: () => {} }));
    expect(run).toMatchObject({ exitCode: 0, stderr: { droppedBytes: 10, lineBreaks: 2 } });
  });

  test("with a real program goes on for as many rounds as it takes", async () => {
    const spawner = createPlainSpawner();
    const script = 'read n; while [ "$n" -lt 40 ]; do echo $((n + 1)); read n; done; echo done >&2';
    const env = { PATH: process.env["PATH"] ?? "" };
    const argv = ["sh", "-c", script];
    const run = await runToEnd(
      spawner,
      unconfined({ argv, cwd: "/", env, stdin: "0\n" }),
      options({ onLine: (line, reply) => reply(`${line}\n`) }),
    );
    expect([run.exitCode, run.stderr.head]).toEqual([0, "done\n"]);
    await spawner.close();
  });
});

test("what is shown live and what is told at the end are the same bytes, both streams in order", async () => {
  const shown: string[] = [];
  const { spawner } = scripted((sink, finish) => {
    sink.onOutput("stdout", Buffer.from("out 1\n"));
    sink.onOutput("stderr", Buffer.from("err 1\n"));
    sink.onOutput("stdout", Buffer.from("out 2\n"));
    finish({ exitCode: 5 });
  });
  const run = await runToEnd(spawner, launch, options({ onOutput: ({ text }) => void shown.push(text) }));
  expect(shown.join("")).toBe("out 1\nerr 1\nout 2\n");
  expect(run.output.head).toBe("out 1\nerr 1\nout 2\n");
  expect([run.stdout.head, run.stderr.head, run.exitCode]).toEqual(["out 1\nout 2\n", "err 1\n", 5]);
});

test("a listener of a signal is taken off when the command has ended", async () => {
  const stop = new AbortController();
  const { spawner } = scripted((_sink, finish) => finish());
  let listeners = 0;
  const counted = new Proxy(stop.signal, {
    get(target, name) {
      if (name === "addEventListener")
        return (...words: [never, never]) => (listeners++, target.addEventListener(...words));
      if (name === "removeEventListener")
        return (...words: [never, never]) => (listeners--, target.removeEventListener(...words));
      return Reflect.get(target, name) as unknown;
    },
  });
  await runToEnd(spawner, launch, options({ signal: counted }));
  expect(listeners).toBe(0);
  const aborted = once(stop.signal, "abort");
  stop.abort();
  await aborted;
});
