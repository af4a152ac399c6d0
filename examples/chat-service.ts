import { once } from "node:events";
import { serve } from "@hono/node-server";
import { createEngine } from "callgate";
import { createChatService, openConversationFolder } from "callgate/session";
import { createOfflineModel } from "callgate/testing";
import { builtins } from "callgate/tools";
import { Hono } from "hono";
import { streamSSE } from "hono/streaming";

const chat = createChatService({
  engine: createEngine({ tools: builtins, approval: "never", sandbox: "read-only" }),
  model: createOfflineModel(), // or createHttpModel(…) of callgate/model
  store: openConversationFolder("conversations"),
  limits: { maxCalls: 20 },
});

const app = new Hono();
app.post("/chat/:id", async (c) => {
  const { message } = await c.req.json<{ message: string }>();
  const chunks = chat.handleStream(c.req.param("id"), message, c.req.raw.signal);
  return streamSSE(c, async (stream) => {
    for await (const chunk of chunks) await stream.writeSSE({ event: chunk.type, data: JSON.stringify(chunk) });
  });
});

const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
await once(server, "listening");
const { port } = server.address() as { port: number };

// One request to ourselves, as a browser would send it.
const answer = await fetch(`http://127.0.0.1:${port}/chat/anna`, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ message: "run echo hello from a tool" }),
});
console.log(await answer.text());

server.close();
await chat.close();
