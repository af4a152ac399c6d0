import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import { isObject } from "../../../src/base/json.ts";
import type { Answer } from "../../../src/spec/model.ts";
import { answerToEvents, collect } from "../../../src/wire/answer.ts";
import { chat } from "../../../src/wire/chat/index.ts";
import { encodeSse } from "../../../src/wire/sse.ts";
import { decodeStream } from "../../../src/wire/stream.ts";
import { serve, type TestServer } from "../server.ts";

const answer: Answer = {
  id: "chatcmpl-7",
  model: "m",
  items: [
    { type: "reasoning", text: "hm" },
    { type: "message", role: "assistant", content: [text("Hé 😀")] },
    { type: "call", kind: "function", id: "call_a", name: "get_weather", arguments: '{"city":"Oslo"}', complete: true },
    { type: "call", kind: "function", id: "call_b", name: "search", arguments: '{"q":"x y"}', complete: true },
  ],
  outcome: "ok",
  finish: "tool_calls",
  usage: { input: 11, output: 7, cached: 5, reasoning: 2 },
};

function respond(body: unknown): { type: string; body: string } {
  if (isObject(body) && body["stream"] === true) {
    const encoder = chat.createEncoder();
    return {
      type: "text/event-stream",
      body: encodeSse(answerToEvents(answer).flatMap((event) => [...encoder.push(event)])),
    };
  }
  return { type: "application/json", body: JSON.stringify(chat.encodeAnswer(answer)) };
}

let server: TestServer;
beforeEach(async () => {
  server = await serve(respond);
});
afterEach(() => server.close());

const parameters = { type: "object" as const, properties: { city: { type: "string" as const } }, required: ["city"] };

describe("the openai package", () => {
  test("reads our stream with its helper", async () => {
    const client = new OpenAI({ apiKey: "none", baseURL: server.url });
    const stream = client.chat.completions.stream({ model: "m", messages: [{ role: "user", content: "hi" }] });
    const completion = await stream.finalChatCompletion();
    const [choice] = completion.choices;
    expect(choice).toMatchObject({ finish_reason: "tool_calls", message: { content: "Hé 😀" } });
    expect(choice!.message.tool_calls).toMatchObject([
      { id: "call_a", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
      { id: "call_b", type: "function", function: { name: "search", arguments: '{"q":"x y"}' } },
    ]);
    expect(completion.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 });
  });

  test("reads our whole body", async () => {
    const client = new OpenAI({ apiKey: "none", baseURL: server.url });
    const completion = await client.chat.completions.create({
      model: "m",
      messages: [{ role: "user", content: "hi" }],
    });
    expect(completion.choices[0]!.message.tool_calls).toHaveLength(2);
    expect(chat.decodeAnswer(completion)).toEqual(answer);
  });

  test("sends requests we read, and write again the same", async () => {
    const client = new OpenAI({ apiKey: "none", baseURL: server.url });
    const asked = {
      model: "m",
      messages: [
        { role: "system", content: "be brief" },
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
          ],
        },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "call_a", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
          ],
        },
        { role: "tool", tool_call_id: "call_a", content: "sunny" },
      ],
      tools: [{ type: "function", function: { name: "get_weather", description: "the weather", parameters } }],
      tool_choice: "auto",
      parallel_tool_calls: false,
      seed: 7,
    } satisfies OpenAI.ChatCompletionCreateParamsNonStreaming;
    await client.chat.completions.create(asked);
    const neutral = chat.decodeRequest(server.requests[0]!.body);
    expect(chat.encodeRequest(neutral).body).toEqual(asked);
  });
});

describe("the AI SDK", () => {
  test("reads our stream, and its request is one we read", async () => {
    const provider = createOpenAICompatible({ name: "callgate", baseURL: server.url, includeUsage: true });
    const result = streamText({
      model: provider("m"),
      prompt: "hi",
      tools: {
        get_weather: tool({ description: "the weather", inputSchema: jsonSchema<{ city: string }>(parameters) }),
        search: tool({
          description: "search",
          inputSchema: jsonSchema<{ q: string }>({ type: "object", properties: { q: { type: "string" } } }),
        }),
      },
    });
    expect(await result.text).toBe("Hé 😀");
    expect(await result.reasoningText).toBe("hm");
    expect(await result.finishReason).toBe("tool-calls");
    expect((await result.toolCalls).map(({ toolCallId, toolName, input }) => [toolCallId, toolName, input])).toEqual([
      ["call_a", "get_weather", { city: "Oslo" }],
      ["call_b", "search", { q: "x y" }],
    ]);
    expect((await result.usage).inputTokens).toBe(11);
    const neutral = chat.decodeRequest(server.requests[0]!.body);
    expect(neutral).toMatchObject({ model: "m", stream: true, tools: [{ name: "get_weather" }, { name: "search" }] });
  });
});

test("our decoder reads what a server built on the openai types writes, over a real connection", async () => {
  const head = { id: "chatcmpl-7", object: "chat.completion.chunk", created: 1, model: "m" } as const;
  const chunk = (
    delta: OpenAI.ChatCompletionChunk.Choice.Delta,
    finish_reason: "tool_calls" | null = null,
  ): OpenAI.ChatCompletionChunk => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason, logprobs: null }],
  });
  const chunks: OpenAI.ChatCompletionChunk[] = [
    chunk({ role: "assistant", content: "", refusal: null }),
    chunk({ content: "Hé 😀" }),
    chunk({
      tool_calls: [{ index: 0, id: "call_a", type: "function", function: { name: "get_weather", arguments: "" } }],
    }),
    ...'{"city":"Oslo"}'
      .split("")
      .map((letter) => chunk({ tool_calls: [{ index: 0, function: { arguments: letter } }] })),
    chunk({}, "tool_calls"),
    { ...head, choices: [], usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } },
  ];
  const body = `${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("")}data: [DONE]\n\n`;
  const typed = await serve(() => ({ type: "text/event-stream", body }));
  const response = await fetch(`${typed.url}${chat.path("m", true)}`, { method: "POST", body: "{}" });
  const read = await collect(decodeStream(chat, response.body!));
  await typed.close();
  expect(read).toEqual({
    id: "chatcmpl-7",
    model: "m",
    items: [answer.items[1], answer.items[2]],
    outcome: "ok",
    finish: "tool_calls",
    usage: { input: 11, output: 7 },
  });
});
