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

test("a time limit that no timer can hold is no time limit of nothing", async () => {
  const patient = defineTool({
    name: "patient",
    description: "Takes a moment.",
    input: anything,
    timeoutMs: 2 ** 32,
    run: () => new Promise<string>((resolve) => setTimeout(() => resolve("done"), 50)),
  });
  expect(await engineWith([patient]).call("patient")).toMatchObject({ ok: true });
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

test("whatever a handler hands back, the call ends with a record and an event", async () => {
  const odd: readonly unknown[] = [{ content: [], exec: { status: "ok" } }, 1n, () => 1, { get: Symbol("x") }, null];
  for (const value of odd) {
    const tool = defineTool({ name: "odd", description: "Odd.", input: anything, run: () => value as never });
    const engine = engineWith([tool]);
    const events: string[] = [];
    const recorded: string[] = [];
    engine.on(({ type }) => events.push(type));
    const asked = { id: "1", name: "odd", kind: "function", arguments: "{}", askedAt: 0 } as const;
    const recorder = {
      async started() {},
      async decided() {},
      ended: async ({ id }: { id: string }) => void recorded.push(id),
    };
    await engine.run(asked, new AbortController().signal, { recorder });
    expect(events.at(-1)).toBe("call.ended");
    expect(recorded).toEqual(["1"]);
  }
});

test("a fault is thrown, and the call has ended all the same", async () => {
  const engine = engineWith([add], {
    gate: {
      record: () => {
        throw new Error("the disk is full");
      },
    },
  });
  const events: CallEvent[] = [];
  engine.on((event) => events.push(event));
  await expect(engine.call("add", { a: 1, b: 1 })).rejects.toThrow("the disk is full");
  expect(events.at(-1)).toMatchObject({ type: "call.ended", call: { ok: false, code: "failed" } });
  expect(JSON.stringify(events)).not.toContain("the disk is full");
});

test("a refused call carries the ruling: which rule, or who, said no", async () => {
  const tool = defineTool({ ...add, name: "send" });
  const byRule = await engineWith([tool], {
    gate: { rules: [{ id: "no-sending", tool: "send", decision: "deny" }] },
  }).call("send", { a: 1, b: 1 });
  expect(byRule).toMatchObject({ code: "denied", ruling: { decision: "deny", by: "rule", rule: "no-sending" } });
  const byHook = await engineWith([tool], { gate: { hooks: [{ before: () => ({ block: "not on Fridays" }) }] } }).call(
    "send",
    { a: 1, b: 1 },
  );
  expect(byHook).toMatchObject({ code: "denied", ruling: { by: "hook", reason: "not on Fridays" } });
  const changing = defineTool({ ...add, name: "change", mutates: true });
  const byPerson = await engineWith([changing], {
    approval: "on-request",
    approver: { ask: async () => ({ answer: "no", message: "later" }) },
  }).call("change", { a: 1, b: 1 });
  expect(byPerson).toMatchObject({ code: "rejected", ruling: { by: "person", reason: "the person said no: later" } });
  const byNobody = await engineWith([changing], { approval: "on-request" }).call("change", { a: 1, b: 1 });
  expect(byNobody).toMatchObject({ code: "needs_approval", ruling: { decision: "ask", by: "policy" } });
});

test("an after-hook that fails withholds the result from the model, and the operator and the record are told", async () => {
  const tool = defineTool({ ...add, name: "look", run: () => ({ password: "hunter2" }) });
  const records: unknown[] = [];
  const engine = engineWith([tool], {
    gate: {
      record: (entry) => void records.push(entry),
      hooks: [
        {
          name: "redact",
          after: () => {
            throw new Error("out of order");
          },
        },
      ],
    },
  });
  const events: CallEvent[] = [];
  engine.on((event) => events.push(event));
  const ended = await engine.call("look", { a: 1, b: 1 });
  expect(ended).toMatchObject({ ok: false, code: "withheld" });
  expect(JSON.stringify(ended)).not.toContain("hunter2");
  expect(said(ended)).toContain("the hook redact failed: out of order");
  expect(ended.notes).toEqual(["result withheld: the hook redact failed: out of order"]);
  expect(events).toContainEqual(expect.objectContaining({ type: "call.log", level: "error" }));
  expect(records).toContainEqual(
    expect.objectContaining({ outcome: "withheld", ruling: expect.objectContaining({ by: "hook" }) }),
  );
});

test("a hook that changes the words takes back what was structured, and the file that holds the whole", async () => {
  const long = "secret\n".repeat(20_000);
  const tool = defineTool({ ...add, name: "look", run: () => long });
  const engine = engineWith([tool], { gate: { hooks: [{ after: () => ({ content: "[cut]" }) }] } });
  const ended = await engine.call("look", { a: 1, b: 1 });
  expect(said(ended)).toBe("[cut]");
  expect(ended.structured).toBeUndefined();
  expect(ended.cut?.bytes).toBeGreaterThan(0);
  expect(ended.cut?.file).toBeUndefined();
});

test("a second run after widening is permitted, shown and recorded like the first", async () => {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-route-"));
  let tries = 0;
  const tool = defineTool({
    name: "reach",
    description: "Reaches out.",
    input: anything,
    access: { commands: [{ argv: ["make"] }] },
    repeatable: true,
    run() {
      if (tries++ === 0)
        throw new CallError("sandbox_denied", "no network", {
          data: { what: "network", target: "h.test", reason: "off" },
        });
      return "there";
    },
  });
  const engine = engineWith([tool], {
    workspace,
    approval: "on-request",
    gate: { confinement: { name: "test", available: true } },
    approver: { ask: async () => ({ answer: "once" }) },
  });
  const permitted: CallEvent[] = [];
  engine.on((event) => event.type === "call.permitted" && permitted.push(event));
  const started: unknown[] = [];
  const ended = await engine.run(
    { id: "1", name: "reach", kind: "function", arguments: "{}", askedAt: 0 },
    new AbortController().signal,
    {
      recorder: {
        started: async ({ grant }) => void started.push(grant.network),
        async decided() {},
        async ended() {},
      },
    },
  );
  expect(said(ended)).toBe("there");
  expect(permitted).toMatchObject([
    { grant: { network: "off" } },
    { grant: { network: ["h.test"] }, ruling: { by: "person" } },
  ]);
  expect(started).toEqual(["off", ["h.test"]]);
});

test("the host's last word is waited for, before anything is recorded or run, and may end the call", async () => {
  const order: string[] = [];
  const tool = defineTool({ ...add, name: "late", run: () => void order.push("ran") });
  const recorder = { started: async () => void order.push("recorded"), async decided() {}, async ended() {} };
  const call = { id: "1", name: "late", kind: "function", arguments: '{"a":1,"b":1}', askedAt: 0 } as const;
  const { signal } = new AbortController();
  const beforeRun = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    order.push("ready");
  };
  await engineWith([tool]).run(call, signal, { recorder, beforeRun });
  expect(order).toEqual(["ready", "recorded", "ran"]);
  const stopped = await engineWith([tool]).run(call, signal, {
    recorder,
    beforeRun: () => Promise.reject(new CallError("aborted", "not now")),
  });
  expect(stopped).toMatchObject({ ok: false, code: "aborted" });
  expect(order).toHaveLength(3);
});

test("nothing runs before its start is recorded", async () => {
  const order: string[] = [];
  const tool = defineTool({ ...add, name: "late", run: () => void order.push("ran") });
  let release = () => {};
  const kept = new Promise<void>((resolve) => (release = resolve));
  const running = engineWith([tool]).run(
    { id: "1", name: "late", kind: "function", arguments: '{"a":1,"b":1}', askedAt: 0 },
    new AbortController().signal,
    {
      recorder: {
        async started() {
          order.push("recording");
          await kept;
          order.push("recorded");
        },
        async decided() {},
        async ended() {},
      },
    },
  );
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(order).toEqual(["recording"]);
  release();
  await running;
  expect(order).toEqual(["recording", "recorded", "ran"]);
});

test("what a call was asked with is in its end, under its own words", async () => {
  const asked = {
    id: "c1",
    name: "add",
    namespace: "callgate",
    kind: "function",
    arguments: '{"a":1,"b":2}',
    askedAt: 0,
    markerless: true,
  } as const;
  const engine = engineWith([add]);
  const { namespace, markerless, tool, notes } = await engine.run(asked);
  expect({ namespace, markerless, tool, notes }).toEqual({
    namespace: "callgate",
    markerless: true,
    tool: "add",
    notes: undefined,
  });
  const { namespace: _none, markerless: _no, ...bare } = asked;
  expect(Object.keys(await engine.run(bare))).not.toContain("namespace");
  expect(Object.keys(await engine.run(bare))).not.toContain("markerless");
});

test("a call that a hook rewrites keeps its namespace; one that a hook refuses carries that ruling", async () => {
  const asked = {
    id: "c1",
    name: "add",
    namespace: "n",
    kind: "function",
    arguments: '{"a":1,"b":2}',
    askedAt: 0,
  } as const;
  let rewrites = 0;
  const rewriting = engineWith([add], {
    gate: { hooks: [{ before: () => (rewrites++ === 0 ? { input: { a: 5, b: 5 } } : undefined) }] },
  });
  expect(await rewriting.run(asked)).toMatchObject({ namespace: "n", structured: 10 });
  const refusing = engineWith([add], { gate: { hooks: [{ before: () => ({ block: "not today" }) }] } });
  const refused = await refusing.run(asked);
  expect(refused.ruling).toMatchObject({ decision: "deny", by: "hook" });
  expect(refused.ruling?.reason).toContain("not today");
});
