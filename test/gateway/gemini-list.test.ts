/** Gemini's stream without `alt=sse`: one JSON list, written element by element, as Google's server writes it. */
import { expect, test } from "vitest";
import { decodeRecording, codecs } from "../../src/wire/index.ts";
import { ask, type Body, gateway, question, rawUpstream, scripted, wires } from "./gateways.ts";

async function askList(url: string, query = ""): Promise<Response> {
  return fetch(`${url}/v1beta/models/m:streamGenerateContent${query}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(question("gemini", true)),
  });
}

const read = (text: string) => decodeRecording(codecs.gemini, [text], { declared: ["weather"] });

test.each(wires)("is a list, whichever wire the model speaks: %s", async (wire) => {
  const call = { name: "weather", input: { city: "Köln" } };
  const model = await scripted([{ text: "I look it up.", calls: [call] }, { text: "Fine." }]);
  // With the same wire and the same name the bytes could go through as they are, but they would be events.
  const url = await gateway({ routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire, model: "m" }] }] });
  const response = await askList(url);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toMatch(/^application\/json/);
  const text = await response.text();
  const elements = JSON.parse(text) as readonly Body[];
  expect(elements.length).toBeGreaterThan(1);
  expect(elements.at(-1)).toMatchObject({ candidates: [{ finishReason: "STOP" }] });
  expect(text.split("\n,\n")).toHaveLength(elements.length);
  expect(read(text)).toMatchObject({
    outcome: "ok",
    items: [{ type: "message" }, { type: "call", name: "weather", arguments: '{"city":"Köln"}' }],
  });

  const events = await askList(url, "?alt=sse");
  expect(events.headers.get("content-type")).toMatch(/^text\/event-stream/);
  expect(await events.text()).toMatch(/^data: \{/);
});

test("sends each element when it is there, and blank space while the model thinks", async () => {
  let goOn: (() => void) | undefined;
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const server = await rawUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(chunk({ content: "one" }, null));
    goOn = () => response.end(`${chunk({ content: " two" }, "stop")}data: [DONE]\n\n`);
  });
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: server.baseUrl, wire: "chat", model: "x" }] }],
    keepAliveMs: 5,
  });
  const response = await askList(url);
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of response.body!) {
    text += decoder.decode(piece, { stream: true });
    // The model says no more before this was read: the first element, and after it a sign of life.
    if (/one.*\n$/.test(text)) goOn?.();
  }
  expect(text).toMatch(/^\[\{.*one.*\}\n/);
  expect(JSON.parse(text).length).toBeGreaterThan(1);
  expect(read(text)).toMatchObject({ outcome: "ok", items: [{ content: [{ text: "one two" }] }] });
});

test("is an ordinary error with its status when there is no element yet", async () => {
  const server = await rawUpstream((_request, response) => {
    response.writeHead(429, { "content-type": "application/json", "retry-after": "0" });
    response.end(JSON.stringify({ error: { message: "Too many.", type: "rate_limit_error" } }));
  });
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: server.baseUrl, wire: "chat", model: "x" }] }],
  });
  const response = await askList(url);
  expect(response.status).toBe(429);
  expect(response.headers.get("content-type")).toMatch(/^application\/json/);
  expect(await response.json()).toMatchObject({ error: { code: 429, status: "RESOURCE_EXHAUSTED" } });
});

test.each(wires)("that is cut upstream is closed with the error, and hands out no call: %s", async (wire) => {
  const call = { name: "weather", input: { city: "Köln" } };
  let recorded = Buffer.alloc(0);
  let at = 0;
  const server = await rawUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(recorded.subarray(0, at), () => response.destroy());
  });
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: server.baseUrl, wire, model: "m" }] }],
  });
  for (const words of ["I look it up.", ""]) {
    const model = await scripted([{ text: words, calls: [call] }]);
    const whole = await gateway({ routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire, model: "m" }] }] });
    recorded = Buffer.from((await ask(whole, wire)).text);
    at = recorded.indexOf("Köln") + 2;
    expect(at).toBeGreaterThan(2);
    const response = await askList(url);
    const text = await response.text();
    const body = JSON.parse(text) as Body | readonly Body[];
    // Without words nothing was sent before the cut, so that the status can still say it.
    expect(Array.isArray(body)).toBe(words !== "");
    expect(response.ok).toBe(words !== "");
    expect(Array.isArray(body) ? body.at(-1) : body).toMatchObject({ error: { message: expect.any(String) } });
    expect(text).not.toContain("functionCall");
    expect(read(text)).toMatchObject({ outcome: "error" });
  }
});
