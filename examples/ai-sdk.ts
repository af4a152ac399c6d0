// Governed tools and a text-only model in Vercel's AI SDK: the model writes its calls as text, a person is asked.
import { generateText, stepCountIs } from "ai";
import { createEngine, defineTool } from "callgate";
import { toAiSdkModel, toAiSdkTools } from "callgate/ai-sdk";
import { openCallFolder } from "callgate/store";
import { createScriptedModel } from "callgate/testing";

const deploy = defineTool({
  name: "deploy",
  description: "Puts a version online.",
  input: { type: "object", properties: { version: { type: "string" } }, required: ["version"] },
  mutates: true,
  run: ({ version }) => `version ${version} is online`,
});
const engine = createEngine({ tools: [deploy] });
// What waits for an answer is kept here, so that the answer may come in another request or after a restart.
const { tools, question } = toAiSdkTools(engine, { store: openCallFolder(".callgate/calls") });
// For real use: toAiSdkModel(createTextModel(await createProviderModel({ … }), "hermes")).
const model = toAiSdkModel(
  createScriptedModel([{ calls: [{ name: "deploy", input: { version: "1.2" } }] }, { text: "It is online." }]),
);

const prompt = "Put 1.2 online.";
const asked = await generateText({ model, tools, prompt, stopWhen: stepCountIs(5) });
const open = asked.content.find((part) => part.type === "tool-approval-request");
if (open?.type !== "tool-approval-request") throw new Error("nothing was asked");
console.log((await question(open.toolCall))?.reason); // with the commands, the diff and what it may touch
const done = await generateText({
  model,
  tools,
  stopWhen: stepCountIs(5),
  messages: [
    { role: "user", content: prompt },
    ...asked.response.messages,
    { role: "tool", content: [{ type: "tool-approval-response", approvalId: open.approvalId, approved: true }] },
  ],
});
console.log(done.text);
await engine.close();
