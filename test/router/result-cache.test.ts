/** A tool that says its results can be given again: when they are, and when the handler runs all the same. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CallError, createEngine, defineTool, result, type AnyTool, type ToolOutput } from "../../src/index.ts";
import { withCache } from "../../src/router/result-cache.ts";
import type { Permitted } from "../../src/spec/call.ts";
import type { Runtime } from "../../src/spec/stages.ts";

const input = { type: "object", properties: { a: { type: "string" }, b: { type: "string" } } } as const;

function counted(more: Partial<AnyTool>, answer: () => ToolOutput = () => "found") {
  let runs = 0;
  const tool = defineTool({
    name: "find",
    description: "Finds something.",
    input,
    mutates: false,
    cache: {},
    ...(more as object),
    run: () => (runs++, answer()),
  });
  const engine = createEngine({ workspace: mkdtempSync(join(tmpdir(), "callgate-cache-")), tools: [tool] });
  return { engine, runs: () => runs };
}

test("the same input is answered once, whatever the order of its fields; another one is not", async () => {
  const { engine, runs } = counted({});
  expect(await engine.call("find", { a: "1", b: "2" })).not.toHaveProperty("cached");
  expect(await engine.call("find", { b: "2", a: "1" })).toMatchObject({ cached: true, text: "found" });
  expect(runs()).toBe(1);
  await engine.call("find", { a: "1" });
  expect(runs()).toBe(2);
  expect(engine.metrics.snapshot()["find"]).toMatchObject({ calls: 3, cacheHits: 1 });
  await engine.close();
});

test("a key of the tool's own decides what is the same", async () => {
  const { engine, runs } = counted({ cache: { key: (given: { a?: string }) => given.a ?? "" } } as Partial<AnyTool>);
  await engine.call("find", { a: "1", b: "2" });
  expect(await engine.call("find", { a: "1", b: "3" })).toMatchObject({ cached: true });
  expect(runs()).toBe(1);
  await engine.close();
});

test.each<[string, Partial<AnyTool>, (() => ToolOutput)?]>([
  ["no cache", { cache: undefined as never }],
  ["a failure", {}, () => result({ ok: false, content: "no" })],
  ["an error", {}, () => ({ error: "no" })],
  [
    "a command that failed",
    {},
    () => result({ exec: { stdout: "", stderr: "", output: "", exitCode: 1, durationMs: 1, timedOut: false } }),
  ],
  [
    "a command that ran out of time",
    {},
    () => result({ exec: { stdout: "", stderr: "", output: "", exitCode: 0, durationMs: 1, timedOut: true } }),
  ],
  [
    "a throw",
    {},
    () => {
      throw new CallError("failed", "no");
    },
  ],
])("%s: the handler runs again", async (_what, more, answer) => {
  const { engine, runs } = counted(more, answer);
  await engine.call("find", {});
  expect(await engine.call("find", {})).not.toHaveProperty("cached");
  expect(runs()).toBe(2);
  await engine.close();
});

test("a command that succeeded is given again", async () => {
  const exec = { stdout: "x", stderr: "", output: "x", exitCode: 0, durationMs: 1, timedOut: false };
  const { engine, runs } = counted({}, () => result({ exec }));
  await engine.call("find", {});
  expect(await engine.call("find", {})).toMatchObject({ cached: true, text: "x" });
  expect(runs()).toBe(1);
  await engine.close();
});

test("what is too old, too long unused, or would change something runs", async () => {
  let runs = 0;
  let now = 0;
  const runtime: Runtime = {
    run: async (permitted) => ({ ...permitted, startedAt: now, output: `${++runs}` }),
    settle: () => Promise.reject(new Error("nothing is held")),
    rehearse: async () => undefined,
  };
  const cached = withCache(runtime, () => now);
  const { signal } = new AbortController();
  const run = async (a: string, more: Partial<Permitted> = {}) => {
    const tool = { name: "find", description: "", input, cache: { ttlMs: 10 }, run: () => undefined } as AnyTool;
    const permitted = { id: "1", tool, input: { a }, mutates: false, grant: {}, ...more } as unknown as Permitted;
    return (await cached.run(permitted, signal, () => Promise.reject(new Error("no")), "key")).output;
  };
  expect([await run("x"), await run("x")]).toEqual(["1", "1"]);
  now = 10;
  expect(await run("x")).toBe("2");
  expect(await run("x", { mutates: true })).toBe("3");
  for (let n = 0; n < 100; n++) await run(`${n}`);
  expect(await run("x")).toBe("104");
  expect(await run("99")).toBe("103");
});
