// Governed tools in openai's runTools.
import OpenAI from "openai";
import { createEngine, defineTool, type JsonObject } from "callgate";
import { createScriptedModel, serveModel } from "callgate/testing";

const look = defineTool({ name: "look", description: "Looks.", input: { type: "object" }, run: () => "a cat" });
const engine = createEngine({ tools: [look] });
const server = await serveModel(createScriptedModel([{ calls: [{ name: "look" }] }, { text: "It is a cat." }]));
const client = new OpenAI({ apiKey: "none", baseURL: server.baseUrl });

const tools = engine.registry.openapiSchemas().map(({ function: { name, description, parameters } }) => ({
  type: "function" as const,
  function: {
    name,
    description,
    parameters: { ...parameters },
    parse: (text: string) => JSON.parse(text) as JsonObject,
    function: async (input: JsonObject, runner: { controller: AbortController }) =>
      (await engine.call(name, input, runner.controller.signal)).text,
  },
}));
const runner = client.chat.completions.runTools({
  model: "any",
  messages: [{ role: "user", content: "What is it?" }],
  tools,
});
console.log(await runner.finalContent());
await server.close();
await engine.close();
