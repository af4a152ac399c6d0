import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { createEngine } from "../../src/index.ts";
import { createHttpModel } from "../../src/model/index.ts";
import { createSession } from "../../src/session/index.ts";
import { codecs } from "../../src/wire/index.ts";

const sealed = { type: "compaction", id: "cmp_1", encrypted_content: "sealed" };
const message = {
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text: "hello", annotations: [] }],
};

test("a provider's compaction endpoint is tried where its trigger is unknown", async () => {
  const paths: string[] = [];
  const server = createServer(async (request, response) => {
    paths.push(request.url ?? "");
    let text = "";
    for await (const chunk of request) text += String(chunk);
    if (request.url?.endsWith("/compact")) {
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify({ id: "c", object: "response.compaction", output: [sealed] }));
    }
    if (text.includes("compaction_trigger")) return response.writeHead(400).end('{"error":{"message":"unknown item"}}');
    response.setHeader("content-type", "text/event-stream");
    const body = { id: "resp_1", object: "response", status: "completed", output: [message] };
    response.write(
      `event: response.output_item.done\ndata: ${JSON.stringify({ type: "response.output_item.done", output_index: 0, item: message })}\n\n`,
    );
    response.end(
      `event: response.completed\ndata: ${JSON.stringify({ type: "response.completed", response: body })}\n\n`,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const model = createHttpModel({ codec: codecs.responses, baseUrl, model: "m", retries: 0 });
  const engine = createEngine({ tools: [] });
  const session = createSession({ id: "s", engine, model, compaction: "provider" });
  for await (const _ of session.send("hi")) continue;
  await session.compact();
  expect(paths.at(-1)).toBe("/v1/responses/compact");
  expect(session.history).toMatchObject([{ type: "compaction", opaque: { value: "sealed" } }]);
  await session.close();
  await engine.close();
  model.close();
  server.close();
});
