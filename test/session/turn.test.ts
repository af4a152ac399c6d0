/** The turn loop's promises, through a real engine with a scripted model. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Fault } from "../../src/base/error.ts";
import { createEngine, defineTool, type AnyTool } from "../../src/index.ts";
import { createSession, rebuildHistory, type SessionEvent, type SessionOptions } from "../../src/session/index.ts";
import { openJournal, readJournal } from "../../src/store/index.ts";
import { createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";

const anything = { type: "object" } as const;
const echo = defineTool({
  name: "echo",
  description: "Echo.",
  input: anything,
  parallel: true,
  run: (input) => JSON.stringify(input),
});
const slow = defineTool({
  name: "slow",
  description: "Slow.",
  input: anything,
  run: (_input, ctx) =>
    new Promise<string>((resolve) => ctx.signal.addEventListener("abort", () => resolve("stopped"))),
});

function start(
  steps: readonly ScriptedStep[],
  { tools_, ...options }: Partial<SessionOptions> & { tools_?: readonly AnyTool[] } = {},
) {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-turn-"));
  const engine = createEngine({ tools: tools_ ?? [echo, slow], workspace, approval: "never" });
  const model = createScriptedModel(steps);
  const journalPath = join(workspace, "journal.jsonl");
  const session = createSession({
    id: "s",
    engine,
    model,
    tools: () => [],
    journal: openJournal(journalPath),
    ...options,
  });
  const play = async (prompt: string) => {
    const events: SessionEvent[] = [];
    for await (const event of session.send(prompt)) events.push(event);
    return events;
  };
  return { session, model, play, journalPath };
}

const last = (events: readonly SessionEvent[]) => events.findLast((event) => event.type === "turn.ended");

test("results go back in the order of the calls, whichever ended first", async () => {
  const sleepy = defineTool({
    name: "sleepy",
    description: "Sleeps.",
    input: { type: "object", properties: { ms: { type: "number" } }, required: ["ms"] },
    parallel: true,
    run: async ({ ms }) => {
      await new Promise((resolve) => setTimeout(resolve, ms));
      return `slept ${ms}`;
    },
  });
  const { play, model } = start(
    [{ calls: [30, 1, 15].map((ms) => ({ name: "sleepy", input: { ms } })) }, { text: "ok" }],
    { tools_: [sleepy] },
  );
  await play("go");
  const results = model.requests[1]!.input.filter((item) => item.type === "result");
  expect(results.map(({ content }) => (content[0] as { text: string }).text)).toEqual([
    "slept 30",
    "slept 1",
    "slept 15",
  ]);
});

test("a session offers all of its engine's tools unless it is told otherwise", async () => {
  const engine = createEngine({
    tools: [defineTool({ name: "one", description: "One.", input: { type: "object" }, run: () => "1" })],
  });
  const model = createScriptedModel([{ text: "hi" }, { text: "hi" }]);
  for await (const _ of createSession({ id: "a", engine, model }).send("go")) continue;
  for await (const _ of createSession({ id: "b", engine, model, tools: () => [] }).send("go")) continue;
  expect(model.requests.map(({ tools }) => tools?.map(({ name }) => name))).toEqual([["one"], []]);
});

test("an answer of nothing ends the turn, and is said", async () => {
  const { play } = start([{ text: "" }]);
  const events = await play("go");
  expect(last(events)).toMatchObject({ reason: "done", text: "" });
  expect(events).toContainEqual({ type: "warning", message: "The model answered with nothing." });
});

test("a call that is not whole is never run, and the model is told", async () => {
  const { play, model } = start([
    { calls: [{ name: "echo", arguments: '{"a":', complete: false }] },
    { text: "sorry" },
  ]);
  const events = await play("go");
  expect(events.filter((event) => event.type === "call.permitted")).toEqual([]);
  expect(JSON.stringify(model.requests[1]!.input.at(-1))).toContain("not whole");
});

test("an interruption leaves a history that pairs every call with an output", async () => {
  const { session, play } = start([{ calls: [{ name: "slow" }, { name: "echo" }] }]);
  session.on((event) => event.type === "call.permitted" && setTimeout(() => session.interrupt(), 5));
  expect(last(await play("go"))).toMatchObject({ reason: "interrupted" });
  const calls = session.history.flatMap((item) => (item.type === "call" ? [item.id] : []));
  const results = session.history.flatMap((item) => (item.type === "result" ? [item.callId] : []));
  expect(results).toEqual(calls);
});

test("what is typed during a turn goes in at its next request", async () => {
  const { session, play, model } = start([{ calls: [{ name: "echo" }] }, { text: "ok" }]);
  session.on((event) => event.type === "call.ended" && session.steer("and hurry"));
  await play("go");
  expect(JSON.stringify(model.requests[1]!.input.at(-1))).toContain("and hurry");
});

test("a message that arrives with the last answer is still answered", async () => {
  const { session, play, model } = start([{ text: "done" }, { text: "also done" }]);
  session.on((event) => event.type === "item.done" && model.requests.length === 1 && session.steer("one more"));
  expect(last(await play("go"))).toMatchObject({ text: "also done", requests: 2 });
});

test("a model that repeats itself is stopped", async () => {
  const { play } = start(Array.from({ length: 20 }, () => ({ calls: [{ name: "echo", input: { same: true } }] })));
  expect(last(await play("go"))).toMatchObject({ reason: "loop" });
});

test.each([
  ["requests", { maxRequests: 2 }],
  ["calls", { maxCalls: 2 }],
  ["tokens", { maxTokens: 20 }],
] as const)("a turn stops at its limit of %s", async (_what, limits) => {
  const step = (n: number): ScriptedStep => ({
    calls: [{ name: "echo", input: { n } }],
    end: { usage: { input: 5, output: 5 } },
  });
  const { play } = start([0, 1, 2, 3].map(step), { limits });
  expect(last(await play("go"))).toMatchObject({ reason: "limit", requests: 2 });
});

test("a budget in dollars stops a run, by the user's own prices", async () => {
  const step = (n: number): ScriptedStep => ({
    calls: [{ name: "echo", input: { n } }],
    end: { usage: { input: 1_000_000, output: 0 } },
  });
  const { play, session } = start([0, 1, 2].map(step), { limits: { maxCostUsd: 1.5 }, price: { input: 1, output: 1 } });
  expect(last(await play("go"))).toMatchObject({ reason: "limit", requests: 2 });
  expect(session.costUsd).toBe(2);
});

test("a broken stream is asked for again, and no call of it has run", async () => {
  const broken: ScriptedStep = {
    text: "half",
    calls: [{ name: "echo", complete: false }],
    end: { outcome: "truncated" },
  };
  const { play, model } = start([broken, { text: "whole" }], {
    isRetryable: (answer) => answer.outcome === "truncated",
  });
  const events = await play("go");
  expect(last(events)).toMatchObject({ reason: "done", text: "whole", calls: 0 });
  expect(model.requests).toHaveLength(2);
  expect(events.some((event) => event.type === "warning")).toBe(true);
});

test("a fault ends the turn, and still every call has its result, live and after a resume", async () => {
  const broken = defineTool({
    name: "broken",
    description: "Broken.",
    input: anything,
    parallel: true,
    run: () => {
      throw new Fault("the disk is gone");
    },
  });
  const calls = ["echo", "broken", "echo"].map((name, n) => ({ name, input: { n } }));
  const { play, session, journalPath } = start([{ calls }], { tools_: [echo, broken] });
  expect(last(await play("go"))).toMatchObject({ reason: "error", detail: "the disk is gone" });
  const results = session.history.filter((item) => item.type === "result");
  expect(results.map(({ callId, ok }) => [callId, ok])).toEqual([
    ["call_1_0", true],
    ["call_1_1", false],
    ["call_1_2", true],
  ]);
  expect(JSON.stringify(results)).not.toContain("disk"); // the operator's to know, not the model's
  expect(rebuildHistory(readJournal(journalPath).records)).toMatchObject({ items: session.history, interrupted: [] });
});

test("an error of the model ends the turn with its words", async () => {
  const { play } = start([{ end: { outcome: "error", error: { message: "no such key", type: "auth" } } }]);
  expect(last(await play("go"))).toMatchObject({ reason: "error", detail: "no such key" });
});

test("a history near the window is summarised, keeps the user's words, and the journal keeps what it replaced", async () => {
  const { play, session, model, journalPath } = start(
    [
      { calls: [{ name: "echo", input: { n: 1 } }], end: { usage: { input: 950, output: 10 } } },
      { text: "Hand-over: echo was called." },
      { text: "done" },
    ],
    { contextWindow: 1_000 },
  );
  const events = await play("find the fault");
  expect(events.some((event) => event.type === "history.compacted" && event.reason === "limit")).toBe(true);
  expect(JSON.stringify(model.requests[2]!.input)).toContain("find the fault");
  expect(JSON.stringify(model.requests[2]!.input)).toContain("Hand-over: echo was called.");
  expect(session.history.some((item) => item.type === "call")).toBe(false);
  const { records } = readJournal(journalPath);
  expect(records.some((record) => record.type === "item.added" && JSON.stringify(record).includes('"call"'))).toBe(
    true,
  );
  expect(rebuildHistory(records).items).toEqual(session.history);
});

test("a history the provider refuses as too long is summarised and sent again", async () => {
  const { play } = start([
    { end: { outcome: "error", error: { message: "too long", type: "context_overflow" } } },
    { text: "summary" },
    { text: "done" },
  ]);
  expect(last(await play("go"))).toMatchObject({ reason: "done", text: "done" });
});

test("the plan is an event, and survives a compaction", async () => {
  const { updatePlan } = await import("../../src/tools/index.ts");
  const plan = { plan: [{ step: "mend it", status: "in_progress" }] };
  const { play, session, model } = start(
    [{ calls: [{ name: "update_plan", input: plan }] }, { text: "ok" }, { text: "summary" }],
    { tools_: [updatePlan] },
  );
  expect((await play("go")).find((event) => event.type === "plan.updated")).toEqual({ type: "plan.updated", plan });
  await session.compact();
  expect(JSON.stringify(session.history)).toContain("mend it");
  expect(model.requests).toHaveLength(3);
});

test("the prefix of each request is the request before it, byte for byte", async () => {
  const { play, model } = start(
    [1, 2, 3].map((n) => ({ calls: [{ name: "echo", input: { n } }] })).concat([{ text: "ok" } as never]),
  );
  await play("go");
  const texts = model.requests.map(({ input, instructions, tools }) =>
    JSON.stringify([instructions, tools, input]).slice(0, -2),
  );
  expect(texts).toHaveLength(4);
  for (const [index, text] of texts.slice(1).entries()) expect(text.startsWith(texts[index]!)).toBe(true);
});

const long = (mark: string) =>
  Array.from({ length: 60 }, (_, line) => `line ${line} of a long output, ${mark}`).join("\n");
const report = defineTool({
  name: "report",
  description: "A long text.",
  input: { type: "object", properties: { of: { type: "string" }, again: { type: "number" } }, required: ["of"] },
  parallel: true,
  run: ({ of }) => long(of),
});
const ask = (of: string, again: number) => ({ calls: [{ name: "report", input: { of, again } }] });

test("a long result that the model has already is named, not sent again; a changed one is sent", async () => {
  const { model, play } = start([ask("a", 1), ask("a", 2), ask("b", 3), ask("a", 4), { text: "done" }], {
    tools_: [report],
  });
  const events = await play("go");
  const results = model.requests.at(-1)!.input.flatMap((item) => (item.type === "result" ? [item] : []));
  const words = results.map(({ content }) => content.map((part) => (part.type === "text" ? part.text : "")).join(""));
  const named = 'Unchanged: to the letter the same as the result of report {"of":"a","again":1} above (60 lines).';
  expect(words).toEqual([long("a"), named, long("b"), named]);
  // Whoever listens hears what each call really gave.
  const ended = events.flatMap((event) => (event.type === "call.ended" ? [event.call.content] : []));
  expect(ended.map(([part]) => part)).toEqual(["a", "a", "b", "a"].map((of) => ({ type: "text", text: long(of) })));
});

test("what a compaction took out of the history is sent again", async () => {
  const { model, play, session } = start(
    [ask("a", 1), { text: "first" }, { text: "short form" }, ask("a", 2), { text: "done" }],
    {
      tools_: [report],
    },
  );
  await play("go");
  await session.compact();
  await play("again");
  const sent = model.requests.at(-1)!.input.flatMap((item) => (item.type === "result" ? item.content : []));
  expect(sent).toEqual([{ type: "text", text: long("a") }]);
});

test("each request begins with the whole of the one before: a provider's cache gives back all that was sent", async () => {
  const steps = Array.from({ length: 12 }, (_, index) => ask(`part ${index % 5}`, index));
  const { model, play } = start([...steps, { text: "done" }], { tools_: [report] });
  await play("go");
  const prompts = model.requests.map(({ tools, instructions, input }) =>
    JSON.stringify([tools, instructions, ...input]).slice(0, -1),
  );
  for (const [index, prompt] of prompts.slice(1).entries()) expect(prompt.startsWith(prompts[index]!)).toBe(true);
});

test.each<[string, ScriptedStep, string]>([
  ["refuses without a word", { end: { outcome: "ok", finish: "refusal" } }, "The model refused to answer."],
  [
    "is stopped by a filter",
    { text: "half", end: { outcome: "ok", finish: "content_filter" } },
    "The answer was stopped by the provider's filter.",
  ],
])("a model that %s ends the turn, and it is said", async (_what, step, detail) => {
  const { play } = start([step, { text: "never" }]);
  expect(last(await play("go"))).toMatchObject({ reason: "error", detail });
});

test.each<[string, ScriptedStep, boolean]>([
  ["a stream that broke off with nothing", { end: { outcome: "truncated" } }, true],
  ["a stream that broke off in the middle", { text: "half", end: { outcome: "truncated" } }, true],
  [
    "a connection lost in the middle",
    { text: "half", end: { outcome: "error", error: { message: "x", type: "network" } } },
    true,
  ],
  [
    "an error of the model in the middle",
    { text: "half", end: { outcome: "error", error: { message: "x", type: "server" } } },
    false,
  ],
])("%s is asked for again, or not", async (_what, step, isAgain) => {
  const { play, model, session } = start([step, { text: "whole" }]);
  expect(last(await play("go"))).toMatchObject(isAgain ? { reason: "done", text: "whole" } : { reason: "error" });
  expect(model.requests).toHaveLength(isAgain ? 2 : 1);
  if (isAgain) expect(JSON.stringify(session.history)).not.toContain("half");
});

test("whoever leaves the loop early waits until the turn has come to rest, and can go on at once", async () => {
  const { session, model } = start([{ calls: [{ name: "slow" }] }, { text: "on" }]);
  for await (const event of session.send("go")) if (event.type === "call.permitted") break;
  expect(session.history.at(-1)).toMatchObject({ type: "message", role: "user" });
  expect(JSON.stringify(session.history)).toContain("interrupted");
  for await (const event of session.send("again")) if (event.type === "turn.ended") expect(event.text).toBe("on");
  expect(model.requests).toHaveLength(2);
  await session.close();
});

test("a turn that runs takes no second one beside it", async () => {
  const { session } = start([{ calls: [{ name: "slow" }] }]);
  for await (const event of session.send("go")) {
    if (event.type !== "call.permitted") continue;
    await expect(session.send("beside")[Symbol.asyncIterator]().next()).rejects.toThrow("A turn is running already");
    session.interrupt();
  }
  await session.close();
});
