/** What used to be lost or mixed up on the way, by its smallest case. */
import { expect, test } from "vitest";
import { ask, type Body, gateway, question, rawUpstream, scripted, wires } from "./gateways.ts";

const sse = (events: readonly object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");

/** A Messages answer: a thought, words, and calls. */
function thinking(words: string, city: string, thought: string): string {
  const block = (index: number, start: object, delta: object) => [
    { type: "content_block_start", index, content_block: start },
    { type: "content_block_delta", index, delta },
    { type: "content_block_stop", index },
  ];
  const events = [
    { type: "message_start", message: { id: "m1", role: "assistant", content: [], usage: { input_tokens: 1 } } },
    ...block(
      0,
      { type: "thinking", thinking: thought, signature: "" },
      { type: "signature_delta", signature: thought },
    ),
    ...block(1, { type: "text", text: "" }, { type: "text_delta", text: words }),
    ...block(
      2,
      { type: "tool_use", id: "call_0", name: "weather", input: {} },
      { type: "input_json_delta", partial_json: city === "" ? "" : JSON.stringify({ city }) },
    ),
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

interface ChatReply {
  readonly choices: readonly [
    { readonly message: { readonly tool_calls: readonly { readonly id: string; readonly function: Body }[] } },
  ];
}

/** A Chat client that gives back what every Chat client does: no field that the API does not know. */
function plainly(reply: string): Body[] {
  const { message } = (JSON.parse(reply) as ChatReply).choices[0];
  const calls = message.tool_calls.map(({ id, function: made }) => ({ id, type: "function", function: made }));
  return [
    { role: "assistant", content: "Now.", tool_calls: calls },
    ...calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "rain" })),
  ];
}

test("thoughts go back before the words that followed them, for clients with and without a place for them", async () => {
  const upstream = await rawUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(thinking("Now.", "Köln", "hm"));
  });
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "messages", model: "x" }] }],
  });
  for (const isPlain of [true, false]) {
    const first = question("chat", false, `hello ${isPlain}`);
    const reply = await ask(url, "chat", first);
    const whole = (JSON.parse(reply.text) as { choices: [{ message: Body & { tool_calls: { id: string }[] } }] })
      .choices;
    const { message } = whole[0];
    const back = isPlain
      ? plainly(reply.text)
      : [message, { role: "tool", tool_call_id: message.tool_calls[0]!.id, content: "rain" }];
    await ask(url, "chat", { ...first, messages: [{ role: "user", content: `hello ${isPlain}` }, ...back] });
    const sent = JSON.parse(upstream.requests.at(-1)!.body) as { messages: { role: string; content: Body[] }[] };
    expect(sent.messages[1]?.content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
  }
});

test("conversations that begin alike keep their own thoughts, whatever ids a server gives its calls", async () => {
  let asked = 0;
  const upstream = await rawUpstream((_request, response) => {
    asked++;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(thinking("Now.", `city ${asked}`, `thought ${asked}`));
  });
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "messages", model: "x" }] }],
  });
  const first = question("chat", false, "Do the job");
  const replies = await Promise.all([1, 2, 3].map(() => ask(url, "chat", first)));
  for (const reply of replies) {
    const city = /city \d/.exec(reply.text)?.[0] ?? "";
    const messages = [{ role: "user", content: "Do the job" }, ...plainly(reply.text)];
    await ask(url, "chat", { ...first, messages });
    const sent = upstream.requests.at(-1)!.body;
    expect(sent).toContain(city);
    expect(/thought \d/.exec(sent)?.[0]).toBe(city.replace("city", "thought"));
  }
});

test("programs that ask alike at the same time have conversations of their own, and one asked again is the same", async () => {
  const model = await scripted([1, 2, 3, 4, 5].map((n) => ({ text: `answer ${n}` })));
  const seen: string[] = [];
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "chat", model: "x" }] }],
    onRequest: ({ conversation }) => void seen.push(conversation),
  });
  const [one] = await Promise.all([ask(url, "chat"), ask(url, "chat")]);
  expect(new Set(seen).size).toBe(2);
  const words = /answer \d/.exec(JSON.stringify(one.answer.items))?.[0] ?? "";
  const messages = [
    { role: "user", content: "hi" },
    { role: "assistant", content: words },
    { role: "user", content: "go on" },
  ];
  const goOn = { ...question("chat", true), messages };
  await ask(url, "chat", goOn);
  await ask(url, "chat", goOn);
  expect(seen[2]).toBe(seen[3]);
  expect(seen.slice(0, 2)).toContain(seen[2]);
});

test.each([true, false])(
  "a response that went through as it came can be gone on with (streamed: %s)",
  async (stream) => {
    const model = await scripted([{ text: "It rains." }, { text: "As I said." }]);
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "responses", model: "m" }] }],
    });
    const first = await ask(url, "responses", question("responses", stream));
    const next = await ask(url, "responses", {
      ...question("responses", stream, "and now?"),
      previous_response_id: first.answer.id ?? "",
    });
    expect(next.status).toBe(200);
    expect(JSON.stringify(model.requests[1]?.input)).toMatch(/hi.*It rains\..*and now\?/);
  },
);

test("a conversation that is still empty is ours, and its name does not go to the model's server", async () => {
  const model = await scripted([{ text: "one" }, { text: "two" }]);
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "responses", model: "m" }] }],
  });
  const made = await fetch(`${url}/v1/conversations`, { method: "POST", body: "{}" });
  const { id } = (await made.json()) as { id: string };
  await ask(url, "responses", { ...question("responses", true, "first"), conversation: id });
  await ask(url, "responses", { ...question("responses", true, "second"), conversation: id });
  expect(JSON.stringify(model.bodies)).not.toContain(id);
  expect(JSON.stringify(model.requests[1]?.input)).toMatch(/first.*one.*second/);
});

test("a call without arguments has an empty object for clients that parse them", async () => {
  const upstream = await rawUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(thinking("Now.", "", "hm"));
  });
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "messages", model: "x" }] }],
  });
  for (const client of ["chat", "responses"] as const) {
    const { text } = await ask(url, client, question(client, false));
    expect(/"arguments":("[^"]*")/.exec(text)?.[1]).toBe('"{}"');
  }
});

test.each([
  [400, 2],
  [402, 2],
  [401, 1],
  [403, 1],
  [404, 1],
  [500, 2],
  [502, 2],
] as const)(
  "an upstream's %i keeps its status on every wire, and is not asked for again and again",
  async (status, most) => {
    for (const client of wires) {
      const upstream = await rawUpstream((_request, response) => {
        response.writeHead(status, { "content-type": "application/json", "retry-after": "0" });
        response.end(JSON.stringify({ error: { message: "not so" } }));
      });
      for (const wire of ["chat", "messages"] as const) {
        const before = upstream.requests.length;
        const url = await gateway({
          routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire, model: "m" }] }],
        });
        const reply = await ask(url, client);
        expect([client, wire, reply.status]).toEqual([client, wire, status]);
        expect(reply.text).toContain("not so");
        expect(upstream.requests.length - before).toBeLessThanOrEqual(most);
      }
    }
  },
);

test("a refusal that came without words is no complete response", async () => {
  const upstream = await rawUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(thinking("So far", "x", "hm").replace('"tool_use"},"usage"', '"refusal"},"usage"'));
  });
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "messages", model: "x" }] }],
  });
  const { text } = await ask(url, "responses", question("responses", false));
  expect(JSON.parse(text)).toMatchObject({ status: "incomplete", incomplete_details: { reason: "content_filter" } });
});

test("a secret in arguments, where it is escaped twice, does not go through as it came", async () => {
  const secret = 'first "line"\nsecond line of the key';
  const upstream = await rawUpstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(
      `${sse([{ choices: [{ index: 0, delta: { content: "ok" }, finish_reason: "stop" }] }])}data: [DONE]\n\n`,
    );
  });
  const url = await gateway({
    routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "chat", model: "m" }] }],
    secrets: [secret],
  });
  const made = { name: "weather", arguments: JSON.stringify({ city: secret }) };
  await ask(url, "chat", {
    ...question("chat", true),
    messages: [
      { role: "user", content: "hi" },
      { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: made }] },
      { role: "tool", tool_call_id: "c", content: "rain" },
    ],
  });
  expect(upstream.requests).toHaveLength(1);
  expect(upstream.requests[0]?.body).not.toContain("second line");
});

test.each(wires)(
  "a page or the wrong kind of answer never goes to a %s client as if a model had said it",
  async (client) => {
    for (const [type, body] of [
      ["text/html", "<html>Log in</html>"],
      ["text/event-stream", ""],
      ["application/json", "{}"],
    ] as const) {
      const upstream = await rawUpstream((_request, response) => {
        response.writeHead(200, { "content-type": type });
        response.end(body);
      });
      for (const wire of [client, client === "messages" ? "chat" : "messages"] as const) {
        const url = await gateway({
          routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire, model: "m" }] }],
        });
        const isWhole = type !== "application/json";
        const reply = await ask(url, client, { ...question(client, !isWhole), stream: !isWhole });
        expect([type, wire, reply.status]).toEqual([type, wire, 502]);
        expect(reply.text).not.toContain("127.0.0.1");
      }
    }
  },
);
