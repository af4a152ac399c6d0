import { createOpenAI } from "@ai-sdk/openai";
import { jsonSchema, streamText, tool } from "ai";
import { afterEach, beforeEach, expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import type { Answer } from "../../../src/spec/model.ts";
import { answerToEvents } from "../../../src/wire/answer.ts";
import { responses } from "../../../src/wire/responses/index.ts";
import { encodeSse } from "../../../src/wire/sse.ts";
import { serve, type TestServer } from "../server.ts";

const answer: Answer = {
  items: [
    { type: "reasoning", summary: ["hm"], opaque: { wire: "messages", kind: "signature", value: "S" } },
    { type: "message", role: "assistant", content: [text("Hé 😀")] },
    { type: "call", kind: "function", id: "call_a", name: "get_weather", arguments: '{"city":"Oslo"}', complete: true },
    { type: "call", kind: "function", id: "call_b", name: "get_weather", arguments: '{"city":"Rome"}', complete: true },
  ],
  outcome: "ok",
  finish: "tool_calls",
  usage: { input: 11, output: 7, cached: 5, reasoning: 2 },
};

let server: TestServer;
beforeEach(async () => {
  server = await serve(() => {
    const encoder = responses.createEncoder({ model: "m" });
    return {
      type: "text/event-stream",
      body: encodeSse(answerToEvents(answer).flatMap((event) => [...encoder.push(event)])),
    };
  });
});
afterEach(() => server.close());

test("the AI SDK reads our stream, and sends back what it was given", async () => {
  const provider = createOpenAI({ baseURL: server.url, apiKey: "none" });
  const weather = tool({
    description: "the weather",
    inputSchema: jsonSchema<{ city: string }>({
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
    }),
    execute: ({ city }) => `sunny in ${city}`,
  });
  const result = streamText({
    model: provider.responses("m"),
    prompt: "hi",
    tools: { get_weather: weather },
    stopWhen: ({ steps }) => steps.length === 2,
    providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } },
  });
  const steps = await result.steps;
  expect(steps).toHaveLength(2);
  expect(steps[0]!.text).toBe("Hé 😀");
  expect(steps[0]!.reasoningText).toBe("hm");
  expect(steps[0]!.finishReason).toBe("tool-calls");
  expect(steps[0]!.toolResults.map(({ toolCallId, output }) => [toolCallId, output])).toEqual([
    ["call_a", "sunny in Oslo"],
    ["call_b", "sunny in Rome"],
  ]);
  expect(steps[0]!.usage).toMatchObject({ inputTokens: 11, outputTokens: 7 });
  const second = responses.decodeRequest(server.requests[1]!.body);
  expect(second.input.filter((item) => item.type === "call" || item.type === "result")).toMatchObject([
    { id: "call_a", name: "get_weather" },
    { id: "call_b" },
    { callId: "call_a", content: [text("sunny in Oslo")] },
    { callId: "call_b" },
  ]);
});
