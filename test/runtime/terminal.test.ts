import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Grant } from "../../src/spec/access.ts";
import type { Terminals, TerminalView } from "../../src/spec/capability.ts";
import { createExec } from "../../src/runtime/exec.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { createSandbox } from "../../src/runtime/sandbox/sandbox.ts";
import { has } from "../needs.ts";
import { launchers } from "./process/spawners.ts";

const cwd = realpathSync(mkdtempSync(join(tmpdir(), "callgate-terminal-")));
const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: homedir() };
const open: Grant = { policy: "full-access", confined: false, write: ["/"], protect: [], mask: [], network: "on" };
const confined: Grant = {
  policy: "workspace-write",
  confined: true,
  write: [cwd],
  protect: [],
  mask: [],
  network: "off",
};
const signal = new AbortController().signal;
/** The launcher makes terminals itself and has Landlock; without it `script` and bubblewrap are needed. */
const places = launchers.flatMap(({ name, launcher }) => {
  const isPlain = launcher === "off";
  return [
    {
      name: isPlain ? `${name} (needs script)` : name,
      launcher,
      place: "bare",
      grant: open,
      isThere: !isPlain || has("script"),
    },
    {
      name: isPlain ? `${name} (needs bubblewrap)` : name,
      launcher,
      place: "in a sandbox",
      grant: confined,
      isThere: !isPlain || (has("bubblewrap") && has("script")),
    },
  ];
});

/** Looks again until `text` has come: how long a loaded machine takes is nobody's promise. */
async function until(terminals: Terminals, view: TerminalView, text: string | RegExp): Promise<string> {
  let seen = view.output.head;
  for (let looks = 0; looks < 100 && seen.search(text) < 0; looks++) {
    seen += (await terminals.write(view.id!, { chars: "", yieldMs: 100 })).output.head;
  }
  return seen;
}

describe.each(places)("a terminal through $name, $place", ({ launcher, grant, isThere }) => {
  if (!isThere) return void test.skip("cannot be made here", () => {});
  const processes = createProcesses({ launcher });
  const sandbox = createSandbox();
  const { terminals } = createExec({ processes, sandbox, grant, cwd, env, signal });
  const bash = (line: string) => ["bash", "--norc", "-c", line];
  afterAll(async () => {
    await processes.close();
    await sandbox.close();
  });

  test("is a real terminal of the size that was asked for", async () => {
    const view = await terminals.open({
      argv: bash("tty && stty size"),
      tty: true,
      columns: 101,
      rows: 33,
      yieldMs: 5000,
    });
    expect(view.id).toBeUndefined();
    expect(view.exitCode).toBe(0);
    expect(view.output.head).toMatch(/^\/dev\/(?:pts\/\d+|console)\r\n33 101\r\n$/);
  });

  test("shows what was typed and what was answered, each once", async () => {
    const line = 'read -p "name? " n; echo "hello $n"; exit 4';
    const first = await terminals.open({ argv: bash(line), tty: true, yieldMs: 100 });
    expect(first.id).toBeTypeOf("number");
    expect(await until(terminals, first, /name\? /)).toBe("name? ");
    expect(terminals.list()).toMatchObject([{ id: first.id, running: true }]);
    const second = await terminals.write(first.id!, { chars: "Ada\n", yieldMs: 20_000 });
    expect(second).toMatchObject({ exitCode: 4 });
    expect(second.output.head).toBe("Ada\r\nhello Ada\r\n");
    await expect(terminals.write(first.id!, { chars: "", yieldMs: 250 })).rejects.toMatchObject({
      message: `Unknown process id ${first.id}`,
    });
  });

  test("passes Ctrl-C, Ctrl-Z and fg on to the job in front", async () => {
    const first = await terminals.open({
      argv: ["bash", "--norc", "-i"],

      tty: true,
      yieldMs: 100,
    });
    const prompt = /[$#] /;
    const say = async (chars: string, text: string | RegExp) =>
      until(terminals, await terminals.write(first.id!, { chars, yieldMs: 50 }), text);
    await until(terminals, first, prompt);
    await say("sleep 100\n", "sleep 100\r\n");
    expect(await say("\u0003", prompt)).toContain("^C");
    await say("sleep 200\n", "sleep 200\r\n");
    expect(await say("\u001a", prompt)).toContain("Stopped");
    await say("fg\n", "sleep 200\r\n");
    await say("\u0003", prompt);
    expect(await say("echo alive $((40+2))\n", "alive 42")).toContain("alive 42\r\n");
    await terminals.close(first.id!);
    expect(terminals.list()).toEqual([]);
  });

  test("Ctrl-C interrupts the program, and its terminal stays", async () => {
    const line = "trap 'echo interrupted' INT; echo up; while :; do read -r said && echo said $said; done";
    const first = await terminals.open({ argv: bash(line), tty: true, yieldMs: 50 });
    await until(terminals, first, "up");
    const say = async (chars: string, text: string) =>
      until(terminals, await terminals.write(first.id!, { chars, yieldMs: 50 }), text);
    expect(await say("\u0003", "interrupted")).toContain("interrupted");
    expect(await say("hello\n", "said hello")).toContain("said hello");
    await terminals.close(first.id!);
  });

  test("keeps the last byte of a long output", async () => {
    for (let round = 0; round < 5; round++) {
      const view = await terminals.open({ argv: bash("seq 1 20000"), tty: true, yieldMs: 20_000 });
      expect(view.output.totalBytes).toBe(128_894);
      expect(view.output.head.endsWith("19999\r\n20000\r\n")).toBe(true);
    }
  });

  test("without a tty takes nothing but an interrupt", async () => {
    const line = "trap 'echo got it; exit 9' INT; echo up; while :; do sleep 0.05; done";
    const first = await terminals.open({ argv: bash(line), tty: false, yieldMs: 50 });
    await until(terminals, first, "up");
    const text = terminals.write(first.id!, { chars: "text\n", yieldMs: 250 });
    await expect(text).rejects.toMatchObject({ code: "invalid_input" });
    const last = await terminals.write(first.id!, { chars: "\u0003", yieldMs: 20_000 });
    expect(last.exitCode).toBe(9);
    expect(last.output.head).toContain("got it");
  });

  test("that cannot be started says why", async () => {
    const failure = terminals.open({ argv: ["true"], cwd: "/no/such/folder", tty: true, yieldMs: 1000 });
    await expect(failure).rejects.toMatchObject({ code: "invalid_input" });
    expect(terminals.list()).toEqual([]);
  });
});

describe.each(launchers.filter(({ launcher }) => launcher !== "off"))("terminals of $name", ({ launcher }) => {
  const processes = createProcesses({ launcher, maxTerminals: 10 });
  const { terminals } = createExec({ processes, grant: open, cwd, env, signal });
  afterAll(() => processes.close());

  test("can be resized, and the program is told", async () => {
    const line = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done";
    const first = await terminals.open({ argv: ["bash", "-c", line], tty: true, yieldMs: 50 });
    await until(terminals, first, "ready");
    const view = await terminals.write(first.id!, { chars: "", yieldMs: 50, resize: { columns: 120, rows: 50 } });
    expect(await until(terminals, view, "50 120")).toContain("50 120");
    await terminals.close(first.id!);
  });

  test("say when the process sits waiting for input", async () => {
    let view = await terminals.open({ argv: ["cat"], tty: true, yieldMs: 100 });
    for (let looks = 0; looks < 50 && !view.waitingForInput; looks++) {
      view = await terminals.write(view.id!, { chars: "", yieldMs: 100 });
    }
    expect(view.waitingForInput).toBe(true);
    await terminals.close(view.id!);
    const busy = await terminals.open({ argv: ["sleep", "100"], tty: true, yieldMs: 300 });
    expect(busy.waitingForInput).toBeUndefined();
    await terminals.close(busy.id!);
  });

  test("give way to new ones when there are too many: the longest unused first", async () => {
    const ids: number[] = [];
    for (let n = 0; n < 12; n++) {
      ids.push((await terminals.open({ argv: ["sleep", "100"], tty: false, yieldMs: 10 })).id!);
    }
    expect(terminals.list().map(({ id }) => id)).toEqual(ids.slice(2));
    await processes.terminals.closeAll();
  });

  test("keep what they have to say when the one who waited was stopped", async () => {
    const stop = new AbortController();
    const stopped = createExec({ processes, grant: open, cwd, env, signal: stop.signal }).terminals;
    const { id } = await terminals.open({ argv: ["bash", "-c", "sleep 0.4; echo late"], tty: false, yieldMs: 10 });
    const waiting = stopped.write(id!, { chars: "", yieldMs: 10_000 });
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "aborted" });
    const view = await terminals.write(id!, { chars: "", yieldMs: 10_000 });
    expect(view).toMatchObject({ exitCode: 0, output: { head: "late\n" } });
  });

  test("leave no descriptor behind", async () => {
    const round = async () => void (await terminals.open({ argv: ["echo", "hi"], tty: true, yieldMs: 5000 }));
    await round();
    const before = readdirSync("/proc/self/fd").length;
    for (let n = 0; n < 100; n++) await round();
    expect(readdirSync("/proc/self/fd").length).toBe(before);
  });

  test("that nobody looks at cost no memory of ours, and show their last lines when somebody does", async () => {
    const line = "yes flood | head -c 150000000; echo the end; echo x > done; sleep 100";
    const { id } = await terminals.open({ argv: ["bash", "-c", line], tty: false, yieldMs: 50 });
    while (!existsSync(join(cwd, "done"))) await new Promise((resolve) => setTimeout(resolve, 50));
    const view = await terminals.write(id!, { chars: "", yieldMs: 1000 });
    expect(view.output.droppedBytes).toBeGreaterThan(50_000_000);
    expect(view.output.tail.endsWith("flood\nthe end\n")).toBe(true);
    await terminals.close(id!);
  });
});

afterAll(() => rmSync(cwd, { recursive: true, force: true }));
