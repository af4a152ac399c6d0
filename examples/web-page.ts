// A web page with useChat: a turn that waits for a person ends, and goes on when the page sends the answer.
import { createEngine, defineTool } from "callgate";
import { createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";
import { answerLater, toUiResponse, type UiMessage } from "callgate/ui";

const deploy = defineTool({
  name: "deploy",
  description: "Puts a version online.",
  input: { type: "object", properties: { version: { type: "string" } }, required: ["version"] },
  mutates: true,
  run: ({ version }) => `version ${version} is online`,
});
const engine = createEngine({ tools: [deploy] });
const session = createSession({
  id: "chat-1", // with a journal it goes on after a restart, too
  engine,
  model: createScriptedModel([{ calls: [{ name: "deploy", input: { version: "1.2" } }] }, { text: "It is online." }]),
  approver: answerLater,
});

/** The route that useChat posts to, in any framework with Request and Response. */
async function POST(request: Request): Promise<Response> {
  const { messages } = (await request.json()) as { messages: UiMessage[] };
  return toUiResponse(session, messages);
}

const post = async (messages: unknown) =>
  (await POST(new Request("http://localhost/chat", { method: "POST", body: JSON.stringify({ messages }) }))).text();
const asked = await post([{ id: "1", role: "user", parts: [{ type: "text", text: "Put 1.2 online." }] }]);
const [, id] = /"approvalId":"(\w+)"/.exec(asked) ?? [];
const [, toolCallId] = /"toolCallId":"(\w+)"/.exec(asked) ?? [];
// What useChat sends after addToolApprovalResponse.
const part = { type: "dynamic-tool", toolCallId, state: "approval-responded", approval: { id, approved: true } };
console.log((await post([{ id: "2", role: "assistant", parts: [part] }])).includes("It is online."));
await session.close();
await engine.close();
