/** `callgate/agents` with the real OpenAI Agents SDK, driven by a model that says what the test tells it. */
import { Agent, Runner, RunState, tool, type AgentInputItem, type Model, type ModelRequest } from "@openai/agents";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { toAgentsTools } from "../../src/adapters/agents.ts";
import { openCallFolder } from "../../src/store/index.ts";
import { fromAgents } from "../../src/adapters/from.ts";
import { createEngine, type ApprovalRequest, type Engine } from "../../src/index.ts";
import { createThree, pixel } from "./three-tools.ts";

const open: Engine[] = [];
afterEach(async () => {
  for (const engine of open.splice(0)) await engine.close();
});
const three: typeof createThree = (options) => {
  const made = createThree(options);
  open.push(made.engine);
  return made;
};

type Call = { readonly name: string; readonly input?: object; readonly id: string };

/** The SDK's own model interface: answers from a list. */
function scripted(steps: readonly (readonly Call[] | string)[]): Model & { readonly asked: ModelRequest[] } {
  const asked: ModelRequest[] = [];
  const answer = (request: ModelRequest) => {
    const step = steps[asked.length] ?? "end";
    asked.push(request);
    const output =
      typeof step === "string"
        ? [
            {
              type: "message" as const,
              role: "assistant" as const,
              status: "completed" as const,
              content: [{ type: "output_text" as const, text: step }],
            },
          ]
        : step.map(({ name, input = {}, id }) => ({
            type: "function_call" as const,
            callId: id,
            name,
            status: "completed" as const,
            arguments: JSON.stringify(input),
          }));
    const usage = { requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    return { usage, output };
  };
  return {
    asked,
    getResponse: async (request) => answer(request) as never,
    async *getStreamedResponse(request) {
      yield { type: "response_done", response: { id: "r", ...answer(request) } } as never;
    },
  };
}

const runner = (model: Model) => new Runner({ model, tracingDisabled: true });
const results = (input: ModelRequest["input"]): AgentInputItem[] =>
  (input as AgentInputItem[]).filter(({ type }) => type === "function_call_result");

test("tools run with their images, and the model is told them", async () => {
  const { engine, runs } = three();
  const model = scripted([
    [
      { name: "picture", id: "c1" },
      { name: "count", input: { to: 2 }, id: "c2" },
    ],
    "seen",
  ]);
  const end = await runner(model).run(new Agent({ name: "a", tools: toAgentsTools(engine) }), "look");
  expect(end.finalOutput).toBe("seen");
  expect(runs).toMatchObject({ picture: 1, count: 1 });
  const told = JSON.stringify(results(model.asked[1]!.input));
  expect(told).toContain(pixel);
  expect(told).toContain("counted to 2");
});

test("an interruption is answered after a restart, counts for that call, and runs it once", async () => {
  const first = three();
  const questions: ApprovalRequest[] = [];
  const steps = [
    [
      { name: "picture", id: "c1" },
      { name: "publish", input: { text: "hello" }, id: "c2" },
    ],
  ];
  const tools = toAgentsTools(first.engine, {
    store: openCallFolder(first.folder),
    onQuestion: (request) => questions.push(request),
  });
  const begun = await runner(scripted(steps)).run(new Agent({ name: "a", tools }), "go");
  expect(begun.interruptions).toHaveLength(1);
  expect(questions).toMatchObject([{ call: { tool: "publish", input: { text: "hello" } } }]);
  expect(first.runs).toMatchObject({ picture: 1, publish: [] });
  const text = begun.state.toString();

  const second = three({ workspace: first.engine.workspace });
  const goOn = async (written: string) => {
    const agent = new Agent({
      name: "a",
      tools: toAgentsTools(second.engine, { store: openCallFolder(first.folder) }),
    });
    const state = await RunState.fromString(agent, written);
    for (const interruption of state.getInterruptions()) state.approve(interruption);
    const model = scripted(["out"]);
    const end = await runner(model).run(agent, state);
    return { end, told: JSON.stringify(results(model.asked[0]!.input)) };
  };
  const { end, told } = await goOn(text);
  expect(end.finalOutput).toBe("out");
  expect(told).toContain("published: hello");
  expect(second.runs).toMatchObject({ picture: 0, publish: ["hello"] });
  // The same state once more: it has run.
  expect((await goOn(text)).told).toContain("published: hello");
  expect(second.runs.publish).toEqual(["hello"]);
  // The yes was for other words.
  const forged = await goOn(text.replaceAll("hello", "evil"));
  expect(second.runs.publish).toEqual(["hello"]);
  expect(forged.told).not.toContain("published: evil");
});

test("a no keeps the call from running, and an abort reaches it", async () => {
  const { engine, runs } = three();
  const agent = new Agent({ name: "a", tools: toAgentsTools(engine) });
  const begun = await runner(scripted([[{ name: "publish", input: { text: "x" }, id: "c1" }]])).run(agent, "go");
  for (const interruption of begun.interruptions) begun.state.reject(interruption);
  await runner(scripted(["fine"])).run(agent, begun.state);
  expect(runs.publish).toEqual([]);

  const stop = new AbortController();
  engine.on(({ type }) => {
    if (type === "call.progress") stop.abort();
  });
  const waiting = runner(scripted([[{ name: "wait", id: "c2" }]])).run(agent, "wait", { signal: stop.signal });
  await waiting.catch(() => undefined);
  expect(runs.stopped).toBe(1);
});

test("their tools run in our engine, images included, and what asks there asks here", async () => {
  const given: unknown[] = [];
  const looks = { mutates: false };
  const add = tool({
    name: "add",
    description: "adds",
    parameters: z.object({ a: z.number() }),
    async execute(input) {
      given.push(input);
      return [{ type: "image" as const, image: { data: pixel, mediaType: "image/png" } }];
    },
  });
  const careful = tool({
    name: "careful",
    description: "asks",
    parameters: z.object({}),
    needsApproval: true,
    execute: async () => "done",
  });
  const engine = createEngine({ tools: [fromAgents(add, looks), fromAgents(careful, looks)] });
  open.push(engine);
  expect((await engine.call("add", { a: 1 })).content).toEqual([
    { type: "image", data: pixel, mediaType: "image/png" },
  ]);
  expect(given).toEqual([{ a: 1 }]);
  expect(await engine.call("careful", {})).toMatchObject({ ok: false, code: "needs_approval" });
  expect(await engine.call("add", { a: "x" })).toMatchObject({ ok: false, code: "invalid_input" });
});
