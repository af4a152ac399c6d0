// Tools written for other libraries, governed: their schemas are checked, their calls asked about, recorded, stopped.
import { tool as langChainTool } from "@langchain/core/tools";
import { tool as agentsTool } from "@openai/agents";
import { tool } from "ai";
import { createEngine } from "callgate";
import { fromAgents, fromAiSdk, fromLangChain, fromOpenAi } from "callgate/from";
import { z } from "zod";

const weather = tool({
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `7 degrees in ${city}`,
});
const searching = { name: "search", description: "Searches.", schema: z.object({ words: z.string() }) };
const search = langChainTool(async ({ words }) => `nothing about ${words}`, searching);
const add = agentsTool({
  name: "add",
  description: "Adds.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => String(a + b),
});
const parameters = { type: "object", properties: {} };

const looks = { mutates: false }; // what is not said may change things, and is asked about
const engine = createEngine({
  tools: [
    fromAiSdk("weather", weather, looks),
    fromLangChain(search, looks),
    fromAgents(add, looks),
    fromOpenAi({ type: "function", name: "publish", description: "Publishes.", parameters }, () => "published"),
  ],
});
console.log((await engine.call("weather", { city: "Bern" })).text); // 7 degrees in Bern
console.log((await engine.call("add", { a: 40, b: 2 })).text); // 42
console.log((await engine.call("publish")).code); // needs_approval: nobody is here to ask
await engine.close();
