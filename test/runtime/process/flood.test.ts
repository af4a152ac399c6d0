import { tmpdir } from "node:os";
import { describe, expect, test } from "vitest";
import type { Grant } from "../../../src/spec/access.ts";
import { createExec } from "../../../src/runtime/exec.ts";
import { createProcesses } from "../../../src/runtime/processes.ts";
import type { Child, Confined, OutputStream, Sink } from "../../../src/runtime/process/child.ts";
import { has } from "../../needs.ts";
import { launchers, unconfined } from "./spawners.ts";

const open: Grant = { policy: "full-access", confined: false, write: ["/"], protect: [], mask: [], network: "on" };

const env = { PATH: "/usr/bin:/bin" };

/** The first number that every flood prints: twelve digits, so that no flood comes to a longer one. */
const base = 100_000_000_000;

/** A command that prints so many numbers, one in a line, from the one at this place on. */
const seq = (from: number, count: number) => `seq ${base + from} ${base + from + count - 1}`;

/** What `seq` prints, from any byte on. A terminal adds a carriage return to each line. */
function numbers(from: number, size: number, end: string): string {
  const width = 12 + end.length;
  const first = Math.floor(from / width);
  const lines = Math.ceil(size / width) + 1;
  const text = Array.from({ length: lines }, (_, at) => `${base + first + at}${end}`).join("");
  return text.slice(from - first * width).slice(0, size);
}

interface Heard {
  readonly sink: Sink;
  /** How far each stream has come, what was handed over of it, and what of it came in the wrong place. */
  readonly at: Record<OutputStream, number>;
  readonly shown: Record<OutputStream, number>;
  readonly wrong: string[];
}

/** Compares all that is handed over, and all that is counted, with what was printed at that place. */
function listen(more: Partial<Sink> = {}, end = "\n", onEach: (heard: Heard) => void = () => {}): Heard {
  const at = { stdout: 0, stderr: 0 };
  const shown = { stdout: 0, stderr: 0 };
  const wrong: string[] = [];
  const heard: Heard = {
    at,
    shown,
    wrong,
    sink: {
      liveBytes: 100_000,
      tailBytes: 50_000,
      graceMs: 100,
      onOutput(stream, bytes) {
        const text = bytes.toString("latin1");
        if (text !== numbers(at[stream], bytes.length, end))
          wrong.push(`${stream} at ${at[stream]}: ${text.slice(0, 40)}`);
        at[stream] += bytes.length;
        shown[stream] += bytes.length;
        onEach(heard);
      },
      onDropped(stream, count, breaks) {
        const width = 12 + end.length;
        const should = Math.floor((at[stream] + count) / width) - Math.floor(at[stream] / width);
        if (breaks !== should) wrong.push(`${stream} at ${at[stream]}: ${breaks} lines for ${should}`);
        at[stream] += count;
        onEach(heard);
      },
      ...more,
    },
  };
  return heard;
}

describe.each(launchers)("the output of a flood through $name is whole and in order", ({ launcher }) => {
  const run = async (script: string, { sink }: Heard, more: Partial<Confined> = {}) => {
    const processes = createProcesses({ launcher });
    const argv = ["sh", "-c", script];
    const child = await processes.spawner.start(unconfined({ argv, cwd: tmpdir(), env, ...more }), sink);
    return { child, ended: child.ended.finally(() => processes.close()) };
  };

  test("on both streams at once, up to the last byte before the end", async () => {
    const heard = listen();
    const { ended } = await run(`${seq(0, 3_000_000)} & ${seq(0, 1_000_000)} >&2; wait`, heard);
    expect((await ended).exitCode).toBe(0);
    expect(heard.wrong).toEqual([]);
    expect(heard.at).toEqual({ stdout: 39_000_000, stderr: 13_000_000 });
    // Without the launcher Node reads everything itself.
    if (launcher !== "off") expect(heard.shown.stdout + heard.shown.stderr).toBeLessThan(1_000_000);
  });

  test("when somebody asks for more again and again: each piece at its place, none left out that was asked for", async () => {
    let child: Child | undefined;
    let asked = 100_000;
    const heard = listen({}, "\n", ({ shown }) => {
      for (; asked < 40_000_000 && shown.stdout >= asked; asked += 100_000) child?.more(100_000);
    });
    const started = await run(seq(0, 5_000_000), heard);
    child = started.child;
    await started.ended;
    expect(heard.wrong).toEqual([]);
    expect(heard.at.stdout).toBe(65_000_000);
  });

  test("when it stops for an answer after each: all of it comes although nothing follows", async () => {
    let child: Child | undefined;
    let rounds = 0;
    const heard = listen({}, "\n", ({ at }) => {
      if (at.stdout < (rounds + 1) * 6_500_000) return;
      rounds += 1;
      child?.write("go on\n");
    });
    const script = [0, 1, 2, 3, 4].map((at) => `${seq(at * 500_000, 500_000)}; read -r answer`).join("; ");
    const started = await run(script, heard, { stdin: "" });
    child = started.child;
    // Whoever asks for more is given what was kept back, whether or not more is to come.
    const asking = setInterval(() => child?.more(1), 5);
    expect((await started.ended.finally(() => clearInterval(asking))).exitCode).toBe(0);
    expect(heard.wrong).toEqual([]);
    expect([heard.at.stdout, rounds]).toEqual([32_500_000, 5]);
  });

  test("when the command has ended and what it left behind still prints", async () => {
    const heard = listen({ graceMs: 60_000 });
    const { ended } = await run(`${seq(0, 1_000_000)}; (sleep 0.1; ${seq(1_000_000, 4_000_000)}) & exit 3`, heard);
    expect(await ended).toMatchObject({ exitCode: 3, heldOpen: false });
    expect(heard.wrong).toEqual([]);
    expect(heard.at.stdout).toBe(65_000_000);
  });

  test("when what it left behind never stops: it is ended, and what it printed is told", async () => {
    const heard = listen();
    const { ended } = await run(`${seq(0, base)} & sleep 0.1`, heard);
    expect(await ended).toMatchObject({ exitCode: 0, heldOpen: true });
    expect(heard.wrong).toEqual([]);
    expect(heard.at.stdout).toBeGreaterThan(100_000);
  });

  test.skipIf(launcher === "off" && !has("script"))("on a terminal (needs script)", async () => {
    const heard = listen({}, "\r\n");
    const { ended } = await run(seq(0, 500_000), heard, { tty: { columns: 80, rows: 24 } });
    expect((await ended).exitCode).toBe(0);
    expect(heard.wrong).toEqual([]);
    expect(heard.at.stdout).toBe(7_000_000);
  });
});

describe.each(launchers)("a flood through $name", ({ launcher }) => {
  test("of 1.5 GB grows memory by less than 40 MB and leaves head, tail and count", async () => {
    const processes = createProcesses({ launcher });
    const exec = createExec({
      processes,
      grant: open,
      cwd: tmpdir(),
      env: { PATH: "/usr/bin:/bin" },
      signal: new AbortController().signal,
    });
    // What reading a pipe leaves to the collector is there after a small flood as after a large one.
    await exec.run({ argv: ["bash", "-c", "yes warm-up | head -c 300000000"] });
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5);
    const { stdout } = await exec.run({
      argv: ["bash", "-c", "echo first; yes flood | head -c 1500000000; echo last"],
    });
    clearInterval(watch);
    await processes.close();
    expect(stdout.totalBytes).toBe(1_500_000_011);
    expect(stdout.head.startsWith("first\nflood\n")).toBe(true);
    expect(stdout.tail.endsWith("flood\nlast\n")).toBe(true);
    expect((peak - before) / 1e6).toBeLessThan(40);
  });
});
