/** What breaks in other gateways, one test each: the sixteen failures that people report most. */
import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { isObject, type Json } from "../../src/base/json.ts";
import { checkSchema } from "../../src/schema/normalize/check-schema.ts";
import type { WireName } from "../../src/wire/codec.ts";
import { decodeSse } from "../../src/wire/sse.ts";
import { ask, type Body, gateway, goOn, question, rawUpstream, type RawRequest, wires } from "./gateways.ts";

/** A gateway in front of one raw upstream, and what that was asked. */
async function before(
  upstreamWire: string,
  answer: (request: RawRequest, response: ServerResponse, count: number) => void,
  provider?: string,
): Promise<{ readonly url: string; bodies(): readonly Body[] }> {
  let count = 0;
  const upstream = await rawUpstream((request, response) => answer(request, response, count++));
  const baseUrl = upstream.baseUrl;
  const target = { baseUrl, wire: upstreamWire, model: "real", ...(provider === undefined ? {} : { provider }) };
  const url = await gateway({ routes: [{ match: "*", targets: [target] }] });
  return { url, bodies: () => upstream.requests.map(({ body }) => JSON.parse(body) as Body) };
}

function stream(response: ServerResponse, frames: readonly (string | object)[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const frame of frames) response.write(`data: ${typeof frame === "string" ? frame : JSON.stringify(frame)}\n\n`);
  response.end();
}

const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: "c",
  choices: [{ index: 0, delta, finish_reason }],
});
const chatCall = (id: string, args: string) =>
  chunk({ tool_calls: [{ index: 0, id, type: "function", function: { name: "weather", arguments: args } }] });
const chatText = [chunk({ content: "Done." }), chunk({}, "stop"), "[DONE]"];

const whole = (wire: WireName) => ({ ...question(wire, false), stream: false });
const callsIn = (items: readonly { readonly type: string }[]) => items.filter(({ type }) => type === "call");

test("1: the arguments of a streamed call arrive whole, however small its pieces are", async () => {
  const args = JSON.stringify({ city: 'Köln am Rhein, "die" Stadt\n' });
  const pieces = args.match(/[\s\S]{1,11}/g) ?? [];
  const { url } = await before("chat", (_request, response) =>
    stream(response, [
      chunk({ content: "Let me " }),
      chunk({ content: "look." }),
      chatCall("c1", ""),
      ...pieces.map((piece) => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
      chunk({}, "tool_calls"),
      "[DONE]",
    ]),
  );
  const { answer } = await ask(url, "messages");
  expect(answer.items).toMatchObject([
    { type: "message", content: [{ text: "Let me look." }] },
    { type: "call", name: "weather", complete: true },
  ]);
  const call = answer.items[1];
  expect(call?.type === "call" ? JSON.parse(call.arguments) : undefined).toEqual(JSON.parse(args));
});

test("2: a signature goes back as it came; one that is foreign, forged or missing is left out, never made up", async () => {
  const { url, bodies } = await before("messages", (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const content = [
      { type: "thinking", thinking: "Hm.", signature: "EqRealSignature+/==" },
      { type: "tool_use", id: "t1", name: "weather", input: { city: "Bonn" } },
    ];
    response.end(
      JSON.stringify({ id: "m", type: "message", role: "assistant", content, stop_reason: "tool_use", usage: {} }),
    );
  });
  const first = whole("messages");
  const { text } = await ask(url, "messages", first);
  await ask(url, "messages", goOn("messages", first, JSON.parse(text) as Json, "rain"));
  expect(JSON.stringify(bodies()[1])).toContain(
    '{"type":"thinking","thinking":"Hm.","signature":"EqRealSignature+/=="}',
  );
  const forged = `Y2FsbGdhdGUx${Buffer.from(JSON.stringify(["messages", "signature", "forged"])).toString("base64")}`;
  for (const signature of ["", forged]) {
    const swap = (item: Json): Json =>
      isObject(item) && item["type"] === "thinking" ? { ...(item as Body), signature } : item;
    await ask(url, "messages", goOn("messages", first, JSON.parse(text) as Json, "rain", swap));
    const sent = JSON.stringify(bodies().at(-1)?.["messages"]);
    expect(sent).not.toContain('"thinking"');
    expect(sent).not.toContain("forged");
    expect(sent).toContain('"tool_use"');
  }
});

describe("3: Gemini's thought signature comes back with its call", () => {
  test.each(wires)("from a %s client", async (client) => {
    const { url, bodies } = await before("gemini", (_request, response) =>
      stream(response, [
        {
          candidates: [
            {
              content: {
                role: "model",
                parts: [
                  { functionCall: { name: "weather", args: { city: "Bonn" } }, thoughtSignature: "c2lnbmF0dXJl" },
                ],
              },
              finishReason: "STOP",
            },
          ],
        },
      ]),
    );
    const first = whole(client);
    const { text } = await ask(url, client, first);
    await ask(url, client, goOn(client, first, JSON.parse(text) as Json, "rain"));
    expect(JSON.stringify(bodies()[1])).toContain('"thoughtSignature":"c2lnbmF0dXJl"');
    expect(JSON.stringify(bodies()[1])).not.toContain("skip_thought");
  });

  test("also from a Chat client that drops every field it does not know", async () => {
    const parts = [{ functionCall: { name: "weather", args: { city: "Bonn" } }, thoughtSignature: "c2lnbmF0dXJl" }];
    const { url, bodies } = await before("gemini", (_request, response) =>
      stream(response, [{ candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }] }]),
    );
    const first = whole("chat");
    const { text } = await ask(url, "chat", first);
    const bare = (item: Json): Json => {
      const message = item as Body;
      const calls = (message["tool_calls"] as Body[]).map(({ id, type, function: called }) => ({
        id,
        type,
        function: called,
      }));
      return { role: "assistant", content: null, tool_calls: calls as Json };
    };
    await ask(url, "chat", goOn("chat", first, JSON.parse(text) as Json, "rain", bare));
    expect(JSON.stringify(bodies()[1])).toContain('"thoughtSignature":"c2lnbmF0dXJl"');
  });
});

test("4: one block is open at a time, numbered without gaps, whatever order text and thoughts come in", async () => {
  const { url } = await before("chat", (_request, response) =>
    stream(response, [
      chunk({ content: "One." }),
      chunk({ reasoning_content: "Thought." }),
      chunk({ content: "Two." }),
      chatCall("c1", '{"city":"Bonn"}'),
      chunk({ content: "Three." }),
      chunk({}, "tool_calls"),
      "[DONE]",
    ]),
  );
  const { text, answer } = await ask(url, "messages");
  let open: number | undefined;
  let next = 0;
  for (const { data } of decodeSse(text)) {
    const event = JSON.parse(data) as { type: string; index?: number };
    if (event.type === "content_block_start") {
      expect([open, event.index]).toEqual([undefined, next++]);
      open = event.index;
    }
    if (event.type === "content_block_delta") expect(event.index).toBe(open);
    if (event.type === "content_block_stop") {
      expect(event.index).toBe(open);
      open = undefined;
    }
  }
  expect(open).toBeUndefined();
  expect(next).toBeGreaterThanOrEqual(4);
  expect(answer.items.map(({ type }) => type)).toContain("call");
  expect(text).toContain("Three.");
});

describe("5: namespaces, freeform tools and tools among the items reach every model and come back as they were", () => {
  const tools: Json = [
    { type: "custom", name: "apply_patch", description: "edits", format: { type: "text" } },
    {
      type: "namespace",
      name: "mcp__files",
      tools: [{ type: "function", name: "read", parameters: { type: "object" } }],
    },
  ];
  const placed: readonly (readonly [string, Body])[] = [
    ["in the list", { model: "m", stream: true, tools, input: "hi" }],
    [
      "among the items",
      {
        model: "m",
        stream: true,
        input: [
          { type: "additional_tools", role: "developer", tools },
          { type: "message", role: "developer", content: "Be brief." },
          { type: "message", role: "user", content: "hi" },
        ],
      },
    ],
  ];
  test.each(placed)("%s, on Chat", async (_where, body) => {
    const { url, bodies } = await before("chat", (request, response) => {
      const names = (JSON.parse(request.body) as { tools: { function: { name: string } }[] }).tools.map(
        (tool) => tool.function.name,
      );
      const read = names.find((name) => name.endsWith("read")) ?? "";
      const call = (index: number, name: string, args: string) =>
        chunk({ tool_calls: [{ index, id: `c${index}`, type: "function", function: { name, arguments: args } }] });
      stream(response, [
        call(0, "apply_patch", '{"input":"*** Begin"}'),
        call(1, read, "{}"),
        chunk({}, "tool_calls"),
        "[DONE]",
      ]);
    });
    const { answer } = await ask(url, "responses", body);
    expect(answer.items).toMatchObject([
      { type: "call", kind: "custom", name: "apply_patch", arguments: "*** Begin" },
      { type: "call", kind: "function", name: "read", namespace: "mcp__files" },
    ]);
    if (typeof body["input"] !== "string")
      expect(bodies()[0]?.["messages"]).toMatchObject([{ role: "system", content: "Be brief." }, { role: "user" }]);
  });

  test.each(placed)("%s, on a model that only writes text", async (_where, body) => {
    const { url, bodies } = await before("text:hermes", (_request, response) =>
      stream(response, [
        chunk({ content: '<tool_call>\n{"name": "apply_patch", "arguments": {"input": "*** Begin"}}\n</tool_call>' }),
        chunk({}, "stop"),
        "[DONE]",
      ]),
    );
    const { answer } = await ask(url, "responses", body);
    expect(callsIn(answer.items)).toMatchObject([{ kind: "custom", name: "apply_patch", arguments: "*** Begin" }]);
    expect(bodies()[0]).not.toHaveProperty("tools");
    expect(JSON.stringify(bodies()[0])).toContain("apply_patch");
  });
});

test("6: a response that is referred to is put in whole, and one that is unknown is refused", async () => {
  const { url, bodies } = await before("chat", (_request, response, count) =>
    stream(response, count === 0 ? [chatCall("c1", '{"city":"Bonn"}'), chunk({}, "tool_calls"), "[DONE]"] : chatText),
  );
  const first = await ask(url, "responses", whole("responses"));
  const result: Json = [{ type: "function_call_output", call_id: "c1", output: "rain" }];
  const next = { ...whole("responses"), previous_response_id: first.answer.id ?? "", input: result };
  expect((await ask(url, "responses", next)).status).toBe(200);
  expect(bodies()[1]?.["messages"]).toMatchObject([{ role: "user" }, { role: "assistant" }, { role: "tool" }]);
  expect((await ask(url, "responses", { ...next, previous_response_id: "resp_of_another_life" })).status).toBe(404);
  expect(bodies()).toHaveLength(2);
});

describe("7: ids are unique in a conversation and legal in the client's wire", () => {
  test.each(["call_0", "functions.weather:0", `call_${"x".repeat(120)}`])(
    "where the model's server says %s each time",
    async (id) => {
      const { url } = await before("chat", (_request, response) =>
        stream(response, [chatCall(id, '{"city":"Bonn"}'), chunk({}, "tool_calls"), "[DONE]"]),
      );
      let body: Body = whole("messages");
      const ids = new Set<string>();
      for (let turn = 0; turn < 4; turn++) {
        const { text, answer } = await ask(url, "messages", body);
        const call = answer.items.find((item) => item.type === "call");
        expect(call?.id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
        ids.add(call?.id ?? "");
        body = goOn("messages", body, JSON.parse(text) as Json, "rain");
      }
      expect(ids.size).toBe(4);
    },
  );
});

test("8: instructions in the middle are folded for templates that take one system message only", async () => {
  const { url, bodies } = await before("chat", (_request, response) => stream(response, chatText));
  await ask(url, "messages", {
    ...question("messages", true),
    system: [{ type: "text", text: "x-anthropic-billing-header: cc_version=1;\nBe brief." }],
    messages: [
      { role: "user", content: "hi" },
      { role: "system", content: "The date has changed." },
      { role: "user", content: "go on" },
    ],
  });
  const messages = bodies()[0]?.["messages"] as Body[];
  expect(messages.filter(({ role }) => role === "system")).toEqual([{ role: "system", content: "Be brief." }]);
  expect(messages.every(({ role }, at) => role !== "system" || at === 0)).toBe(true);
  expect(JSON.stringify(messages)).toContain("The date has changed.");
});

test("9: a web search that nobody can make is an error result, and no model makes one up", async () => {
  const { url, bodies } = await before("chat", (_request, response) => stream(response, chatText));
  const { text } = await ask(url, "messages", {
    model: "m",
    stream: false,
    max_tokens: 100,
    tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 8 }],
    tool_choice: { type: "tool", name: "web_search" },
    messages: [{ role: "user", content: "Perform a web search for the query: news" }],
  });
  expect(text).toContain('"error_code":"unavailable"');
  expect(bodies()).toEqual([]);
});

describe.each(wires)("10: a %s client always gets an end", (client) => {
  const troubles: Readonly<Record<string, (response: ServerResponse) => void>> = {
    "an answer that is cut": (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: ${JSON.stringify(chunk({ content: "Half an " }))}\n\n`, () => response.destroy());
    },
    "a stream that ends without its end": (response) => stream(response, [chunk({ content: "Half an " })]),
    "an error of the server": (response) => void response.writeHead(500).end("no"),
    "a web page": (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<html></html>"),
    "an empty body": (response) => void response.writeHead(200, { "content-type": "text/event-stream" }).end(),
    "an error inside the stream": (response) => stream(response, [{ error: { message: "no memory", code: 500 } }]),
  };
  test.each(Object.keys(troubles))("after %s", async (trouble) => {
    const { url } = await before("chat", (_request, response) => troubles[trouble]!(response));
    for (const streams of [true, false]) {
      const { status, answer, text } = await ask(url, client, { ...question(client, streams), stream: streams });
      expect(answer.outcome).not.toBe("ok");
      expect(text).toContain("error");
      if (!streams || !trouble.includes("cut")) expect(text.length).toBeGreaterThan(0);
      if (!streams) expect(status).toBeGreaterThanOrEqual(400);
    }
  });
});

test("11: pictures in results reach a model whose results hold only text", async () => {
  const { url, bodies } = await before("chat", (_request, response) => stream(response, chatText));
  const image: Json = { type: "image", source: { type: "base64", media_type: "image/png", data: "aGFsbG8=" } };
  const pdf: Json = { type: "document", source: { type: "base64", media_type: "application/pdf", data: "cGRm" } };
  await ask(url, "messages", {
    ...question("messages", true),
    messages: [
      { role: "user", content: "look" },
      {
        role: "assistant",
        content: ["a", "b"].map((id) => ({ type: "tool_use", id, name: "weather", input: { city: id } })),
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: [image] },
          { type: "tool_result", tool_use_id: "b", content: [pdf] },
        ],
      },
    ],
  });
  const messages = bodies()[0]?.["messages"] as Body[];
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "user"]);
  for (const { role, content } of messages) if (role === "tool") expect(content).toBeTypeOf("string");
  const shown = JSON.stringify(messages.at(-1));
  expect(shown).toContain("data:image/png;base64,aGFsbG8=");
  expect(shown).toMatch(/"filename":"[^"]+\.pdf"/);
});

describe("12: a thought is never shown as text", () => {
  test.each(wires)("to or by a %s client", async (client) => {
    const { url, bodies } = await before("chat", (_request, response, count) =>
      stream(
        response,
        count === 0
          ? [
              chunk({ reasoning_content: "My secret plan." }),
              chatCall("c1", '{"city":"Bonn"}'),
              chunk({}, "tool_calls"),
              "[DONE]",
            ]
          : chatText,
      ),
    );
    const first = whole(client);
    const { text, answer } = await ask(url, client, first);
    const said = answer.items.flatMap((item) => (item.type === "message" ? item.content : []));
    expect(JSON.stringify(said)).not.toContain("secret plan");
    await ask(url, client, goOn(client, first, JSON.parse(text) as Json, "rain"));
    const messages = (bodies()[1]?.["messages"] ?? []) as Body[];
    const assistant = messages.find(({ role }) => role === "assistant");
    expect(JSON.stringify(assistant?.["content"] ?? null)).not.toContain("secret plan");
    expect(assistant?.["reasoning_content"]).toBe("My secret plan.");
  });
});

describe("13: how an answer stopped is told by its calls, not by the server's word for it", () => {
  const told: Readonly<Record<WireName, RegExp>> = {
    messages: /"stop_reason":"tool_use"/,
    chat: /"finish_reason":"tool_calls"/,
    responses: /"type":"function_call"/,
    gemini: /"functionCall"/,
  };
  test.each(wires)("to a %s client", async (client) => {
    const { url } = await before("chat", (_request, response) =>
      stream(response, [
        chunk({ content: "Let me look." }),
        chatCall("c1", '{"city":"Bonn"}'),
        chunk({}, "stop"),
        "[DONE]",
      ]),
    );
    const { text, answer } = await ask(url, client);
    expect(text).toMatch(told[client]);
    expect(callsIn(answer.items)).toMatchObject([{ complete: true }]);
  });
});

test("14: a cache key has 64 characters at most and no device id in it", async () => {
  const { url, bodies } = await before("responses", (_request, response) => void response.writeHead(500).end());
  const user = { device_id: "d".repeat(64), account_uuid: "", session_id: "0b0e3c1e-6f1a-4e53-9d2c-0c3c1a1b2c3d" };
  await ask(url, "messages", { ...question("messages", true), metadata: { user_id: JSON.stringify(user) } });
  const key = bodies()[0]?.["prompt_cache_key"];
  expect(String(key).length).toBeLessThanOrEqual(64);
  expect(JSON.stringify(bodies()[0])).not.toContain("dddddddd");
});

test("15: tools are lowered to what a grammar server takes", async () => {
  const { url, bodies } = await before("chat", (_request, response) => stream(response, chatText), "llama-cpp");
  const input_schema: Json = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      any: true,
      mail: { type: "string", format: "email", pattern: "^(?!\\.)[^@]+@\\S+$", maxLength: 5000 },
      list: { type: "array", items: { $ref: "#/$defs/entry" }, maxItems: 9000 },
    },
    $defs: { entry: { type: "object", properties: { next: { $ref: "#/$defs/entry" } } } },
    anyOf: [{ required: ["mail"] }, { required: ["list"] }],
  };
  await ask(url, "messages", { ...question("messages", true), tools: [{ name: "weather", input_schema }] });
  const [tool] = (bodies()[0]?.["tools"] ?? []) as { function: { parameters: Record<string, Json> } }[];
  expect(checkSchema(tool?.function.parameters ?? {}, "llama-cpp")).toEqual([]);
});

describe("16: what failed, was refused or was cancelled does not look like success", () => {
  test("a failed result", async () => {
    const { url, bodies } = await before("chat", (_request, response) => stream(response, chatText));
    await ask(url, "messages", {
      ...question("messages", true),
      messages: [
        { role: "user", content: "hi" },
        { role: "assistant", content: [{ type: "tool_use", id: "a", name: "weather", input: { city: "Bonn" } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "a", is_error: true, content: "no such city" }] },
      ],
    });
    expect(bodies()[0]?.["messages"]).toMatchObject([{}, {}, { role: "tool", content: "Error: no such city" }]);
  });

  test.each(wires)("a refusal, to a %s client", async (client) => {
    const { url } = await before("chat", (_request, response) =>
      stream(response, [
        chunk({ refusal: "I will not." }),
        chatCall("c1", '{"city":"Bonn"}'),
        chunk({}, "content_filter"),
        "[DONE]",
      ]),
    );
    const { answer } = await ask(url, client);
    expect(callsIn(answer.items)).toEqual([]);
    expect(answer.finish).not.toBe("stop");
  });

  test.each(wires)("a cancelled answer, to a %s client", async (client) => {
    const { url } = await before("responses", (_request, response) => {
      const call = {
        type: "function_call",
        id: "f",
        call_id: "c1",
        name: "weather",
        arguments: '{"city":"Bonn"}',
        status: "completed",
      };
      const whole = { id: "r", object: "response", status: "cancelled", output: [call], usage: null };
      stream(response, [
        { type: "response.created", response: { ...whole, status: "in_progress", output: [] } },
        { type: "response.output_item.done", output_index: 0, item: call },
        { type: "response.cancelled", response: whole },
      ]);
    });
    const { answer } = await ask(url, client);
    expect(callsIn(answer.items).filter((item) => (item as { complete?: boolean }).complete === true)).toEqual([]);
    expect(answer.outcome).not.toBe("ok");
  });
});
