// Governed tools in LangGraph: a call that needs a person interrupts the graph, and no call runs twice.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Command, END, MemorySaver, MessagesAnnotation, StateGraph } from "@langchain/langgraph";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { createEngine, defineTool } from "callgate";
import { toLangChainTools } from "callgate/langchain";
import { openCallFolder } from "callgate/store";

const deploy = defineTool({
  name: "deploy",
  description: "Puts a version online.",
  input: { type: "object", properties: { version: { type: "string" } }, required: ["version"] },
  mutates: true,
  run: ({ version }) => `version ${version} is online`,
});
const engine = createEngine({ tools: [deploy] });
const tools = toLangChainTools(engine, { store: openCallFolder(".callgate/calls") });
// For real use: any chat model with `.bindTools(tools)`.
const call = { type: "tool_call", id: "call-1", name: "deploy", args: { version: "1.2" } } as const;
const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", ({ messages }) => ({
    messages: [messages.length > 1 ? new AIMessage("done") : new AIMessage({ content: "", tool_calls: [call] })],
  }))
  .addNode("tools", new ToolNode(tools))
  .addEdge("__start__", "model")
  .addConditionalEdges("model", ({ messages }) => (messages.length === 2 ? "tools" : END))
  .addEdge("tools", "model")
  .compile({ checkpointer: new MemorySaver() });

const config = { configurable: { thread_id: "one" } };
const waiting = await graph.invoke({ messages: [new HumanMessage("Put 1.2 online.")] }, config);
console.log(JSON.stringify(waiting).includes("callgate.approval")); // the question, for whoever answers
const { messages } = await graph.invoke(new Command({ resume: { approved: true } }), config);
console.log(messages.find((message) => message.getType() === "tool")?.content);
await engine.close();
