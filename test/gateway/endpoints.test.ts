/** Every endpoint that some client calls, one row each: what is asked, and what it gets. */
import { request as httpRequest } from "node:http";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { startGateway } from "../../src/gateway/index.ts";
import { ask, gateway, pathOf, question, rawUpstream, scripted, wires } from "./gateways.ts";

const routes = (baseUrl: string) => [{ match: "fine", targets: [{ baseUrl, wire: "chat", model: "real" }] }];
const anthropic = { "anthropic-version": "2023-06-01" };
const words = "one two three";
const openaiError = (type: string) => ({ error: { type, message: expect.any(String) } });
const anthropicError = (type: string) => ({ type: "error", error: { type, message: expect.any(String) } });
const googleError = (code: number) => ({ error: { code, message: expect.any(String), status: expect.any(String) } });

interface Row {
  readonly name: string;
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly status: number;
  readonly answer?: object;
  readonly estimated?: boolean;
}

const rows: readonly Row[] = [
  {
    name: "OpenAI's list of models",
    path: "/v1/models",
    status: 200,
    answer: { object: "list", data: [{ id: "fine", object: "model" }, { id: "real" }] },
  },
  {
    name: "Anthropic's list of models",
    path: "/v1/models?limit=20",
    headers: anthropic,
    status: 200,
    answer: { data: [{ type: "model", id: "fine", display_name: "fine" }, { id: "real" }], has_more: false },
  },
  {
    name: "Google's list of models",
    path: "/v1beta/models?pageSize=50",
    status: 200,
    answer: { models: [{ name: "models/fine", supportedGenerationMethods: expect.any(Array) }, {}] },
  },
  { name: "one model for OpenAI", path: "/v1/models/fine", status: 200, answer: { id: "fine", object: "model" } },
  { name: "one model for Anthropic", path: "/v1/models/fine", headers: anthropic, status: 200, answer: { id: "fine" } },
  { name: "one model for Google", path: "/v1beta/models/fine", status: 200, answer: { name: "models/fine" } },
  { name: "a model nobody has, OpenAI", path: "/v1/models/x", status: 404, answer: { error: expect.anything() } },
  {
    name: "a model nobody has, Anthropic",
    path: "/v1/models/x",
    headers: anthropic,
    status: 404,
    answer: anthropicError("not_found_error"),
  },
  { name: "a model nobody has, Google", path: "/v1beta/models/x", status: 404, answer: googleError(404) },
  {
    name: "count_tokens",
    method: "POST",
    path: "/v1/messages/count_tokens?beta=true",
    body: { model: "m", messages: [{ role: "user", content: words }], tools: [{ name: "t", input_schema: {} }] },
    status: 200,
    answer: { input_tokens: expect.any(Number) },
    estimated: true,
  },
  {
    name: "input_tokens",
    method: "POST",
    path: "/v1/responses/input_tokens",
    body: { model: "m", input: words },
    status: 200,
    answer: { object: "response.input_tokens", input_tokens: expect.any(Number) },
    estimated: true,
  },
  {
    name: "countTokens",
    method: "POST",
    path: "/v1beta/models/m:countTokens",
    body: { contents: [{ role: "user", parts: [{ text: words }] }] },
    status: 200,
    answer: { totalTokens: expect.any(Number) },
    estimated: true,
  },
  {
    name: "countTokens of a whole request",
    method: "POST",
    path: "/v1beta/models/m:countTokens",
    body: { generateContentRequest: { model: "models/m", contents: [{ role: "user", parts: [{ text: words }] }] } },
    status: 200,
    answer: { totalTokens: expect.any(Number) },
    estimated: true,
  },
  {
    name: "a response nobody knows",
    path: "/v1/responses/resp_x",
    status: 404,
    answer: openaiError("invalid_request_error"),
  },
  {
    name: "its removal",
    method: "DELETE",
    path: "/v1/responses/resp_x",
    status: 404,
    answer: openaiError("invalid_request_error"),
  },
  {
    name: "a conversation",
    method: "POST",
    path: "/v1/conversations",
    body: { items: [] },
    status: 200,
    answer: { object: "conversation", id: expect.stringMatching(/^conv_/) },
  },
  { name: "Claude Code's greeting", method: "HEAD", path: "/api/hello", status: 200 },
  { name: "a look at the health", path: "/healthz", status: 200, answer: { ok: true } },
  { name: "nowhere", path: "/v1/nowhere", status: 404, answer: { error: expect.anything() } },
  { name: "nowhere of Google's", method: "POST", path: "/v1beta/models/m:embed", body: {}, status: 404 },
];

describe("beside the four questions", () => {
  test.each(rows)("$name: $path", async ({ method = "GET", path, headers, body, status, answer, estimated }) => {
    const url = await gateway({ routes: routes("http://127.0.0.1:9/v1") });
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    expect(response.status).toBe(status);
    if (answer !== undefined) expect(JSON.parse(text)).toMatchObject(answer);
    expect(response.headers.get("x-callgate-estimate")).toBe(estimated === true ? "true" : null);
  });

  test("a kept response can be read, gone on with, made short and removed", async () => {
    const model = await scripted([{ text: "hello" }, { text: "again" }, { text: "All in one line." }]);
    const url = await gateway({ routes: routes(model.baseUrl) });
    const post = async (path: string, body: object) =>
      (await fetch(`${url}${path}`, { method: "POST", body: JSON.stringify({ model: "fine", ...body }) })).json();
    const first = (await post("/v1/responses", { input: "hi" })) as { readonly id: string };
    expect(await (await fetch(`${url}/v1/responses/${first.id}`)).json()).toMatchObject({ id: first.id });
    expect(await post("/v1/responses", { input: "more", previous_response_id: first.id })).toMatchObject({
      output: [{ type: "message" }],
    });
    expect(await post("/v1/responses/compact", { input: [{ role: "user", content: "a story" }] })).toMatchObject({
      object: "response.compaction",
      output: [{ type: "message" }],
    });
    const removed = await fetch(`${url}/v1/responses/${first.id}`, { method: "DELETE" });
    expect(await removed.json()).toEqual({ id: first.id, object: "response", deleted: true });
    expect((await fetch(`${url}/v1/responses/${first.id}`)).status).toBe(404);
  });

  test("a WebSocket is told that there is none", async () => {
    const url = await gateway({ routes: routes("http://127.0.0.1:9/v1") });
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const asked = httpRequest(`${url}/v1/responses`, {
        headers: { connection: "Upgrade", upgrade: "websocket", "openai-beta": "responses_websockets=2026-02-06" },
      });
      asked.on("response", (response) => resolve(response.statusCode));
      asked.on("error", reject);
      asked.end();
    });
    expect(status).toBe(426);
  });
});

describe("what clients send", () => {
  test.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
  ] as const)("a body packed with %s is read", async (encoding, pack) => {
    const model = await scripted([{ text: "ok" }]);
    const url = await gateway({ routes: routes(model.baseUrl) });
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-encoding": encoding },
      body: pack(JSON.stringify({ ...question("chat", false), model: "fine" })),
    });
    expect(response.status).toBe(200);
    await response.text();
  });

  test("a body of 64 MB is refused as too large, one below it is not", async () => {
    const url = await gateway({ routes: routes("http://127.0.0.1:9/v1") });
    const send = async (length: number) => {
      const packed = gzipSync(Buffer.alloc(length, " "), { level: 1 });
      const response = await fetch(`${url}/v1/messages`, {
        method: "POST",
        headers: { "content-encoding": "gzip" },
        body: packed,
      });
      return [response.status, await response.json()];
    };
    expect(await send(64 * 1024 * 1024 + 1)).toMatchObject([413, { type: "error" }]);
    expect(await send(1024 * 1024)).toMatchObject([400, anthropicError("invalid_request_error")]);
  });
});

const trouble: readonly (readonly [number, string])[] = [
  [400, "bad request"],
  [401, "bad key"],
  [404, "no such model"],
  [429, "slow down"],
  [500, "oops"],
  [503, "too busy"],
];
const shapes = { responses: openaiError, chat: openaiError, messages: anthropicError } as const;

describe("trouble upstream", () => {
  test.each(wires)("is told to a client of %s in its own form, with the words of the server", async (wire) => {
    const tell = async ([status, message]: (typeof trouble)[number]) => {
      const upstream = await rawUpstream((_request, response) => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: { message, type: "x" } }));
      });
      const targets = [{ baseUrl: upstream.baseUrl, wire: "chat", model: "x" }];
      const reply = await ask(await gateway({ routes: [{ match: "*", targets }] }), wire);
      const body: unknown = JSON.parse(reply.text);
      expect(body).toMatchObject(wire === "gemini" ? googleError(reply.status) : shapes[wire](expect.any(String)));
      expect(reply.text).toContain(message);
      expect(reply.status).toBeGreaterThanOrEqual(400);
      // Codex gives up at once without it.
      if (reply.status === 429 || reply.status === 503) expect(reply.headers.get("retry-after")).toMatch(/^\d+$/);
    };
    await Promise.all(trouble.map(tell));
  });

  test.each([
    ["responses", /event: keepalive|"type":"keepalive"|response\.in_progress/],
    ["messages", /event: ping/],
    ["chat", /^: /m],
    ["gemini", /^: /m],
  ] as const)("a client of %s sees a sign of life while the model thinks", async (wire, sign) => {
    const upstream = await rawUpstream((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"id":"c","choices":[{"index":0,"delta":{"content":"hm"}}]}\n\n');
      ends.push(() =>
        response.end('data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
      );
    });
    const ends: (() => void)[] = [];
    const opened = await startGateway({
      keys: "none",
      keepAliveMs: 20,
      routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "chat", model: "x" }] }],
    });
    const response = await fetch(`${opened.url}${pathOf(wire, true)}`, {
      method: "POST",
      body: JSON.stringify(question(wire, true)),
    });
    let seen = "";
    let isAlive = false;
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      seen += chunk;
      if (isAlive || !sign.test(seen.slice(seen.indexOf("hm")))) continue;
      isAlive = true;
      ends.forEach((end) => end());
    }
    expect(isAlive).toBe(true);
    await opened.close();
  });
});
