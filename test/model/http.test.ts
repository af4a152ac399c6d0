import type { RequestListener } from "node:http";
import { expect, test } from "vitest";
import { createHttpModel, type HttpModelOptions } from "../../src/model/index.ts";
import { createTransport } from "../../src/model/transport.ts";
import { defaultLimits } from "../../src/model/transport.ts";
import { chat } from "../../src/wire/chat/index.ts";
import { collect } from "../../src/wire/index.ts";
import { responses } from "../../src/wire/responses/index.ts";
import { serve, servers } from "./serve.ts";

async function modelAt(answer: RequestListener, options: Partial<HttpModelOptions> = {}) {
  return createHttpModel({
    codec: chat,
    baseUrl: await serve(answer),
    model: "m",
    keyName: "MY_KEY",
    sleep: async () => undefined,
    ...options,
  });
}

const request = {
  model: "m",
  input: [{ type: "message", role: "user", content: [{ type: "text", text: "hi" }] }],
  tools: [],
} as const;
const ask = (model: Awaited<ReturnType<typeof modelAt>>, signal = new AbortController().signal) =>
  collect(model.ask(request, signal));
const refuse =
  (status: number, body: object, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "1", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const say: RequestListener = (_request, response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(`${chunk({ role: "assistant", content: "hello" })}${chunk({}, "stop")}data: [DONE]\n\n`);
};

test("a wrong key is told with the variable to set", async () => {
  const { outcome, error } = await ask(await modelAt(refuse(401, { error: { message: "bad key" } })));
  expect(outcome).toBe("error");
  expect(error).toMatchObject({ type: "auth", status: 401 });
  expect(error!.message).toContain("MY_KEY");
});

test("a key that the server repeats in its message is not passed on", async () => {
  const echo: RequestListener = (request, response) =>
    refuse(401, { error: { message: `wrong: ${request.headers.authorization}, not sk-proj-abcdefghijklmnopqrst` } })(
      request,
      response,
    );
  const { error } = await ask(await modelAt(echo, { headers: { authorization: "Bearer top-secret-key" } }));
  expect(error!.message).not.toMatch(/top-secret-key|sk-proj-a/);
  expect(error!.message).toContain("[key]");
});

test("an unknown model is told by its name", async () => {
  expect(
    (await ask(await modelAt(refuse(404, { error: { message: "no model", code: "model_not_found" } })))).error,
  ).toMatchObject({
    type: "unknown_model",
    message: expect.stringContaining("'m'"),
  });
});

test.each([
  [400, { error: { message: "x", code: "context_length_exceeded" } }],
  [
    400,
    { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 9 tokens > 8 maximum" } },
  ],
  [413, { error: "too large" }],
])("a conversation that is too long is recognised (%i %o)", async (status, body) => {
  expect((await ask(await modelAt(refuse(status, body)))).error).toMatchObject({ type: "context_overflow" });
});

test("trouble that may pass is tried again, and then works", async () => {
  let requests = 0;
  const model = await modelAt((incoming, response) =>
    ++requests < 3 ? refuse(503, { error: { message: "busy" } })(incoming, response) : say(incoming, response),
  );
  expect(await ask(model)).toMatchObject({ outcome: "ok", finish: "stop" });
  expect(requests).toBe(3);
});

test("the server's own wait is respected", async () => {
  const waits: number[] = [];
  let requests = 0;
  const model = await modelAt(
    (incoming, response) =>
      ++requests === 1
        ? refuse(429, { error: { message: "slow down" } }, { "retry-after": "2" })(incoming, response)
        : say(incoming, response),
    { sleep: async (ms) => void waits.push(ms) },
  );
  await ask(model);
  expect(waits).toEqual([2_000]);
});

test("a provider that wants an hour of patience is not waited for", async () => {
  let requests = 0;
  const model = await modelAt((incoming, response) => {
    requests++;
    refuse(429, { error: { message: "quota used up" } }, { "retry-after": "3600" })(incoming, response);
  });
  const answer = await ask(model);
  expect(requests).toBe(1);
  expect(answer.error?.message).toContain("It says to come back in 60 min.");
});

test("a body that is not the JSON it says it is ends the answer with a reason", async () => {
  const model = await modelAt((_incoming, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end('{"choices": [');
  });
  const answer = await ask(model);
  expect(answer).toMatchObject({ outcome: "error", error: { message: expect.stringContaining("not the JSON") } });
});

test("a wrong request is not tried again", async () => {
  let requests = 0;
  await ask(
    await modelAt((incoming, response) => {
      requests++;
      refuse(400, { error: { message: "what?" } })(incoming, response);
    }),
  );
  expect(requests).toBe(1);
});

test("a stream that breaks off gives its text and says that it broke", async () => {
  const model = await modelAt((_incoming, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(chunk({ content: "half" }));
    setTimeout(() => response.destroy(), 20);
  });
  const answer = await ask(model);
  expect(answer.outcome).toBe("truncated");
  expect(answer.error).toMatchObject({ type: "network" });
  expect(JSON.stringify(answer.items)).toContain("half");
});

test("a stream that goes silent ends at its limit", async () => {
  const transport = createTransport({ ...defaultLimits, silenceMs: 60 });
  const model = await modelAt(
    (_incoming, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk({ content: "still" }));
    },
    { transport },
  );
  expect((await ask(model)).error).toMatchObject({ type: "network", message: expect.stringContaining("nothing came") });
});

test("a server that never answers ends at its limit", async () => {
  const model = await modelAt(() => undefined, {
    transport: createTransport({ ...defaultLimits, firstByteMs: 60 }),
    retries: 0,
  });
  expect((await ask(model)).error).toMatchObject({ type: "network", message: expect.stringContaining("no answer") });
});

test("nobody there is told with the address and what to look at", async () => {
  const model = createHttpModel({ codec: chat, baseUrl: "http://127.0.0.1:9/v1", model: "m", retries: 0 });
  expect((await collect(model.ask(request, new AbortController().signal))).error).toMatchObject({
    message: "cannot reach 127.0.0.1:9 (ECONNREFUSED). Is the model's server running, and is its address right?",
  });
});

test("an abort ends the request at once", async () => {
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 20);
  expect((await ask(await modelAt(() => undefined), stop.signal)).error).toMatchObject({ type: "aborted" });
});

test.each([
  ["text/html", "<html>Welcome</html>", "a web page"],
  ["text/event-stream", "\n<!doctype html><title>Hi</title>", "a web page"],
  ["text/plain", "Not here.", "'Not here.'"],
])("a body that is no answer (%s) is told at once, with a hint at the base URL", async (type, body, said) => {
  let asked = 0;
  const model = await modelAt((_incoming, response) => {
    asked++;
    response.writeHead(200, { "content-type": type });
    response.end(body);
  });
  const { outcome, error } = await ask(model);
  expect(outcome).toBe("error");
  expect(error).toMatchObject({ type: "bad_request", status: 200 });
  expect(error!.message).toContain(said);
  expect(error!.message).toContain("base URL");
  expect(asked).toBe(1);
});

test.each(["text/plain", "text/event-stream", "application/json"])(
  "a whole answer is read whatever its type says (%s)",
  async (type) => {
    const model = await modelAt((_incoming, response) => {
      response.writeHead(200, { "content-type": type });
      response.end(JSON.stringify({ choices: [{ message: { content: "whole" }, finish_reason: "stop" }] }, null, 1));
    });
    expect(await ask(model)).toMatchObject({ outcome: "ok", items: [{ content: [{ text: "whole" }] }] });
  },
);

test("a line that was only kept open broke off, and may be asked again", async () => {
  const model = await modelAt((_incoming, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(": processing\n\n: processing\n\n");
  });
  expect(await ask(model)).toMatchObject({ outcome: "truncated", items: [] });
});

test("an error in a stream that has shown nothing is tried again; one that has is told with its kind", async () => {
  let asked = 0;
  const trouble = `data: ${JSON.stringify({ error: { message: "busy", code: "server_is_overloaded" } })}\n\n`;
  const again = await modelAt((incoming, response) => {
    if (++asked === 3) return void say(incoming, response);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(trouble);
  });
  expect(await ask(again)).toMatchObject({ outcome: "ok", items: [{ content: [{ text: "hello" }] }] });
  expect(asked).toBe(3);

  const shown = await modelAt((_incoming, response) => {
    asked++;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(chunk({ content: "par" }) + trouble);
  });
  expect(await ask(shown)).toMatchObject({
    outcome: "error",
    error: { type: "overloaded", code: "server_is_overloaded", message: "busy" },
    items: [{ content: [{ text: "par" }] }],
  });
  expect(asked).toBe(4);
});

test("a conversation that turns out too long inside the stream is recognised", async () => {
  const model = await modelAt((_incoming, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`data: ${JSON.stringify({ error: { message: "x", code: "context_length_exceeded" } })}\n\n`);
  });
  expect((await ask(model)).error).toMatchObject({ type: "context_overflow", code: "context_length_exceeded" });
});

test("an answer is over when it says so, though the server keeps the line open", async () => {
  const model = await modelAt((_incoming, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`${chunk({ content: "hello" })}${chunk({}, "stop")}data: [DONE]\n\n`);
  });
  const stop = AbortSignal.timeout(5_000);
  expect(await ask(model, stop)).toMatchObject({ outcome: "ok", items: [{ content: [{ text: "hello" }] }] });
  expect(stop.aborted).toBe(false);
});

test("a failure that ends an answer ends the request, though the server keeps the line open", async () => {
  const failed = { type: "response.failed", response: { id: "r", error: { code: "server_error", message: "broken" } } };
  const model = await modelAt(
    (_incoming, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`);
    },
    { codec: responses, retries: 0 },
  );
  const stop = AbortSignal.timeout(5_000);
  expect(await ask(model, stop)).toMatchObject({ outcome: "error", error: { message: "broken" } });
  expect(stop.aborted).toBe(false);
});

test("the next request takes the same connection", async () => {
  const model = await modelAt(say);
  let connections = 0;
  servers.at(-1)!.on("connection", () => connections++);
  for (let time = 0; time < 3; time++) expect(await ask(model)).toMatchObject({ outcome: "ok" });
  expect(connections).toBe(1);
});

test("thoughts that a server leaves in the text are thoughts where that is known of it", async () => {
  const answer: RequestListener = (_incoming, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`${chunk({ content: "<thi" })}${chunk({ content: "nk>hm</think>Hi" })}${chunk({}, "stop")}`);
  };
  expect((await ask(await modelAt(answer, { thinkTags: true }))).items).toMatchObject([
    { type: "reasoning", text: "hm" },
    { type: "message", content: [{ text: "Hi" }] },
  ]);
  expect((await ask(await modelAt(answer))).items).toMatchObject([{ content: [{ text: "<think>hm</think>Hi" }] }]);
});
