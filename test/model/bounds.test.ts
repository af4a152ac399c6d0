/** Servers that send without end, or more than anybody asked for. */
import type { RequestListener } from "node:http";
import { createGzip, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { createHttpModel, createTextModel, type HttpModelOptions } from "../../src/model/index.ts";
import type { ModelEvent, ModelRequest } from "../../src/spec/model.ts";
import { codecs, collect } from "../../src/wire/index.ts";
import { serve } from "./serve.ts";

async function modelAt(answer: RequestListener, options: Partial<HttpModelOptions> = {}) {
  return createHttpModel({ codec: codecs.chat, baseUrl: await serve(answer), model: "m", ...options });
}

const request: ModelRequest = {
  model: "m",
  input: [{ type: "message", role: "user", content: [{ type: "text", text: "hi" }] }],
  tools: [],
};
const never = new AbortController().signal;
const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "1", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const head = { "content-type": "text/event-stream" };
const answered = `${chunk({ content: "hello" })}${chunk({}, "stop")}data: [DONE]\n\n`;

/** Writes the piece again and again until nobody reads any more. */
function flood(piece: string, headers: Record<string, string> = head): RequestListener {
  return (_request, response) => {
    response.writeHead(200, headers);
    const packed = headers["content-encoding"] === "gzip" ? createGzip() : undefined;
    packed?.pipe(response);
    const out = packed ?? response;
    const write = (): void => {
      if (response.destroyed) return void packed?.destroy();
      while (out.write(piece)) if (response.destroyed) return;
      out.once("drain", write);
    };
    write();
  };
}

const nothing = `: ${"x".repeat(10_000)}\n\n`;

test.each([
  ["comments", flood(nothing), { bodyBytes: 1_000_000 }],
  ["packed comments", flood(nothing, { ...head, "content-encoding": "gzip" }), { bodyBytes: 1_000_000 }],
  ["one line", flood("x".repeat(10_000)), { bodyBytes: 1_000_000 }],
  ["text", flood(chunk({ content: "word ".repeat(1000) })), { characters: 100_000 }],
  [
    "arguments",
    flood(chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "x".repeat(1000) } }] })),
    { argumentCharacters: 100_000 },
  ],
] as const)("%s without end: the answer ends with an error that says so", async (_what, server, answerLimits) => {
  const model = await modelAt(server, { answerLimits });
  const { outcome, error, items } = await collect(model.ask(request, never));
  expect(outcome === "error" || error !== undefined).toBe(true);
  expect(error).toMatchObject({ type: "limit", message: expect.stringMatching(/more than|longer than/) });
  expect(items.some((item) => item.type === "call" && item.complete)).toBe(false);
  model.close();
});

test("more calls than anybody makes: none of them runs", async () => {
  let index = 0;
  const model = await modelAt((_request, response) => {
    response.writeHead(200, head);
    for (; index < 200; index++)
      response.write(chunk({ tool_calls: [{ index, id: `c${index}`, function: { name: "f", arguments: "{}" } }] }));
    response.end(`${chunk({}, "tool_calls")}data: [DONE]\n\n`);
  });
  const { error, items } = await collect(model.ask(request, never));
  expect(error).toMatchObject({ code: "answer_too_large", message: expect.stringContaining("128 calls") });
  expect(items.some((item) => item.type === "call" && item.complete)).toBe(false);
  model.close();
});

test("an answer without end in time is ended", async () => {
  const model = await modelAt(
    (_request, response) => {
      response.writeHead(200, head);
      const timer = setInterval(() => response.write(chunk({ content: "." })), 5);
      response.on("close", () => clearInterval(timer));
    },
    { limits: { totalMs: 150 } },
  );
  const { outcome, error } = await collect(model.ask(request, never));
  expect(outcome).toBe("truncated");
  expect(error!.message).toContain("longer than 150 ms");
  model.close();
});

test("a refusal of any length is read as far as anybody reads it", async () => {
  const model = await modelAt(
    (_request, response) => {
      response.writeHead(400, { "content-type": "text/plain" });
      const write = (): void => {
        while (!response.destroyed && response.write("no ".repeat(1000)));
        if (!response.destroyed) response.once("drain", write);
      };
      write();
    },
    { retries: 0 },
  );
  const { error } = await collect(model.ask(request, never));
  expect(error!.message.length).toBeLessThan(2000);
  model.close();
});

test("an answer that a server packed although nobody asked for it is read", async () => {
  const model = await modelAt((_request, response) => {
    response.writeHead(200, { ...head, "content-encoding": "gzip" });
    response.end(gzipSync(answered));
  });
  expect((await collect(model.ask(request, never))).items).toMatchObject([{ content: [{ text: "hello" }] }]);
  model.close();
});

test("one model serves many askers: each request has its own model and headers, and is told of the server's", async () => {
  const seen: unknown[] = [];
  const model = await modelAt(
    (incoming, response) => {
      let body = "";
      incoming.on("data", (piece: Buffer) => (body += piece.toString()));
      incoming.on("end", () => {
        seen.push([incoming.url, JSON.parse(body).model, incoming.headers.authorization]);
        response.writeHead(200, { ...head, "x-request-id": "r1", "x-ratelimit-remaining-requests": "7" });
        response.end(answered);
      });
    },
    { headers: { authorization: "Bearer own" } },
  );
  const events: ModelEvent[] = [];
  for await (const event of model.ask(request, never, { model: "other", headers: { authorization: "Bearer theirs" } }))
    events.push(event);
  await collect(model.ask(request, never));
  expect(seen).toEqual([
    ["/v1/chat/completions", "other", "Bearer theirs"],
    ["/v1/chat/completions", "m", "Bearer own"],
  ]);
  expect(events[0]).toMatchObject({
    type: "answer.started",
    extra: { wire: "http", fields: { "x-request-id": "r1", "x-ratelimit-remaining-requests": "7" } },
  });
  model.close();
});

test("a refusal keeps the server's own words beside ours", async () => {
  const body = JSON.stringify({ error: { message: "prompt is too long: 5 tokens > 4 maximum" } });
  const model = await modelAt((_request, response) => {
    response.writeHead(400, { "content-type": "application/json" });
    response.end(body);
  });
  const { error } = await collect(model.ask(request, never));
  expect(error).toMatchObject({ type: "context_overflow", raw: body });
  model.close();
});

test("a text-only model is taught the tools that came as items", async () => {
  let body = "";
  const model = await modelAt((incoming, response) => {
    incoming.on("data", (piece: Buffer) => (body += piece.toString()));
    incoming.on("end", () => {
      response.writeHead(200, head);
      response.end(answered);
    });
  });
  const asked = codecs.responses.decodeRequest({
    input: [
      {
        type: "additional_tools",
        tools: [
          { type: "namespace", name: "functions", tools: [{ type: "custom", name: "exec", description: "runs JS" }] },
        ],
      },
      { type: "message", role: "developer", content: "You are Codex." },
      { type: "message", role: "user", content: "hi" },
    ],
  });
  await collect(createTextModel(model, "function-calls-xml").ask(asked, never));
  const sent = JSON.parse(body);
  expect(sent.tools).toBeUndefined();
  expect(sent.messages[0]).toMatchObject({ role: "system", content: expect.stringContaining("runs JS") });
  expect(sent.messages[0].content).toContain("You are Codex.");
  model.close();
});
