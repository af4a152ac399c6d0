/** Tools of other libraries as ours, and what `defineTool` says when it is handed one. */
import { jsonSchema, tool } from "ai";
import { tool as langChainTool } from "@langchain/core/tools";
import { tool as agentsTool } from "@openai/agents";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { fromAiSdk, fromOpenAi } from "../../src/adapters/from.ts";
import { createEngine, defineTool, type CallEvent, type Engine } from "../../src/index.ts";
import { pixel } from "./three-tools.ts";

const open: Engine[] = [];
afterEach(async () => {
  for (const engine of open.splice(0)) await engine.close();
});
const engineWith = (...tools: Parameters<typeof createEngine>[0]["tools"] & object) => {
  const engine = createEngine({ tools });
  open.push(engine);
  return engine;
};

const looks = { mutates: false };

test("what a foreign tool may change is not known until somebody says so: it is asked about", async () => {
  const quiet = tool({ description: "x", inputSchema: z.object({}), execute: async () => "done" });
  expect(await engineWith(fromAiSdk("quiet", quiet)).call("quiet")).toMatchObject({ code: "needs_approval" });
  expect(await engineWith(fromAiSdk("quiet", quiet, looks)).call("quiet")).toMatchObject({ ok: true });
});

test("a tool of the AI SDK keeps its schema, its id and its signal", async () => {
  const seen: unknown[] = [];
  const weather = tool({
    description: "weather",
    inputSchema: z.object({ city: z.string() }),
    async execute({ city }, { toolCallId, abortSignal }) {
      seen.push(toolCallId, abortSignal instanceof AbortSignal);
      return { city, degrees: 7 };
    },
  });
  const engine = engineWith(fromAiSdk("weather", weather, looks));
  const ended = await engine.call("weather", { city: "Bern" });
  expect(ended.structured ?? JSON.parse(ended.text)).toEqual({ city: "Bern", degrees: 7 });
  expect(seen).toEqual([ended.id, true]);
  expect(await engine.call("weather", { city: 5 })).toMatchObject({ code: "invalid_input" });
});

test("its generator's last value is the result, the others are progress; its image stays an image", async () => {
  const stream = tool({
    description: "streams",
    inputSchema: jsonSchema<{ to: number }>({
      type: "object",
      properties: { to: { type: "number" } },
      required: ["to"],
    }),
    async *execute({ to }) {
      for (let at = 1; at <= to; at++) yield `at ${at}`;
    },
    toModelOutput: ({ output }) => ({
      type: "content" as const,
      value: [
        { type: "text" as const, text: String(output) },
        { type: "image-data" as const, data: pixel, mediaType: "image/png" },
      ],
    }),
  });
  const engine = engineWith(fromAiSdk("stream", stream, looks));
  const events: CallEvent[] = [];
  engine.on((event) => events.push(event));
  const ended = await engine.call("stream", { to: 3 });
  expect(ended.content).toEqual([
    { type: "text", text: "at 3" },
    { type: "image", data: pixel, mediaType: "image/png" },
  ]);
  expect(events.flatMap((event) => (event.type === "call.progress" ? [event.progress] : []))).toEqual(["at 1", "at 2"]);
  expect(await engine.call("stream", { to: "x" })).toMatchObject({ code: "invalid_input" });
});

test("an abort in the middle reaches a foreign tool, and a yes after a restart runs it once", async () => {
  let ran = 0;
  let begun = () => {};
  const began = new Promise<void>((resolve) => (begun = resolve));
  const slow = tool({
    description: "waits",
    inputSchema: z.object({}),
    execute: (_, { abortSignal }) =>
      new Promise<string>((_resolve, reject) => {
        begun();
        abortSignal?.addEventListener("abort", () => reject(abortSignal.reason as Error));
      }),
  });
  const stop = new AbortController();
  const running = engineWith(fromAiSdk("slow", slow, looks)).call("slow", {}, stop.signal);
  await began;
  stop.abort();
  expect(await running).toMatchObject({ ok: false, code: "aborted" });

  const send = tool({
    description: "sends",
    inputSchema: z.object({ to: z.string() }),
    execute: async ({ to }) => `sent to ${to}, ${++ran}`,
  });
  const asked = { id: "c1", name: "send", kind: "function", arguments: '{"to":"Ada"}', askedAt: 0 } as const;
  const { request } = await engineWith(fromAiSdk("send", send)).decide(asked);
  const approved = request?.hash ?? "";
  const later = engineWith(fromAiSdk("send", send));
  const { signal } = new AbortController();
  const other = { ...asked, arguments: '{"to":"Ben"}' };
  expect(await later.run(other, signal, { approved })).toMatchObject({ code: "needs_approval" });
  expect(await later.run(asked, signal, { approved })).toMatchObject({
    ok: true,
    content: [{ type: "text", text: "sent to Ada, 1" }],
  });
  expect(ran).toBe(1);
});

test("a tool that asks in its own library is taken only with a rule that asks here", async () => {
  const send = tool({
    description: "sends",
    inputSchema: z.object({}),
    needsApproval: true,
    execute: async () => "sent",
  });
  expect(() => fromAiSdk("send", send)).toThrow(/decision: "ask"/);
  const engine = createEngine({
    tools: [fromAiSdk("send", send, { needsApproval: "by rule" })],
    gate: { rules: [{ tool: "send", decision: "ask" }] },
  });
  open.push(engine);
  expect(await engine.call("send")).toMatchObject({ code: "needs_approval" });
  const sometimes = tool({
    description: "sends",
    inputSchema: z.object({ loud: z.boolean() }),
    needsApproval: ({ loud }) => loud,
    execute: async () => "sent",
  });
  const other = engineWith(fromAiSdk("sometimes", sometimes, looks));
  expect(await other.call("sometimes", { loud: false })).toMatchObject({ ok: true });
  expect(await other.call("sometimes", { loud: true })).toMatchObject({ ok: false, code: "needs_approval" });
});

test("whatever is no clear no is a yes to asking", async () => {
  const execute = async () => "sent";
  const inputSchema = z.object({});
  const odd = { inputSchema, execute, needsApproval: "always" };
  expect(() => fromAiSdk("send", odd, looks)).toThrow(/decision: "ask"/);
  const words = { inputSchema, execute, needsApproval: () => "user-approval" };
  expect(await engineWith(fromAiSdk("send", words, looks)).call("send")).toMatchObject({ code: "needs_approval" });
});

test("a function of OpenAI's APIs in both forms", async () => {
  const parameters = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
  const chat = { type: "function", function: { name: "twice", description: "doubles", parameters } } as const;
  const responses = { type: "function", name: "thrice", description: "triples", parameters } as const;
  const engine = engineWith(
    fromOpenAi(chat, ({ a }) => Number(a) * 2, looks),
    fromOpenAi(responses, ({ a }) => Number(a) * 3, looks),
  );
  expect((await engine.call("twice", { a: 2 })).text).toBe("4");
  expect((await engine.call("thrice", { a: 2 })).text).toBe("6");
});

test("defineTool names the function that takes a foreign tool", () => {
  const define = (given: unknown) => () => defineTool(given as never);
  expect(define(tool({ description: "x", inputSchema: z.object({}), execute: async () => 1 }))).toThrow(/fromAiSdk/);
  expect(define(langChainTool(async () => "x", { name: "x", description: "x", schema: z.object({}) }))).toThrow(
    /fromLangChain/,
  );
  expect(
    define(agentsTool({ name: "x", description: "x", parameters: z.object({}), execute: async () => "x" })),
  ).toThrow(/fromAgents/);
  expect(define({ type: "function", function: { name: "x", parameters: {} } })).toThrow(/fromOpenAi/);
  expect(define({ name: "x", description: "x", inputSchema: {}, handler: () => 1 })).toThrow(/fromObject/);
  expect(define({ name: "x", description: "x", input: jsonSchema({ type: "object" }), run: () => 1 })).toThrow(
    /jsonSchema/,
  );
});
