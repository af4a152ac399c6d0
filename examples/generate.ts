/** A prompt in, a checked value out; and an agent that is a tool of another. The models here are scripted. */
import { defineTool } from "callgate";
import { createAgent, generate } from "callgate/session";
import { createScriptedModel } from "callgate/testing";

const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  input: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  run: ({ a, b }) => a + b,
});
const sum = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] } as const;
const model = createScriptedModel([{ calls: [{ name: "add", input: { a: 40, b: 2 } }] }, { text: '{"sum":42}' }]);

const { output } = await generate({ model, tools: [add], prompt: "What is 40 + 2?", output: sum });
console.log(output.sum);

const adder = createAgent({
  name: "adder",
  description: "Adds numbers.",
  model: createScriptedModel([{ calls: [{ name: "add", input: { a: 1, b: 2 } }] }, { text: "3" }]),
  tools: [add],
  limits: { maxRequests: 5 },
});
const writer = createAgent({
  name: "writer",
  description: "Writes.",
  model: createScriptedModel([{ calls: [{ name: "adder", input: { task: "1 + 2" } }] }, { text: "It is three." }]),
  agents: [adder],
});
console.log((await writer.generate("How much is 1 + 2?")).text);
