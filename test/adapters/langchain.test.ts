/** `callgate/langchain` with the real packages: LangGraph's own agent loop, interrupts, a restart. */
import { AIMessage, HumanMessage, type BaseMessage, type ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, END, MemorySaver, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { fromLangChain } from "../../src/adapters/from.ts";
import { toLangChainTools } from "../../src/adapters/langchain.ts";
import { openCallFolder } from "../../src/store/index.ts";
import { createEngine, type Engine } from "../../src/index.ts";
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

type Call = { readonly name: string; readonly args: Record<string, unknown>; readonly id: string };

/** A graph with a model that asks for these calls once, and then ends. */
function graphOf(tools: ReturnType<typeof toLangChainTools>, calls: readonly Call[], saver = new MemorySaver()) {
  return new StateGraph(MessagesAnnotation)
    .addNode("model", ({ messages }) => ({
      messages: [
        messages.some((message) => message.getType() === "tool")
          ? new AIMessage("end")
          : new AIMessage({ content: "", tool_calls: calls.map((call) => ({ ...call, type: "tool_call" as const })) }),
      ],
    }))
    .addNode("tools", new ToolNode(tools))
    .addEdge("__start__", "model")
    .addConditionalEdges("model", ({ messages }) =>
      ((messages.at(-1) as AIMessage).tool_calls ?? []).length > 0 ? "tools" : END,
    )
    .addEdge("tools", "model")
    .compile({ checkpointer: saver });
}

const start = { messages: [new HumanMessage("go")] };
const toolMessages = (messages: readonly BaseMessage[]) =>
  messages.filter((message): message is ToolMessage => message.getType() === "tool");

test("tools run with their images, the whole ending beside them", async () => {
  const { engine, runs } = three();
  const graph = graphOf(toLangChainTools(engine), [
    { name: "picture", args: {}, id: "c1" },
    { name: "count", args: { to: 2 }, id: "c2" },
  ]);
  const { messages } = await graph.invoke(start, { configurable: { thread_id: "t" } });
  const [picture, count] = toolMessages(messages);
  expect(picture!.content).toEqual([
    { type: "text", text: "one pixel" },
    { type: "image", data: pixel, mimeType: "image/png" },
  ]);
  expect(count).toMatchObject({ content: "counted to 2", status: "success", artifact: { ok: true, tool: "count" } });
  expect(runs).toMatchObject({ picture: 1, count: 1 });
});

test("an interrupt is answered after a restart; neither that call nor its siblings run twice", async () => {
  const first = three();
  const saver = new MemorySaver();
  const calls = [
    { name: "picture", args: {}, id: "c1" },
    { name: "publish", args: { text: "hello" }, id: "c2" },
  ];
  const config = { configurable: { thread_id: "t" } };
  const begun = await graphOf(
    toLangChainTools(first.engine, { store: openCallFolder(first.folder) }),
    calls,
    saver,
  ).invoke(start, config);
  expect(JSON.stringify(begun)).toContain("everybody will read it");
  expect(first.runs).toMatchObject({ picture: 1, publish: [] });

  const second = three({ workspace: first.engine.workspace });
  const goingOn = graphOf(toLangChainTools(second.engine, { store: openCallFolder(first.folder) }), calls, saver);
  const { messages } = await goingOn.invoke(new Command({ resume: { approved: true } }), config);
  expect(second.runs).toMatchObject({ picture: 0, publish: ["hello"] });
  const [picture, publish] = toolMessages(messages);
  expect(JSON.stringify(picture!.content)).toContain(pixel);
  expect(publish).toMatchObject({ content: "published: hello", status: "success" });
});

test("in one process a sibling that ended gives the same result without a second run", async () => {
  const { engine, runs } = three();
  const tools = toLangChainTools(engine);
  const graph = graphOf(tools, [
    { name: "count", args: { to: 1 }, id: "c1" },
    { name: "publish", args: { text: "x" }, id: "c2" },
  ]);
  const config = { configurable: { thread_id: "t" } };
  await graph.invoke(start, config);
  const { messages } = await graph.invoke(new Command({ resume: { approved: true } }), config);
  expect(runs).toMatchObject({ count: 1, publish: ["x"] });
  expect(toolMessages(messages).map(({ content }) => content)).toEqual(["counted to 1", "published: x"]);
  // The same id in another thread is another call.
  await graph.invoke(start, { configurable: { thread_id: "u" } });
  expect(runs.count).toBe(2);
});

test.each([
  ["a no", { approved: false, message: "Not today." }],
  ["a word nobody knows", "maybe"],
])("%s keeps the call from running, and the model is told", async (_name, resume) => {
  const { engine, runs } = three();
  const graph = graphOf(toLangChainTools(engine), [{ name: "publish", args: { text: "x" }, id: "c1" }]);
  const config = { configurable: { thread_id: "t" } };
  await graph.invoke(start, config);
  const { messages } = await graph.invoke(new Command({ resume }), config);
  expect(runs.publish).toEqual([]);
  expect(toolMessages(messages)).toMatchObject([{ status: "error", artifact: { code: "rejected" } }]);
  if (typeof resume === "object") expect(toolMessages(messages)[0]!.content).toContain("Not today.");
});

test("without a graph nobody can answer, and the call is refused; an abort reaches the call", async () => {
  const { engine, runs } = three();
  const [, , publish, wait] = toLangChainTools(engine).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const refused = (await publish!.invoke({
    type: "tool_call",
    id: "c1",
    name: "publish",
    args: { text: "x" },
  } as never)) as ToolMessage;
  expect(refused).toMatchObject({ status: "error", artifact: { code: "needs_approval" } });
  expect(runs.publish).toEqual([]);

  const stop = new AbortController();
  engine.on(({ type }) => {
    if (type === "call.progress") stop.abort();
  });
  await wait!
    .invoke({ type: "tool_call", id: "c2", name: "wait", args: {} } as never, { signal: stop.signal })
    .catch(() => undefined);
  expect(runs.stopped).toBe(1);
});

test("their tools run in our engine, with images", async () => {
  const show = tool(
    async ({ what }: { what: string }) => [
      { type: "text", text: what },
      { type: "image_url", image_url: { url: `data:image/png;base64,${pixel}` } },
    ],
    { name: "show", description: "shows", schema: z.object({ what: z.string() }) },
  );
  const engine = createEngine({ tools: [fromLangChain(show, { mutates: false })] });
  open.push(engine);
  expect((await engine.call("show", { what: "it" })).content).toEqual([
    { type: "text", text: "it" },
    { type: "image", data: pixel, mediaType: "image/png" },
  ]);
});
