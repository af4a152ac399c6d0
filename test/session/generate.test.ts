/** A prompt in, a checked result out; agents as tools of agents, and one taking over from another. */
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { z } from "zod";
import { createEngine, defineTool } from "../../src/index.ts";
import { createAgent, createSession, generate, GenerateError, stream } from "../../src/session/index.ts";
import { createScriptedModel } from "../../src/testing/index.ts";

const add = defineTool({
  name: "add",
  description: "Adds.",
  input: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => a + b,
});
const sum = z.object({ sum: z.number() });

test("a prompt, a tool and a schema give a typed value", async () => {
  const model = createScriptedModel([
    { calls: [{ name: "add", input: { a: 40, b: 2 } }] },
    { text: "42" },
    { text: '{"sum":42}' },
  ]);
  const made = await generate({ model, tools: [add], prompt: "40 + 2?", output: sum });
  const value: number = made.output.sum;
  expect({ value, calls: made.calls, requests: made.requests }).toEqual({ value: 42, calls: 1, requests: 3 });
});

test("the words come as a stream, and the result after them", async () => {
  const answer = stream({ model: createScriptedModel([{ text: "hello there" }]), prompt: "hi" });
  let words = "";
  for await (const piece of answer.text) words += piece;
  expect(words).toBe("hello there");
  expect((await answer.result).text).toBe("hello there");
});

test("no result is an error that says why, and a loop left early stops everything", async () => {
  const never = createScriptedModel(Array.from({ length: 3 }, () => ({ text: "no" })));
  await expect(generate({ model: never, prompt: "?", output: sum })).rejects.toMatchObject({ reason: "error" });
  const slow = defineTool({
    name: "slow",
    description: "Waits.",
    input: { type: "object" },
    run: (_input, ctx) =>
      new Promise((_resolve, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error))),
  });
  const left = stream({ model: createScriptedModel([{ calls: [{ name: "slow" }] }]), tools: [slow], prompt: "?" });
  for await (const event of left) if (event.type === "call.permitted") break;
  const error = await left.result.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(GenerateError);
  expect((error as GenerateError).reason).toBe("interrupted");
  const signal = AbortSignal.abort();
  await expect(generate({ model: createScriptedModel([{ text: "x" }]), prompt: "?", signal })).rejects.toThrow(
    GenerateError,
  );
});

test("an agent is a tool of another: its calls are in the journal, below the call that made it", async () => {
  const adder = createAgent({
    name: "adder",
    description: "Adds numbers.",
    model: createScriptedModel([
      { calls: [{ name: "add", input: { a: 1, b: 2 } }, { name: "remove_everything" }] },
      { text: "It is 3." },
    ]),
    tools: [add],
  });
  const engine = createEngine({ tools: [adder.asTool(), ...adder.tools], workspace: "." });
  const records: Record<string, unknown>[] = [];
  const session = createSession({
    id: "outer",
    engine,
    model: createScriptedModel([
      { calls: [{ name: "adder", id: "outer_1", input: { task: "1 + 2" } }] },
      { text: "3" },
    ]),
    journal: { append: (record) => void records.push({ ...record }), close: () => undefined },
  });
  for await (const _ of session.send("add"));
  const outcome = session.history.find((item) => item.type === "result");
  expect(JSON.stringify(outcome)).toContain("It is 3.");
  const inner = records.filter(({ type, parent }) => type === "call.started" && parent === "outer_1");
  expect(inner).toMatchObject([{ tool: "add", input: { a: 1, b: 2 } }]);
  await session.close();
  await engine.close();
});

test("an agent stays within its own limits, and the one that asked is told", async () => {
  const endless = createScriptedModel(
    Array.from({ length: 9 }, () => ({ calls: [{ name: "add", input: { a: 1, b: 1 } }] })),
  );
  const worker = createAgent({
    name: "worker",
    description: "Works.",
    model: endless,
    tools: [add],
    limits: { maxRequests: 2 },
  });
  const boss = createAgent({
    name: "boss",
    description: "Asks.",
    model: createScriptedModel([
      { calls: [{ name: "worker", input: { task: "go" } }] },
      (request) => ({ text: JSON.stringify(request.input.at(-1)) }),
    ]),
    agents: [worker],
  });
  const { text } = await boss.generate("work");
  expect(text).toContain("limit of 2 requests");
  expect(endless.requests).toHaveLength(2);
});

test("a hand-off changes model, instructions and tools, and keeps the conversation", async () => {
  const second = createScriptedModel([{ calls: [{ name: "add", input: { a: 2, b: 2 } }] }, { text: "four" }], "second");
  const mathematician = createAgent({
    name: "mathematician",
    description: "Knows numbers.",
    model: second,
    tools: [add],
    instructions: "Count.",
  });
  const first = createScriptedModel([{ calls: [{ name: "hand_off_to_mathematician" }] }], "first");
  const front = createAgent({
    name: "front",
    description: "Greets.",
    model: first,
    instructions: "Greet.",
    handOffs: [mathematician],
  });
  const { text } = await front.generate("2 + 2?");
  expect(text).toBe("four");
  expect(first.requests[0]?.tools.map(({ name }) => name)).toEqual(["hand_off_to_mathematician"]);
  expect(second.requests[0]).toMatchObject({ model: "second", instructions: "Count." });
  expect(second.requests[0]?.tools.map(({ name }) => name)).toEqual(["add"]);
  expect(JSON.stringify(second.requests[0]?.input[0])).toContain("2 + 2?");
});

test("a signal is listened to until the end and no longer, and stops what runs", async () => {
  const controller = new AbortController();
  const { signal } = controller;
  await generate({ model: createScriptedModel([{ text: "done" }]), prompt: "?", signal });
  expect(getEventListeners(signal, "abort")).toEqual([]);
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    input: { type: "object" },
    run: (_input, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", () => resolve("stopped"))),
  });
  const model = createScriptedModel([{ text: "I wait.", calls: [{ name: "wait" }] }, { text: "never said" }]);
  const running = stream({ model, tools: [wait], prompt: "?", signal });
  const watch = async () => {
    for await (const event of running) if (event.type === "call.permitted") controller.abort();
  };
  await expect(watch()).rejects.toThrow(GenerateError); // whoever only reads the events learns of it too
  const error = await running.result.catch((reason: unknown) => reason as GenerateError);
  expect(error).toMatchObject({ reason: "interrupted", text: "I wait.", usage: { input: 0, output: 0 } });
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("a call that waits for a later answer is no result, and says so", async () => {
  const engine = createEngine({
    tools: [
      defineTool({ name: "change", description: "Changes.", input: { type: "object" }, mutates: true, run: () => "x" }),
    ],
    approval: "unless-trusted",
    approver: { ask: async () => "later" },
  });
  const error = await generate({
    model: createScriptedModel([{ calls: [{ name: "change" }] }]),
    engine,
    prompt: "?",
  }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: "GenerateError", reason: "waiting", text: "", usage: undefined });
  await engine.close();
});

test("an engine that was given stays open, and goes with no tools of its own beside it", async () => {
  const engine = createEngine({ tools: [add], approval: "never" });
  const ask = () =>
    generate({
      model: createScriptedModel([{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, { text: "3" }]),
      engine,
      prompt: "?",
    });
  expect((await ask()).history).toHaveLength(4);
  expect((await ask()).calls).toBe(1);
  expect(() => stream({ model: createScriptedModel([]), engine, tools: [add], prompt: "?" })).toThrow("not both");
  await engine.close();
});

test("a model that never comes to an end is stopped by a limit nobody had to set", async () => {
  const steps = Array.from({ length: 60 }, (_, n) => ({ calls: [{ name: "add", input: { a: n, b: 1 } }] }));
  const model = createScriptedModel(steps);
  const error = await generate({ model, tools: [add], prompt: "?" }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ reason: "limit", message: expect.stringContaining("50 requests") });
  expect(model.requests).toHaveLength(50);
});

test("a hand-off takes no arguments, and one who was not offered it cannot make it", async () => {
  const model = () =>
    createScriptedModel([{ calls: [{ name: "hand_off_to_second", input: { why: "x" } }] }, { text: "still here" }]);
  const second = createAgent({
    name: "second",
    description: "Second.",
    model: createScriptedModel([{ text: "never" }]),
  });
  const asking = model();
  const first = createAgent({ name: "first", description: "First.", model: asking, handOffs: [second] });
  const { text, history } = await first.generate("go");
  expect(text).toBe("still here");
  expect(JSON.stringify(history)).toContain("why");
  expect(history.some((item) => item.type === "result" && !item.ok)).toBe(true);
  const alone = createAgent({ name: "alone", description: "Alone.", model: model() });
  expect(JSON.stringify((await alone.generate("go")).history)).toContain("Unknown tool");
});

test("what cannot be an agent is refused when it is made", () => {
  const model = createScriptedModel([]);
  for (const name of ["1st", "two words", "", "a/b", "-x"])
    expect(() => createAgent({ name, description: "x", model })).toThrow("beginning with a letter");
  const handing = createAgent({
    name: "a",
    description: "x",
    model,
    handOffs: [createAgent({ name: "b", description: "x", model })],
  });
  expect(() => handing.asTool()).toThrow("hands over to others");
  expect(() => createAgent({ name: "twice", description: "x", model, tools: [add, add] })).toThrow("add");
});
