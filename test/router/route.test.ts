import { mkdtempSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CallError, createEngine, defineTool, Fault, type EngineOptions } from "../../src/index.ts";
import { partsToText } from "../../src/base/content.ts";
import type { CallEvent } from "../../src/spec/stages.ts";

const anything = { type: "object" } as const;
const engineWith = (tools: EngineOptions["tools"], options: Partial<EngineOptions> = {}) =>
  createEngine({
    tools: tools ?? [],
    workspace: mkdtempSync(join(tmpdir(), "callgate-route-")),
    approval: "never",
    ...options,
  });
const said = (ended: { readonly content: Parameters<typeof partsToText>[0] }) => partsToText(ended.content);

const add = defineTool({
  name: "add",
  description: "Add two numbers.",
  input: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
    additionalProperties: false,
  },
  parallel: true,
  run: ({ a, b }) => a + b,
});

test("a call goes down the whole line and comes back with its result", async () => {
  const ended = await engineWith([add]).call("add", { a: 2, b: 40 });
  expect(ended).toMatchObject({
    tool: "add",
    ok: true,
    structured: 42,
    input: { a: 2, b: 40 },
    ruling: { decision: "allow" },
  });
  expect(said(ended)).toBe("42");
});

test("each step is an event, in order", async () => {
  const engine = engineWith([add]);
  const events: CallEvent["type"][] = [];
  engine.on((event) => events.push(event.type));
  await engine.call("add", { a: 1, b: 1 });
  expect(events).toEqual(["call.asked", "call.permitted", "call.ended"]);
});

test("an unknown tool names the tools there are, nearest first", async () => {
  const ended = await engineWith([add]).call("ad");
  expect(ended).toMatchObject({ ok: false, code: "unknown_tool" });
  expect(said(ended)).toContain("add");
});

test("wrong arguments never reach the handler, and the model is told what was wrong", async () => {
  let ran = false;
  const tool = defineTool({ ...add, run: () => (ran = true) });
  const ended = await engineWith([tool]).call("add", { a: "2", c: 1 });
  expect(ended).toMatchObject({ ok: false, code: "invalid_input" });
  expect(said(ended)).toMatch(/\ba\b[\s\S]*\bb\b/);
  expect(ran).toBe(false);
});

test("broken JSON is told with its position, not repaired", async () => {
  const engine = engineWith([add]);
  const asked = { id: "1", name: "add", kind: "function", arguments: '{"a": 1, "b": ', askedAt: 0 } as const;
  const ended = await engine.run(asked, new AbortController().signal);
  expect(ended).toMatchObject({ ok: false, code: "invalid_input" });
});

test("a handler that throws ends its call and disturbs nothing else", async () => {
  const bad = defineTool({
    name: "bad",
    description: "Throws.",
    input: anything,
    run: () => Promise.reject(new Error("the disk is on fire")),
  });
  const engine = engineWith([add, bad]);
  expect(await engine.call("bad")).toMatchObject({
    ok: false,
    code: "failed",
    content: [{ text: "Error: the disk is on fire" }],
  });
  expect(await engine.call("add", { a: 1, b: 1 })).toMatchObject({ ok: true });
});

test("a handler's own CallError keeps its code and its hint", async () => {
  const run = () => {
    throw new CallError("timeout", "Too slow.", { hint: "Ask for less." });
  };
  const ended = await engineWith([defineTool({ name: "slow", description: "Slow.", input: anything, run })]).call(
    "slow",
  );
  expect(ended).toMatchObject({ code: "timeout", content: [{ text: "Error: Too slow.\nAsk for less." }] });
});

test("a Fault is not told to the model: it is thrown", async () => {
  const run = () => {
    throw new Fault("the database is gone");
  };
  await expect(
    engineWith([defineTool({ name: "dead", description: "Dead.", input: anything, run })]).call("dead"),
  ).rejects.toThrow("the database is gone");
});

test("a handler that hangs ends at its time limit, and its signal fires", async () => {
  let stopped = false;
  const hang = defineTool({
    name: "hang",
    description: "Hangs.",
    input: anything,
    timeoutMs: 30,
    run: (_input, ctx) =>
      new Promise<string>(() => {
        ctx.signal.addEventListener("abort", () => (stopped = true));
      }),
  });
  expect(await engineWith([hang]).call("hang")).toMatchObject({ ok: false, code: "timeout" });
  expect(stopped).toBe(true);
});

test("an abort ends a running call at once, even if the handler ignores it", async () => {
  const deaf = defineTool({
    name: "deaf",
    description: "Deaf.",
    input: anything,
    run: () => new Promise<string>(() => undefined),
  });
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 20);
  expect(await engineWith([deaf]).call("deaf", {}, stop.signal)).toMatchObject({ ok: false, code: "aborted" });
});

test.each([
  [
    "a cycle",
    () =>
      Object.assign([] as unknown[], { self: undefined }).concat([
        new Proxy(
          {},
          {
            ownKeys: () => {
              throw new Error("no");
            },
          },
        ),
      ]),
  ],
  ["a function", () => (() => undefined) as never],
  ["a bigint", () => 1n as never],
])("a handler that gives back %s ends in a clear error", async (_what, run) => {
  const garbage = defineTool({
    name: "garbage",
    description: "Garbage.",
    input: anything,
    run: run as unknown as () => string,
  });
  expect(await engineWith([garbage]).call("garbage")).toMatchObject({ ok: false, code: "failed" });
});

test("a handler that floods progress is heard, but not without end", async () => {
  async function* run() {
    for (let index = 0; index < 5_000; index++) yield `step ${index}`;
    return "done";
  }
  const engine = engineWith([defineTool({ name: "flood", description: "Floods.", input: anything, run })]);
  let heard = 0;
  engine.on((event) => (heard += event.type === "call.progress" ? 1 : 0));
  expect(await engine.call("flood")).toMatchObject({ ok: true, content: [{ text: "done" }] });
  expect(heard).toBe(1_000);
});

test("a result that breaks the declared output schema is told, not passed on", async () => {
  const liar = defineTool({
    name: "liar",
    description: "Lies.",
    input: anything,
    output: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    run: () => ({ n: "seven" }),
  });
  const ended = await engineWith([liar]).call("liar");
  expect(ended).toMatchObject({ ok: false, code: "failed" });
  expect(said(ended)).toContain("output schema");
});

test("ten megabytes of arguments and ten thousand levels end in an answer", async () => {
  const engine = engineWith([add]);
  const signal = new AbortController().signal;
  const ask = (raw: string) =>
    engine.run({ id: "1", name: "add", kind: "function", arguments: raw, askedAt: Date.now() }, signal);
  expect(await ask(`{"a":1,"b":2,"c":"${"x".repeat(10_000_000)}"}`)).toMatchObject({
    ok: false,
    code: "invalid_input",
  });
  expect(await ask(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`)).toMatchObject({
    ok: false,
    code: "invalid_input",
  });
  const hostile = await ask('{"__proto__":{"c":1},"a":1,"b":2}');
  expect((hostile.input as { c?: unknown } | undefined)?.c).toBeUndefined();
  expect(({} as { c?: unknown }).c).toBeUndefined();
});

test("services and models of the host reach the handler", async () => {
  const tool = defineTool({
    name: "who",
    description: "Who.",
    input: anything,
    run: (_input, ctx) => `${String(ctx.service["name"])}/${String(ctx.model["user"])}`,
  });
  const engine = engineWith([tool], { service: { name: "svc" }, model: { user: "mdl" } });
  expect(said(await engine.call("who"))).toBe("svc/mdl");
});

test("what was cut from a long output is kept in a file the answer names", async () => {
  const long = defineTool({
    name: "long",
    description: "Long.",
    input: anything,
    run: () => Array.from({ length: 5_000 }, (_, n) => `line ${n}`).join("\n"),
  });
  const ended = await engineWith([long]).call("long");
  expect(ended.cut?.file).toBeDefined();
  expect(said(ended)).toContain(ended.cut!.file!);
  const { readFileSync } = await import("node:fs");
  expect(readFileSync(ended.cut!.file!, "utf8")).toContain("line 2500\n");
});

test("a hook that rewrites a call sends it through the checks again", async () => {
  const engine = engineWith([add], {
    gate: { hooks: [{ name: "bad", before: async () => ({ input: { a: "one" } }) }] },
  });
  expect(await engine.call("add", { a: 1, b: 1 })).toMatchObject({ ok: false, code: "invalid_input" });
});

test("a hook that rewrites for ever is stopped", async () => {
  let n = 0;
  const engine = engineWith([add], { gate: { hooks: [{ before: () => ({ input: { a: n++, b: 1 } }) }] } });
  expect(await engine.call("add", { a: 1, b: 1 })).toMatchObject({ ok: false, code: "denied" });
});

test("metrics count calls, endings and time", async () => {
  const engine = engineWith([add]);
  await engine.call("add", { a: 1, b: 1 });
  await engine.call("add", {});
  expect(engine.metrics.snapshot()["add"]).toMatchObject({ calls: 2, successes: 1, errors: { invalid_input: 1 } });
  expect(engine.metrics.prometheus()).toContain('callgate_calls_total{tool="add",code="ok"} 1');
});

test("a link swapped in after the yes leads a write nowhere, inside the workspace too", async () => {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-swap-"));
  writeFileSync(join(workspace, "agreed.txt"), "old");
  writeFileSync(join(workspace, "victim.txt"), "untouched");
  const swapping = defineTool({
    name: "swapping",
    description: "",
    input: anything,
    access: () => ({ write: ["agreed.txt"] }),
    run: async (_input, { files }) => {
      unlinkSync(join(workspace, "agreed.txt"));
      symlinkSync("victim.txt", join(workspace, "agreed.txt"));
      await files.write("agreed.txt", "new");
    },
  });
  const ended = await engineWith([swapping], { workspace }).call("swapping", {});
  expect(ended).toMatchObject({ ok: false, code: "sandbox_denied" });
  expect(readFileSync(join(workspace, "victim.txt"), "utf8")).toBe("untouched");
});
