// Governed tools in Anthropic's tool runner.
import Anthropic from "@anthropic-ai/sdk";
import { createEngine, defineTool } from "callgate";
import { createScriptedModel, serveModel } from "callgate/testing";

const look = defineTool({ name: "look", description: "Looks.", input: { type: "object" }, run: () => "a cat" });
const engine = createEngine({ tools: [look] });
const server = await serveModel(createScriptedModel([{ calls: [{ name: "look" }] }, { text: "It is a cat." }]));
const client = new Anthropic({ apiKey: "none", baseURL: server.baseUrl.replace(/\/v1$/, "") });

const tools = engine.registry.openapiSchemas().map(({ function: { name, description, parameters } }) => ({
  type: "custom" as const,
  name,
  description,
  input_schema: { ...parameters, type: "object" as const },
  parse: (input: unknown) => input,
  run: async (input: unknown, at?: { signal?: AbortSignal | null }) =>
    (await engine.call(name, JSON.stringify(input), at?.signal ?? undefined)).text,
}));
const answer = await client.beta.messages.toolRunner({
  model: "any",
  max_tokens: 1000,
  messages: [{ role: "user", content: "What is it?" }],
  tools,
  thread: false,
});
console.log(answer.content.map((block) => (block.type === "text" ? block.text : "")).join(""));
await server.close();
await engine.close();
