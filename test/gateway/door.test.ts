/** Who gets in, and what goes through as it is. */
import { request as httpRequest } from "node:http";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { createKey, startGateway } from "../../src/gateway/index.ts";
import { ask, gateway, pathOf, question, rawUpstream, scripted, wires } from "./gateways.ts";

const target = (baseUrl: string) => [{ match: "*", targets: [{ baseUrl, wire: "chat", model: "x" }] }];

describe("the door", () => {
  const key = createKey();

  test.each([
    ["authorization", `Bearer ${key}`],
    ["x-api-key", key],
    ["x-goog-api-key", key],
  ])("a key in %s opens it, a wrong one does not", async (header, value) => {
    const model = await scripted([{ text: "in" }]);
    const url = await gateway({ routes: target(model.baseUrl), keys: [key] });
    expect((await ask(url, "chat", question("chat", true), { [header]: `${value}x` })).status).toBe(401);
    expect((await ask(url, "chat", question("chat", true), { [header]: value })).status).toBe(200);
    expect((await ask(url, "chat")).status).toBe(401);
    expect(model.requests).toHaveLength(1);
  });

  test("a key that is empty, as an unset variable may be, opens nothing", async () => {
    const model = await scripted([]);
    const url = await gateway({ routes: target(model.baseUrl), keys: [""] });
    for (const query of ["", "?key="]) {
      const headers = { authorization: "Bearer ", "x-api-key": "" };
      expect((await fetch(`${url}/v1/models${query}`, { headers })).status).toBe(401);
    }
  });

  test.each(["secret", 5, [5], [["secret"]], {}])(
    "keys that are no list of keys (%j) are refused at the start",
    async (keys) => {
      const start = startGateway({ routes: target("http://127.0.0.1:9/v1"), keys: keys as never });
      onTestFinished(async () => (await start.catch(() => undefined))?.close());
      await expect(start).rejects.toThrow(/'keys.*must be/);
    },
  );

  test("a web page and a name that is not ours stay outside, also without a key", async () => {
    const model = await scripted([]);
    const url = await gateway({ routes: target(model.baseUrl) });
    expect((await ask(url, "chat", question("chat", true), { origin: "http://evil.example" })).status).toBe(403);
    const other = await new Promise<number>((resolve) => {
      const asked = httpRequest(`${url}/v1/models`, { headers: { host: "evil.example" } }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      asked.end();
    });
    expect(other).toBe(403);
  });

  test("an address that is none, or encoded wrongly, is the client's mistake and nobody's fault here", async () => {
    const model = await scripted([]);
    const faults: unknown[] = [];
    const url = await gateway({ routes: target(model.baseUrl), onError: (error) => void faults.push(error) });
    const status = (path: string) =>
      new Promise<number>((resolve) => {
        httpRequest({ port: new URL(url).port, path }, (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        }).end();
      });
    expect(await status("//")).toBe(400);
    expect(await status("/v1/models/%E0%A4%A")).toBe(404);
    expect(await status("/v1/responses/%")).toBe(404);
    expect(faults).toEqual([]);
  });

  test("what is too large, no JSON or nowhere is refused in the wire's own form", async () => {
    const model = await scripted([]);
    const url = await gateway({ routes: target(model.baseUrl), maxBodyBytes: 1000 });
    const post = (body: string | Buffer<ArrayBuffer>, headers = {}) =>
      fetch(`${url}/v1/messages`, {
        method: "POST",
        body,
        headers: { "content-type": "application/json", ...headers },
      });
    expect((await post("x".repeat(2000))).status).toBe(413);
    expect((await post(gzipSync("x".repeat(100_000)), { "content-encoding": "gzip" })).status).toBe(413);
    const broken = await post("{");
    expect([broken.status, await broken.json()]).toMatchObject([
      400,
      { type: "error", error: { type: "invalid_request_error" } },
    ]);
    expect((await fetch(`${url}/v1/nowhere`)).status).toBe(404);
  });
});

describe("client and model speak the same wire", () => {
  const stream = (wire: (typeof wires)[number]) =>
    ({
      chat: 'data: {"id":"u","choices":[{"index":0,"delta":{"content":"hé"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
      gemini:
        'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"hé","thoughtSignature":"AAAA"}]},"finishReason":"STOP"}]}\n\n',
      messages:
        'event: message_start\ndata: {"type":"message_start","message":{"id":"u","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
      responses:
        'event: response.completed\ndata: {"type":"response.completed","response":{"id":"u","output":[],"status":"completed"}}\n\n',
    })[wire];

  test.each(wires)("%s: question and answer go through byte for byte", async (wire) => {
    const upstream = await rawUpstream((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(stream(wire));
    });
    const url = await gateway({ routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire }] }] });
    const asked = JSON.stringify(
      { ...question(wire, true), unknown_field: [1.0, "  "], ...(wire === "gemini" ? { stream: undefined } : {}) },
      null,
      1,
    );
    const response = await fetch(`${url}${pathOf(wire, true)}`, {
      method: "POST",
      body: asked,
      headers: { "anthropic-beta": "some-beta" },
    });
    expect(await response.text()).toBe(stream(wire));
    expect(upstream.requests[0]?.body).toBe(asked);
    expect(upstream.requests[0]?.headers["anthropic-beta"]).toBe("some-beta");
  });

  test("calls of an answer that breaks off are held back there too", async () => {
    const upstream = await rawUpstream((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"choices":[{"index":0,"delta":{"content":"Looking."}}]}\n\n');
      response.write(
        'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"weather","arguments":"{}"}}]}}]}\n\n',
      );
      setTimeout(() => response.destroy(), 30);
    });
    const url = await gateway({ routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "chat" }] }] });
    const { text } = await ask(url, "chat");
    expect(text).toContain("Looking.");
    expect(text).not.toContain("tool_calls");
    expect(text).toContain('"error"');
  });
});
