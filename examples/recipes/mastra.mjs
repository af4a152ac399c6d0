// Governed tools in a Mastra agent.
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { createEngine, defineTool } from "callgate";
import { createScriptedModel, serveModel } from "callgate/testing";

const look = defineTool({ name: "look", description: "Looks.", input: { type: "object" }, run: () => "a cat" });
const engine = createEngine({ tools: [look] });
const tools = Object.fromEntries(
  engine.registry.openapiSchemas().map(({ function: { name, description, parameters } }) => [
    name,
    createTool({
      id: name,
      description,
      inputSchema: parameters,
      execute: async (input, ctx) => (await engine.call(name, input, ctx?.abortSignal)).text,
    }),
  ]),
);
// In real use: a name of Mastra's own, or the address of `callgate gateway`, for any model.
const server = await serveModel(createScriptedModel([{ calls: [{ name: "look" }] }, { text: "It is a cat." }]));
const model = { id: "custom/any", url: server.baseUrl, apiKey: "none" };
const agent = new Agent({ id: "looker", name: "looker", instructions: "Look.", model, tools });
console.log((await agent.generate("What is it?")).text);
await server.close();
await engine.close();
