/** A chat server for many users: one engine, a conversation for each, and each user approves only for themselves. */
import { createServer } from "node:http";
import { once } from "node:events";
import { createEngine, defineTool } from "callgate";
import { createChatService } from "callgate/session";
import { createScriptedModel } from "callgate/testing";

const remind = defineTool({
  name: "set_reminder",
  description: "Remind the user of something.",
  input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const,
  mutates: true,
  run: ({ text }) => `I will remind you: ${text}`,
});

const agrees = new Set(["ada"]); // who said "yes, from now on" in your settings page
const chat = createChatService({
  engine: createEngine({ tools: [remind] }),
  model: () =>
    createScriptedModel([{ calls: [{ name: "set_reminder", input: { text: "tea at four" } }] }, { text: "Done." }]),
  approver: (user) => ({
    ask: async () => (agrees.has(user) ? { answer: "session" } : { answer: "no", message: `${user} did not agree.` }),
  }),
  limits: { maxCalls: 20, maxTokens: 50_000 },
  maxOpen: 1_000,
});

// POST /USER with the message as the body; the answer is a stream of JSON lines. Put your login in front of it.
const server = createServer(async (request, response) => {
  const user = (request.url ?? "/").slice(1);
  let message = "";
  for await (const piece of request) message += piece;
  const left = new AbortController();
  response.on("close", () => left.abort());
  for await (const chunk of chat.handleStream(user, message, left.signal)) response.write(`${JSON.stringify(chunk)}\n`);
  response.end();
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address() as { port: number };

for (const user of ["ada", "ben"]) {
  const answer = await fetch(`http://127.0.0.1:${port}/${user}`, { method: "POST", body: "Remind me of tea." });
  for (const line of (await answer.text()).trim().split("\n")) {
    const chunk = JSON.parse(line) as { type: string; ok?: boolean; content?: string };
    if (chunk.type === "tool_result") console.log(user, chunk.ok, chunk.content);
  }
}
server.close();
await chat.close();
