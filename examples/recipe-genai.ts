// Governed tools in @google/genai, which calls them by itself.
import { GoogleGenAI, type CallableTool } from "@google/genai";
import { createEngine, defineTool, type JsonObject } from "callgate";
import { createScriptedModel, serveModel } from "callgate/testing";

const look = defineTool({ name: "look", description: "Looks.", input: { type: "object" }, run: () => "a cat" });
const engine = createEngine({ tools: [look] });
const server = await serveModel(createScriptedModel([{ calls: [{ name: "look" }] }, { text: "It is a cat." }]));
const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: server.baseUrl.replace(/\/v1$/, "") } });

const tools: CallableTool = {
  tool: async () => ({
    functionDeclarations: engine.registry.openapiSchemas().map(({ function: { name, description, parameters } }) => ({
      name,
      description,
      parametersJsonSchema: parameters,
    })),
  }),
  callTool: (calls) =>
    Promise.all(
      calls.map(async ({ id, name = "", args = {} }) => {
        const { ok, text } = await engine.call(name, args as JsonObject);
        return { functionResponse: { id: id ?? "", name, response: ok ? { output: text } : { error: text } } };
      }),
    ),
};
const answer = await client.models.generateContent({
  model: "any",
  contents: "What is it?",
  config: { tools: [tools] },
});
console.log(answer.text);
await server.close();
await engine.close();
