/** A scripted model behind real HTTP, as a user's own tests would have it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createScriptedModel, serveModel, type ModelServer } from "../../src/testing/index.ts";

const bodies: { readonly wire: string; readonly body: unknown }[] = [];
let server: ModelServer;
beforeAll(async () => {
  const steps = Array.from({ length: 20 }, () => ({ text: "hi", end: { usage: { input: 3, output: 1 } } }));
  server = await serveModel(createScriptedModel(steps), { onRequest: (wire, body) => bodies.push({ wire, body }) });
});
afterAll(() => server.close());

const post = (path: string, body: unknown) =>
  fetch(`${server.baseUrl}${path}`, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });

const question = [{ role: "user", content: "hello" }];
const asked: readonly (readonly [string, string, object])[] = [
  ["responses", "/responses", { model: "m", input: "hello" }],
  ["chat", "/chat/completions", { model: "m", messages: question }],
  ["messages", "/messages", { model: "m", max_tokens: 9, messages: question }],
  ["gemini", "/models/m:generateContent", { contents: [{ role: "user", parts: [{ text: "hello" }] }] }],
];

test.each(asked)("answers %s whole and streamed", async (wire, path, body) => {
  const whole = await post(path, body);
  expect(whole.headers.get("content-type")).toBe("application/json");
  expect(JSON.stringify(await whole.json())).toContain('"hi"');
  const streamed = await post(path.replace(":generate", ":streamGenerate"), { ...body, stream: true });
  expect(streamed.headers.get("content-type")).toBe("text/event-stream");
  expect(await streamed.text()).toMatch(/^(event|data): /);
  expect(bodies.slice(-2).map((entry) => entry.wire)).toEqual([wire, wire]);
});

test("listens on this machine only", () => {
  expect(server.baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/);
});

test("what is no request is refused in the wire's own form", async () => {
  expect((await post("/nowhere", {})).status).toBe(404);
  expect((await fetch(`${server.baseUrl}/responses`)).status).toBe(404);
  const broken = await post("/responses", "{not json");
  expect(broken.status).toBe(400);
  expect(await broken.json()).toMatchObject({ error: { type: "invalid_request_error" } });
});

test("a script that is over says so instead of inventing an answer", async () => {
  const short = await serveModel(createScriptedModel([]));
  const answer = await fetch(`${short.baseUrl}/responses`, {
    method: "POST",
    body: JSON.stringify({ model: "m", input: "x" }),
  });
  expect(answer.status).toBe(400);
  expect(await answer.text()).toMatch(/script/i);
  await short.close();
});

test("a scripted call whose arguments are no text is a mistake that is told at once", () => {
  const calls = [{ name: "add", arguments: { a: 1 } as unknown as string }];
  expect(() => createScriptedModel([{ calls }])).toThrow("give a value as 'input'");
});

test("a request that its wire refuses is answered in the wire's own words, details included", async () => {
  const answer = await post("/messages", { model: "m", max_tokens: 9, messages: question, thread: { type: "create" } });
  expect(answer.status).toBeGreaterThanOrEqual(400);
  expect(JSON.stringify(await answer.json())).toContain("thread_unsupported_request");
});

test("a script's arguments are text; a value is a mistake that is said, and belongs to 'input'", () => {
  const value = { a: 1 } as unknown as string; // what a script in JavaScript may hold
  expect(() => createScriptedModel([{ calls: [{ name: "add", arguments: value }] }])).toThrow(
    /'arguments' is text; give a value as 'input'/,
  );
});
