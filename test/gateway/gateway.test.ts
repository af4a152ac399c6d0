import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { tempFolder } from "../cli/run.ts";
import { decodeSse } from "../../src/wire/sse.ts";
import { ask, gateway, question, rawUpstream, scripted, wires } from "./gateways.ts";

const call = { name: "weather", input: { city: "Köln" } };

describe.each(wires)("a %s client", (client) => {
  test.each([...wires, "text:hermes"] as const)(
    "on a model that speaks %s gets text and calls whole, streamed and not",
    async (upstream) => {
      const dialect = upstream.startsWith("text:") ? upstream.slice(5) : undefined;
      const model = await scripted(
        [
          { text: "Let me look.", calls: [call, { name: "weather", input: { city: "東京" } }] },
          { text: "Let me look.", calls: [call] },
        ],
        dialect,
      );
      const baseUrl = upstream === "gemini" ? model.baseUrl.replace("/v1", "/v1beta") : model.baseUrl;
      const url = await gateway({ routes: [{ match: "*", targets: [{ baseUrl, wire: upstream, model: "real" }] }] });
      for (const stream of [true, false]) {
        const { status, answer } = await ask(url, client, { ...question(client, stream), stream });
        expect(status).toBe(200);
        const calls = answer.items.flatMap((item) => (item.type === "call" ? [item] : []));
        expect(calls.map(({ name, arguments: text, complete }) => [name, JSON.parse(text), complete])).toEqual(
          stream
            ? [
                ["weather", { city: "Köln" }, true],
                ["weather", { city: "東京" }, true],
              ]
            : [["weather", { city: "Köln" }, true]],
        );
        const words = answer.items.flatMap((item) => (item.type === "message" ? item.content : []));
        expect(words).toMatchObject([{ type: "text", text: expect.stringContaining("Let me look.") }]);
      }
    },
  );

  test("is told of an upstream's trouble with the status and the words it knows", async () => {
    const upstream = await rawUpstream((_request, response) => {
      response.writeHead(429, { "content-type": "application/json", "retry-after": "0" });
      response.end(
        JSON.stringify({
          error: { message: "slow down, please", type: "rate_limit_error", code: "rate_limit_exceeded" },
        }),
      );
    });
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "chat", model: "x" }] }],
    });
    const { status, headers, text } = await ask(url, client);
    expect(status).toBe(429);
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(text).toContain("slow down, please");
    expect(text).not.toContain("127.0.0.1");
    expect(upstream.requests.length).toBeLessThanOrEqual(2);
  });

  test("never gets the calls of an answer that broke off, and always an end", async () => {
    const upstream = await rawUpstream((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const chunk = (delta: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;
      response.write(chunk({ role: "assistant", content: "Looking." }));
      response.write(
        chunk({
          tool_calls: [
            { index: 0, id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Köln"}' } },
          ],
        }),
      );
      setTimeout(() => response.destroy(), 30);
    });
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "chat", model: "x" }] }],
    });
    const { answer } = await ask(url, client);
    expect(answer.items.filter((item) => item.type === "call" && item.complete)).toEqual([]);
    expect(answer.outcome).not.toBe("ok");
  });
});

test("an upstream that numbers its calls anew in each answer gives each of them an id of its own", async () => {
  const model = await scripted([{ calls: [{ ...call, id: "call_0" }] }]);
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "x" }] }],
  });
  const { answer } = await ask(url, "messages", {
    ...question("messages", true),
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content: [{ type: "tool_use", id: "call_0", name: "weather", input: { city: "Bonn" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "call_0", content: "rain" }] },
    ],
  });
  const made = answer.items.find((item) => item.type === "call");
  expect(made).toMatchObject({ name: "weather", complete: true });
  expect(made).not.toMatchObject({ id: "call_0" });
});

describe("a request that refers to an earlier one", () => {
  async function opened() {
    const model = await scripted([{ calls: [{ ...call, id: "c1" }] }, { text: "It rains." }, { text: "As I said." }]);
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "x" }] }],
    });
    const first = await ask(url, "responses", question("responses", false));
    return { model, url, first, id: first.answer.id ?? "" };
  }

  test("is given the whole conversation, and the response can be looked up and removed", async () => {
    const { model, url, id } = await opened();
    expect(id).toMatch(/^resp_/);
    const next = await ask(url, "responses", {
      ...question("responses", false),
      previous_response_id: id,
      input: [{ type: "function_call_output", call_id: "c1", output: "rain" }],
    });
    expect(next.answer.items).toMatchObject([{ type: "message" }]);
    expect(model.requests[1]?.input.map(({ type }) => type)).toEqual(["message", "call", "result"]);
    expect((await fetch(`${url}/v1/responses/${id}`)).status).toBe(200);
    expect((await fetch(`${url}/v1/responses/${id}`, { method: "DELETE" })).status).toBe(200);
    expect((await fetch(`${url}/v1/responses/${id}`)).status).toBe(404);
  });

  test.each([false, true])("is named in the response, with whether that is stored (streamed: %s)", async (stream) => {
    const { url, first, id } = await opened();
    expect(JSON.parse(first.text)).toMatchObject({ store: true, previous_response_id: null });
    const input = [{ type: "function_call_output", call_id: "c1", output: "rain" }];
    const more = { ...question("responses", stream), previous_response_id: id, input };
    for (const store of [true, false]) {
      const { text, answer } = await ask(url, "responses", { ...more, store });
      const told = stream ? decodeSse(text).map(({ data }) => JSON.parse(data).response) : [JSON.parse(text)];
      const responses = told.filter((response) => response !== undefined);
      expect(responses).toHaveLength(stream ? 3 : 1);
      for (const response of responses) expect(response).toMatchObject({ store, previous_response_id: id });
      const kept = await fetch(`${url}/v1/responses/${answer.id}`);
      expect(kept.status).toBe(store ? 200 : 404);
      if (store) expect(await kept.json()).toMatchObject({ store: true, previous_response_id: id });
    }
  });

  test("that is not known is refused, never answered on half a conversation", async () => {
    const { model, url } = await opened();
    const lost = await ask(url, "responses", { ...question("responses", true), previous_response_id: "resp_never" });
    expect(lost.status).toBe(404);
    expect(JSON.parse(lost.text)).toMatchObject({ error: { code: "previous_response_not_found" } });
    const reference = await ask(url, "responses", {
      ...question("responses", true),
      input: [{ type: "item_reference", id: "fc_never" }],
    });
    expect(reference.status).toBe(404);
    expect(model.requests).toHaveLength(1);
  });

  test("by its items finds them", async () => {
    const { model, url, first } = await opened();
    const output = (JSON.parse(first.text) as { output: readonly { id: string; type: string }[] }).output;
    const made = output.find(({ type }) => type === "function_call");
    await ask(url, "responses", {
      ...question("responses", false),
      input: [
        { type: "item_reference", id: made?.id ?? "" },
        { type: "function_call_output", call_id: "c1", output: "rain" },
      ],
    });
    expect(model.requests[1]?.input).toMatchObject([{ type: "call", name: "weather" }, { type: "result" }]);
  });
});

test("a web search that nobody can make is an error result, never a made-up answer", async () => {
  const model = await scripted([{ text: "Invented results" }]);
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "x" }] }],
  });
  const asked = {
    model: "m",
    stream: false,
    max_tokens: 100,
    messages: [{ role: "user", content: "Perform a web search for the query: callgate" }],
    tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 8 }],
    tool_choice: { type: "tool", name: "web_search" },
  };
  const { text } = await ask(url, "messages", asked);
  expect(text).toContain("web_search_tool_result_error");
  expect(model.requests).toEqual([]);
});

test("a search service of one's own answers instead", async () => {
  const model = await scripted([]);
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "x" }] }],
    search: async (query) => [{ title: `About ${query}`, url: "http://127.0.0.1/found" }],
  });
  const { text } = await ask(url, "messages", {
    model: "m",
    stream: false,
    max_tokens: 100,
    messages: [{ role: "user", content: "Perform a web search for the query: callgate" }],
    tools: [{ type: "web_search_20250305", name: "web_search" }],
  });
  expect(text).toContain("About callgate");
});

test("secrets do not leave, and commands that use them still work", async () => {
  const secret = "sk-very-secret-value-1234";
  const model = await scripted([
    (request) => {
      const said = JSON.stringify(request.input);
      const placeholder = /\[secret:[0-9a-f]{12}\]/.exec(said)?.[0] ?? "none";
      return { calls: [{ name: "weather", input: { city: `curl -H ${placeholder}` } }] };
    },
  ]);
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "m" }] }],
    secrets: [secret],
  });
  const { answer } = await ask(url, "chat", question("chat", true, `the key is ${secret}`));
  expect(JSON.stringify(model.bodies)).not.toContain(secret);
  expect(answer.items).toMatchObject([{ type: "call", arguments: JSON.stringify({ city: `curl -H ${secret}` }) }]);
});

describe("limits", () => {
  test("counts that cannot be written are told, still hold, and do not end the gateway", async () => {
    const stateDir = tempFolder("state");
    // A folder where the file belongs: not even root can write it.
    mkdirSync(join(stateDir, "gateway", "usage.json.new"), { recursive: true });
    const model = await scripted([{ text: "one" }]);
    const faults: unknown[] = [];
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "m" }] }],
      budget: { day: { requests: 1 } },
      stateDir,
      journal: false,
      onError: (error) => void faults.push(error),
    });
    expect((await ask(url, "chat", question("chat", false))).status).toBe(200);
    await expect.poll(() => faults.length, { timeout: 5000 }).toBe(1);
    expect((await ask(url, "chat", question("chat", false))).text).toContain("budget of today is used up");
  });

  test("a budget that is used up is told as one, and nothing is asked", async () => {
    const model = await scripted([{ text: "one", end: { usage: { input: 60, output: 50 } } }]);
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "x" }] }],
      budget: { day: { requests: 1 }, conversation: { tokens: 100 } },
    });
    expect((await ask(url, "messages")).status).toBe(200);
    const second = await ask(url, "messages");
    expect(second.status).toBe(402);
    expect(second.text).toContain("budget of this conversation is used up: 110 of 100 tokens");
    const third = await ask(url, "responses", question("responses", true, "something else"));
    expect(third.status).toBe(400);
    // What was refused is not counted.
    expect(third.text).toContain("budget of today is used up: 1 of 1 requests");
    expect(model.requests).toHaveLength(1);
  });

  test("a model that makes the same call again and again is stopped", async () => {
    const model = await scripted([]);
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "x" }] }],
      budget: { maxRepeats: 3 },
    });
    const turn = (id: string) => [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name: "weather", arguments: '{"city":"X"}' } }],
      },
      { role: "tool", tool_call_id: id, content: "rain" },
    ];
    const { status, text } = await ask(url, "chat", {
      ...question("chat", true),
      messages: [{ role: "user", content: "hi" }, ...["a", "b", "c"].flatMap(turn)],
    });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(text).toContain("same call 3 times");
  });
});

describe("routing", () => {
  test("a target that fails is left out, and the conversation stays with the one that answered", async () => {
    const broken = await rawUpstream((_request, response) =>
      response.writeHead(503).end('{"error":{"message":"down"}}'),
    );
    const well = await scripted([{ text: "one" }, { text: "two" }]);
    const url = await gateway({
      routes: [
        {
          match: "m",
          targets: [
            { baseUrl: broken.baseUrl, wire: "chat", model: "a" },
            { baseUrl: well.baseUrl, wire: "chat", model: "b" },
          ],
        },
      ],
    });
    expect((await ask(url, "chat")).status).toBe(200);
    const tries = broken.requests.length;
    expect((await ask(url, "chat")).status).toBe(200);
    expect(broken.requests.length).toBe(tries);
    expect(well.requests).toHaveLength(2);
  });

  test("a name that no route takes is told with the names that are known", async () => {
    const model = await scripted([]);
    const url = await gateway({
      routes: [{ match: "known-*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "real" }] }],
    });
    const { status, text } = await ask(url, "chat");
    expect(status).toBe(404);
    expect(text).toContain("'m'");
  });

  test("side questions go to the small model", async () => {
    const [big, small] = [await scripted([{ text: "big" }]), await scripted([{ text: "small" }])];
    const url = await gateway({
      routes: [
        {
          match: "*",
          targets: [{ baseUrl: big.baseUrl, wire: "chat", model: "big" }],
          small: { baseUrl: small.baseUrl, wire: "chat", model: "small" },
        },
      ],
    });
    await ask(url, "chat", { model: "m", stream: false, messages: [{ role: "user", content: "a title, please" }] });
    await ask(url, "chat");
    expect([big.requests.length, small.requests.length]).toEqual([1, 1]);
  });
});
