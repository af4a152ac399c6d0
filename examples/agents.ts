// Governed tools in the OpenAI Agents SDK: a call that needs a person is an interruption, its state goes to text.
import { Agent, Runner, RunState, type Model } from "@openai/agents";
import { createEngine, defineTool } from "callgate";
import { toAgentsTools } from "callgate/agents";
import { openCallFolder } from "callgate/store";

const deploy = defineTool({
  name: "deploy",
  description: "Puts a version online.",
  input: { type: "object", properties: { version: { type: "string" } }, required: ["version"] },
  mutates: true,
  run: ({ version }) => `version ${version} is online`,
});
const engine = createEngine({ tools: [deploy] });
const tools = toAgentsTools(engine, { store: openCallFolder(".callgate/calls") });
const agent = new Agent({ name: "release", tools });

// In real use leave `model` out, and the SDK asks OpenAI.
const call = { type: "function_call", callId: "c1", name: "deploy", arguments: '{"version":"1.2"}' };
const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "Done." }] };
const usage = { requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 };
let asked = 0;
const getResponse = async () => ({ usage, output: [{ ...(asked++ === 0 ? call : said), status: "completed" }] });
const model = { getResponse } as unknown as Model;

const runner = new Runner({ model, tracingDisabled: true });
const waiting = await runner.run(agent, "Put 1.2 online.");
const text = waiting.state.toString(); // keep it anywhere; go on in any process
const state = await RunState.fromString(agent, text);
for (const interruption of state.getInterruptions()) state.approve(interruption);
console.log((await runner.run(agent, state)).finalOutput);
await engine.close();
