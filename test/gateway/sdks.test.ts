/** The providers' own clients against the gateway: what they are written for, answered by a model of another kind. */
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { GoogleGenAI } from "@google/genai";
import { stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ScriptedStep } from "../../src/testing/index.ts";
import { gateway, rawUpstream, scripted } from "./gateways.ts";

/** First a call, then words about its result. */
const script: readonly ScriptedStep[] = [
  { reasoning: "I should look.", calls: [{ name: "weather", input: { city: "Köln" }, id: "call_1" }] },
  (request) => ({ text: `It says: ${JSON.stringify(request.input.at(-1))}` }),
];
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

describe.each(["chat", "messages", "responses", "gemini", "text:hermes"])("on a model that speaks %s", (wire) => {
  async function started() {
    const model = await scripted(script, wire.startsWith("text:") ? wire.slice(5) : undefined);
    const baseUrl = wire === "gemini" ? model.baseUrl.replace("/v1", "/v1beta") : model.baseUrl;
    return { model, url: await gateway({ routes: [{ match: "*", targets: [{ baseUrl, wire, model: "real" }] }] }) };
  }

  test("openai's Chat streams a call and takes its result back", async () => {
    const { url } = await started();
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
    const tools = [{ type: "function" as const, function: { name: "weather", parameters: schema } }];
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "weather?" }];
    const first = await client.chat.completions.stream({ model: "any", messages, tools }).finalChatCompletion();
    const made = first.choices[0]?.message.tool_calls?.[0];
    expect(made).toMatchObject({ function: { name: "weather", arguments: '{"city":"Köln"}' } });
    const next: OpenAI.ChatCompletionMessageParam[] = [
      ...messages,
      first.choices[0]!.message,
      { role: "tool", tool_call_id: made?.id ?? "", content: "rain" },
    ];
    const second = await client.chat.completions.create({ model: "any", messages: next, tools });
    expect(second.choices[0]?.message.content).toContain("rain");
  });

  test("openai's Responses goes on by previous_response_id", async () => {
    const { url } = await started();
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
    const tools = [{ type: "function" as const, name: "weather", parameters: schema, strict: false }];
    const first = await client.responses.create({ model: "any", input: "weather?", tools });
    const made = first.output.find((item) => item.type === "function_call");
    expect(made).toMatchObject({ name: "weather", arguments: '{"city":"Köln"}' });
    const second = await client.responses
      .stream({
        model: "any",
        previous_response_id: first.id,
        input: [{ type: "function_call_output", call_id: made?.call_id ?? "", output: "rain" }],
        tools,
      })
      .finalResponse();
    expect(second.output_text).toContain("rain");
    expect((await client.responses.retrieve(second.id)).id).toBe(second.id);
  });

  test("a response repeats what was asked for, streamed, whole and when it is looked up", async () => {
    const { url } = await started();
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
    const asked = {
      model: wire === "responses" ? "real" : "any",
      input: "weather?",
      instructions: "Be brief.",
      tools: [{ type: "function" as const, name: "weather", parameters: schema, strict: false }],
      tool_choice: { type: "function" as const, name: "weather" },
      temperature: 0.25,
      top_p: 0.5,
      parallel_tool_calls: false,
      max_output_tokens: 1234,
      metadata: { ticket: "7" },
      reasoning: { effort: "low" as const },
      text: { verbosity: "low" as const },
      truncation: "auto" as const,
      user: "somebody",
    };
    const { model: _model, input: _input, ...settings } = asked;
    const repeated = {
      ...settings,
      text: { format: { type: "text" }, verbosity: "low" },
      reasoning: { effort: "low", summary: null },
      store: true,
      previous_response_id: null,
    };
    const first = await client.responses.create(asked);
    // On the same wire the answer is the model's own; what we keep of it says what was asked for.
    if (wire !== "responses") expect(first).toMatchObject(repeated);
    const kept = await client.responses.retrieve(first.id);
    expect(kept).toMatchObject(repeated);
    expect(kept.created_at).toBeGreaterThan(1_700_000_000);
    const told: unknown[] = [];
    const { input: _same, ...again } = { ...asked, model: "other", tool_choice: "auto" as const };
    const made = first.output.find((item) => item.type === "function_call");
    const stream = client.responses.stream({
      ...again,
      previous_response_id: first.id,
      input: [{ type: "function_call_output", call_id: made?.call_id ?? "", output: "rain" }],
    });
    for await (const event of stream) if ("response" in event) told.push(event.response);
    expect(told).toHaveLength(3);
    for (const one of told)
      expect(one).toMatchObject({ ...repeated, tool_choice: "auto", previous_response_id: first.id });
  });

  test("Anthropic's Messages streams thoughts and a call, and takes both back", async () => {
    const { url } = await started();
    const client = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
    const tools = [{ name: "weather", input_schema: { ...schema, type: "object" as const } }];
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: "weather?" }];
    const first = await client.messages.stream({ model: "any", max_tokens: 100, messages, tools }).finalMessage();
    const made = first.content.find((block) => block.type === "tool_use");
    expect(made).toMatchObject({ name: "weather", input: { city: "Köln" } });
    const next: Anthropic.MessageParam[] = [
      ...messages,
      { role: "assistant", content: first.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: made?.id ?? "", content: "rain" }] },
    ];
    const second = await client.messages.create({ model: "any", max_tokens: 100, messages: next, tools });
    expect(JSON.stringify(second.content)).toContain("rain");
    expect((await client.messages.countTokens({ model: "any", messages })).input_tokens).toBeGreaterThan(0);
  });

  test("@google/genai gets a call and takes its result back", async () => {
    const { url } = await started();
    const client = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: url } });
    const config = { tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: schema }] }] };
    const asked = { role: "user", parts: [{ text: "weather?" }] };
    const first = await client.models.generateContent({ model: "any", contents: [asked], config });
    const made = first.functionCalls?.[0];
    expect(made).toMatchObject({ name: "weather", args: { city: "Köln" } });
    const contents = [
      asked,
      first.candidates![0]!.content!,
      {
        role: "user",
        parts: [{ functionResponse: { id: made?.id ?? "", name: "weather", response: { output: "rain" } } }],
      },
    ];
    let said = "";
    for await (const chunk of await client.models.generateContentStream({ model: "any", contents, config }))
      said += chunk.text ?? "";
    expect(said).toContain("rain");
  });

  test("the AI SDK runs its own tool in the middle of a stream", async () => {
    const { url } = await started();
    const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
    const result = streamText({
      model: provider("any"),
      prompt: "weather?",
      stopWhen: stepCountIs(3),
      maxRetries: 0,
      tools: { weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async () => "rain" }) },
    });
    expect(await result.text).toContain("rain");
  });
});

describe("while it streams", () => {
  const say = (text: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`;

  test("a client that leaves takes its request from the model", async () => {
    let left = false;
    const upstream = await rawUpstream((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(say("on and"));
      response.on("close", () => (left = true));
    });
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "chat", model: "x" }] }],
    });
    const stop = new AbortController();
    const response = await fetch(`${url}/v1/messages`, {
      method: "POST",
      signal: stop.signal,
      body: JSON.stringify({ model: "m", max_tokens: 9, stream: true, messages: [{ role: "user", content: "hi" }] }),
    });
    await response.body!.getReader().read();
    stop.abort();
    await expect.poll(() => left).toBe(true);
  });

  test.each([
    ["/v1/messages", "event: ping"],
    ["/v1/chat/completions", ": keep-alive"],
    ["/v1/responses", "event: keepalive"],
  ])("%s is kept alive while the model thinks", async (path, beat) => {
    const upstream = await rawUpstream((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(say("Let me think"));
      setTimeout(
        () => response.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'),
        300,
      );
    });
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: upstream.baseUrl, wire: "chat", model: "x" }] }],
      keepAliveMs: 40,
    });
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      body: JSON.stringify({
        model: "m",
        max_tokens: 9,
        stream: true,
        input: "hi",
        messages: [{ role: "user", content: "hi" }],
      }),
    });
    expect(await response.text()).toContain(beat);
  });
});
