/** An engine that asks a function of yours, and a hook that rewrites a call before it is judged. */
import { createEngine, defineTool } from "callgate";
import { createCallbackApprover, type Hook } from "callgate/gate";

const deploy = defineTool({
  name: "deploy",
  description: "Deploy a version.",
  input: { type: "object", properties: { version: { type: "string" } }, required: ["version"] },
  access: { network: ["deploy.internal"] },
  run: ({ version }) => `deployed ${version}`,
});

const asked: string[] = [];
const approver = createCallbackApprover((request) => {
  asked.push(request.reason);
  return { answer: "once" };
});
const pinned: Hook = {
  tool: "deploy",
  before: ({ input }) => (JSON.stringify(input).includes("latest") ? { input: { version: "1.2.3" } } : undefined),
};

const engine = createEngine({ tools: [deploy], approver, gate: { hooks: [pinned] } });
const ended = await engine.call("deploy", { version: "latest" });
await engine.close();

export const result = { content: ended.content, ruling: ended.ruling?.by, asked };
console.log(JSON.stringify(result, null, 2));
