import Anthropic from "@anthropic-ai/sdk";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import { isObject } from "../../../src/base/json.ts";
import type { Answer } from "../../../src/spec/model.ts";
import { answerToEvents, collect } from "../../../src/wire/answer.ts";
import { messages } from "../../../src/wire/messages/index.ts";
import { encodeSse } from "../../../src/wire/sse.ts";
import { decodeStream } from "../../../src/wire/stream.ts";
import { serve, type TestServer } from "../server.ts";

const citation = {
  type: "char_location",
  cited_text: "c",
  document_index: 0,
  document_title: null,
  end_char_index: 1,
  file_id: null,
  start_char_index: 0,
} as const;

const answer: Answer = {
  id: "msg_7",
  model: "m",
  items: [
    { type: "reasoning", text: "hm", opaque: { wire: "messages", kind: "signature", value: "S1" } },
    { type: "reasoning", opaque: { wire: "messages", kind: "redacted_thinking", value: "R" } },
    {
      type: "message",
      role: "assistant",
      content: [text("Hé 😀")],
      extra: { wire: "messages", fields: { citations: [citation] } },
    },
    {
      type: "server_call",
      name: "web_search",
      id: "srvtoolu_1",
      wire: "messages",
      raw: { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
    },
    {
      type: "other",
      wire: "messages",
      raw: { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
    },
    {
      type: "call",
      kind: "function",
      id: "toolu_a",
      name: "get_weather",
      arguments: '{"city":"Oslo"}',
      complete: true,
    },
    { type: "call", kind: "function", id: "toolu_b", name: "search", arguments: "{}", complete: true },
  ],
  outcome: "ok",
  finish: "tool_calls",
  usage: { input: 14, output: 7, cached: 5, cacheWritten: 3, reasoning: 2 },
};

function stream(value: Answer): string {
  const encoder = messages.createEncoder();
  return encodeSse(answerToEvents(value).flatMap((event) => [...encoder.push(event)]));
}

let current = answer;
let server: TestServer;
beforeEach(async () => {
  current = answer;
  server = await serve((body) =>
    isObject(body) && body["stream"] === true
      ? { type: "text/event-stream", body: stream(current) }
      : { type: "application/json", body: JSON.stringify(messages.encodeAnswer(current)) },
  );
});
afterEach(() => server.close());

// The SDK adds its own /v1.
const client = () => new Anthropic({ apiKey: "none", baseURL: server.url.replace(/\/v1$/, ""), maxRetries: 0 });
const ask = { model: "m", max_tokens: 100, messages: [{ role: "user" as const, content: "hi" }] };

describe("the @anthropic-ai/sdk package", () => {
  test("reads our stream with its helper, every block of it", async () => {
    const final = await client().messages.stream(ask).finalMessage();
    expect(final.content.map((block) => block.type)).toEqual([
      "thinking",
      "redacted_thinking",
      "text",
      "server_tool_use",
      "web_search_tool_result",
      "tool_use",
      "tool_use",
    ]);
    expect(final.content.at(-2)).toMatchObject({ id: "toolu_a", input: { city: "Oslo" } });
    expect(final.stop_reason).toBe("tool_use");
    expect(messages.decodeAnswer(JSON.parse(JSON.stringify(final)))).toEqual(answer);
  });

  test("sees text, thinking, signature and citations arrive", async () => {
    const seen: string[] = [];
    const runner = client().messages.stream(ask);
    runner.on("text", (delta) => seen.push(`text ${delta}`));
    runner.on("thinking", (delta) => seen.push(`thinking ${delta}`));
    runner.on("signature", (value) => seen.push(`signature ${value}`));
    runner.on("citation", (value) => seen.push(`citation ${value.type}`));
    await runner.done();
    expect(seen).toEqual(["thinking hm", "signature S1", "text Hé 😀", "citation char_location"]);
  });

  test("reads our whole body", async () => {
    const message = await client().messages.create(ask);
    expect(messages.decodeAnswer(JSON.parse(JSON.stringify(message)))).toEqual(answer);
  });

  test("never gets a cut input as a call that stopped", async () => {
    current = {
      items: [
        { type: "call", kind: "function", id: "toolu_a", name: "get_weather", arguments: '{"ci', complete: false },
      ],
      outcome: "incomplete",
      finish: "length",
    };
    const final = await client().messages.stream(ask).finalMessage();
    expect(final.stop_reason).toBe("max_tokens");
    expect(stream(current)).not.toContain("content_block_stop");
  });

  test("gets input that is no object inside one, so that nothing runs with {}", async () => {
    current = {
      items: [
        {
          type: "call",
          kind: "function",
          id: "toolu_a",
          name: "get_weather",
          arguments: "city: Oslo",
          complete: false,
        },
      ],
      outcome: "ok",
      finish: "tool_calls",
    };
    const final = await client().messages.stream(ask).finalMessage();
    const [block] = final.content;
    expect(Object.values((block as { input: object }).input)).toEqual(["city: Oslo"]);
  });

  test("is told of a failure in the middle", async () => {
    current = {
      items: [{ type: "message", role: "assistant", content: [text("par")] }],
      outcome: "error",
      error: { message: "Overloaded", code: "overloaded_error" },
    };
    await expect(client().messages.stream(ask).finalMessage()).rejects.toMatchObject({
      error: { error: { type: "overloaded_error", message: "Overloaded" } },
    });
  });

  test("sends requests we read, and write again the same", async () => {
    const asked: Anthropic.MessageCreateParamsNonStreaming = {
      model: "m",
      max_tokens: 100,
      system: "be brief",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
            {
              type: "document",
              title: "a.pdf",
              source: { type: "base64", media_type: "application/pdf", data: "AAAA" },
            },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "S1" },
            { type: "text", text: "Let me see." },
            { type: "tool_use", id: "toolu_a", name: "get_weather", input: { city: "Oslo" } },
            { type: "tool_use", id: "toolu_b", name: "search", input: {} },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: "toolu_a",
              content: [
                { type: "text", text: "sunny" },
                { type: "image", source: { type: "url", url: "https://a/b.png" } },
              ],
            },
            { type: "tool_result", tool_use_id: "toolu_b", content: "no", is_error: true },
            { type: "text", text: "and?" },
          ],
        },
      ],
      tools: [
        {
          name: "get_weather",
          description: "the weather",
          input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        },
        { name: "search", description: "search", input_schema: { type: "object", properties: {} } },
        { type: "web_search_20250305", name: "web_search", max_uses: 3 },
      ],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      thinking: { type: "enabled", budget_tokens: 2000 },
      output_config: { effort: "high", format: { type: "json_schema", schema: { type: "object" } } },
      stop_sequences: ["END"],
      service_tier: "auto",
    };
    await client().messages.create(asked);
    const { body, dropped } = messages.encodeRequest(messages.decodeRequest(server.requests[0]!.body));
    expect(dropped).toEqual([]);
    expect(body).toEqual(asked);
  });

  test("'s tool runner goes on without a thread when it is told so", () => {
    const threaded = { ...ask, thread: { type: "create" } };
    expect(() => messages.decodeRequest(threaded)).toThrow(
      expect.objectContaining({
        name: "RequestError",
        status: 400,
        body: {
          type: "error",
          error: expect.objectContaining({
            details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
          }),
        },
      }),
    );
  });
});

test("our decoder reads what a server built on the SDK's types writes, over a real connection", async () => {
  const head = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [] };
  const events: (Anthropic.RawMessageStreamEvent | { type: "ping" } | { type: "message_start" })[] = [
    { type: "message_start", message: { ...head, usage: { input_tokens: 1, output_tokens: 1 } } } as never, // the SDK's type lists every beta field
    { type: "ping" },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "", citations: null } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } },
    { type: "content_block_stop", index: 0 },
    {
      type: "content_block_start",
      index: 1,
      content_block: { type: "tool_use", id: "toolu_a", name: "get_weather", input: {}, caller: { type: "direct" } },
    },
    { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: "{}" } },
    { type: "content_block_stop", index: 1 },
    { type: "message_stop" },
  ];
  const typed = await serve(() => ({
    type: "text/event-stream",
    body: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""),
  }));
  const response = await fetch(`${typed.url}${messages.path("m", true)}`, { method: "POST", body: "{}" });
  const read = await collect(decodeStream(messages, response.body!));
  await typed.close();
  expect(read).toMatchObject({
    outcome: "ok",
    finish: "tool_calls",
    items: [
      { type: "message", role: "assistant", content: [text("Hi")] },
      { type: "call", kind: "function", id: "toolu_a", name: "get_weather", arguments: "{}", complete: true },
    ],
  });
});
