// A tool of ours in Vercel's AI SDK, with a model of any of its providers.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs } from "ai";
import { createEngine, defineTool } from "callgate";
import { toAiSdkTools } from "callgate/ai-sdk";
import { createScriptedModel, serveModel } from "callgate/testing";

const add = defineTool({
  name: "add",
  description: "Add two numbers.",
  input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  run: ({ a, b }) => `${a + b}`,
});
const engine = createEngine({ tools: [add] });
const { tools } = toAiSdkTools(engine);

// A server that needs no key plays the model. For real use: `model: openai("gpt-…")`, or another provider's.
const server = await serveModel(
  createScriptedModel([{ calls: [{ name: "add", input: { a: 2, b: 40 } }] }, { text: "It is 42." }]),
);
const provider = createOpenAICompatible({ name: "local", baseURL: server.baseUrl });
const prompt = "What is 2 + 40?";
const { text } = await generateText({ model: provider("any"), tools, prompt, stopWhen: stepCountIs(5) });
console.log(text); // It is 42.
await server.close();
await engine.close();
