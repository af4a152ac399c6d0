import OpenAI from "openai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import { isObject } from "../../../src/base/json.ts";
import type { Answer } from "../../../src/spec/model.ts";
import { answerToEvents, collect } from "../../../src/wire/answer.ts";
import { responses } from "../../../src/wire/responses/index.ts";
import { encodeSse } from "../../../src/wire/sse.ts";
import { decodeStream } from "../../../src/wire/stream.ts";
import { serve, type TestServer } from "../server.ts";

const answer: Answer = {
  id: "resp_7",
  model: "m",
  items: [
    {
      type: "reasoning",
      id: "rs_1",
      summary: ["hm", "so"],
      text: "raw",
      opaque: { wire: "responses", kind: "encrypted_content", value: "ENC" },
    },
    { type: "message", id: "msg_1", role: "assistant", content: [text("Hé 😀")], phase: "commentary" },
    {
      type: "call",
      kind: "function",
      id: "call_a",
      itemId: "fc_1",
      name: "get_weather",
      namespace: "mcp__w",
      arguments: '{"city":"Oslo"}',
      complete: true,
    },
    {
      type: "call",
      kind: "custom",
      id: "call_b",
      itemId: "ctc_1",
      name: "apply_patch",
      arguments: "*** Begin Patch",
      complete: true,
    },
    {
      type: "call",
      kind: "local_shell",
      id: "call_c",
      itemId: "lsh_1",
      name: "local_shell",
      arguments: '{"command":["ls"],"env":{}}',
      complete: true,
    },
    {
      type: "call",
      kind: "shell",
      id: "call_d",
      itemId: "sh_1",
      name: "shell",
      arguments: '{"commands":["ls"]}',
      complete: true,
    },
    {
      type: "call",
      kind: "apply_patch",
      id: "call_e",
      itemId: "apc_1",
      name: "apply_patch",
      arguments: '{"type":"delete_file","path":"a"}',
      complete: true,
    },
    {
      type: "call",
      kind: "tool_search",
      id: "call_f",
      itemId: "tsc_1",
      name: "tool_search",
      arguments: '{"query":"x"}',
      complete: true,
    },
    {
      type: "server_call",
      name: "web_search",
      id: "ws_1",
      wire: "responses",
      raw: { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "x" } },
    },
    { type: "compaction", id: "cmp_1", opaque: { wire: "responses", kind: "encrypted_content", value: "C" } },
  ],
  outcome: "ok",
  finish: "tool_calls",
  usage: { input: 11, output: 7, cached: 5, reasoning: 2 },
};

function stream(value: Answer): string {
  const encoder = responses.createEncoder({ createdAt: 1_700_000_000 });
  return encodeSse(answerToEvents(value).flatMap((event) => [...encoder.push(event)]));
}

let current = answer;
let server: TestServer;
beforeEach(async () => {
  current = answer;
  server = await serve((body) =>
    isObject(body) && body["stream"] === true
      ? { type: "text/event-stream", body: stream(current) }
      : { type: "application/json", body: JSON.stringify(responses.encodeAnswer(current)) },
  );
});
afterEach(() => server.close());

const client = () => new OpenAI({ apiKey: "none", baseURL: server.url, maxRetries: 0 });

describe("the openai package", () => {
  test("reads our stream with its helper, every item of it", async () => {
    const final = await client().responses.stream({ model: "m", input: "hi" }).finalResponse();
    expect(final.output_text).toBe("Hé 😀");
    expect(final.output.map((item) => item.type)).toEqual([
      "reasoning",
      "message",
      "function_call",
      "custom_tool_call",
      "local_shell_call",
      "shell_call",
      "apply_patch_call",
      "tool_search_call",
      "web_search_call",
      "compaction",
    ]);
    expect(final.usage).toMatchObject({ input_tokens: 11, output_tokens: 7, total_tokens: 18 });
    expect(responses.decodeAnswer(JSON.parse(JSON.stringify(final)))).toEqual(answer);
  });

  test("sees text and reasoning grow, and each event in its place", async () => {
    const seen: string[] = [];
    const runner = client().responses.stream({ model: "m", input: "hi" });
    for await (const event of runner) seen.push(event.type);
    expect(seen.slice(0, 4)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.reasoning_summary_part.added",
    ]);
    expect(seen).toContain("response.reasoning_text.delta");
    expect(seen).toContain("response.output_text.delta");
    expect(seen).toContain("response.function_call_arguments.done");
    expect(seen.at(-1)).toBe("response.completed");
  });

  test("reads our whole body", async () => {
    const response = await client().responses.create({ model: "m", input: "hi" });
    expect(responses.decodeAnswer(JSON.parse(JSON.stringify(response)))).toEqual(answer);
  });

  test("is told of an answer that was cut short, and takes no call from it", async () => {
    current = {
      ...answer,
      items: [{ ...answer.items[2]!, arguments: '{"ci', complete: false } as Answer["items"][number]],
      outcome: "incomplete",
      finish: "length",
    };
    const final = await client().responses.stream({ model: "m", input: "hi" }).finalResponse();
    expect(final.status).toBe("incomplete");
    expect(final.incomplete_details).toEqual({ reason: "max_output_tokens" });
    expect(final.output).toEqual([]);
    expect(stream(current)).not.toContain("function_call");
  });

  test("is told of a failure", async () => {
    current = {
      id: "resp_7",
      items: [{ type: "message", role: "assistant", content: [text("par")] }],
      outcome: "error",
      error: { message: "boom", code: "server_error" },
    };
    const events: { type: string }[] = [];
    for await (const event of await client().responses.create({ model: "m", input: "hi", stream: true }))
      events.push(event);
    expect(events.at(-1)).toMatchObject({
      type: "response.failed",
      response: { status: "failed", error: { code: "server_error", message: "boom" } },
    });
  });

  test("sends requests we read, and write again the same", async () => {
    const asked = {
      model: "m",
      instructions: "be brief",
      input: [
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "look" },
            { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "high" },
            { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" },
          ],
        },
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "ENC" },
        {
          type: "function_call",
          id: "fc_1",
          call_id: "call_a",
          name: "get_weather",
          namespace: "mcp__w",
          arguments: "{}",
        },
        { type: "custom_tool_call", call_id: "call_b", name: "apply_patch", input: "x" },
        {
          type: "function_call_output",
          call_id: "call_a",
          output: [
            { type: "input_text", text: "sunny" },
            { type: "input_image", image_url: "https://a/b.png", detail: "auto" },
          ],
        },
        { type: "custom_tool_call_output", call_id: "call_b", output: "done" },
        {
          type: "local_shell_call",
          id: "lsh_1",
          call_id: "call_c",
          action: { type: "exec", command: ["ls"], env: {} },
          status: "completed",
        },
        { type: "local_shell_call_output", id: "call_c", output: "a" },
        { type: "message", role: "developer", content: [{ type: "input_text", text: "later" }] },
        { type: "item_reference", id: "msg_9" },
      ],
      tools: [
        {
          type: "custom",
          name: "apply_patch",
          description: "patch",
          format: { type: "grammar", syntax: "lark", definition: "start: /a/" },
        },
        {
          type: "function",
          name: "get_weather",
          description: "the weather",
          parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
          strict: false,
        },
        { type: "web_search" },
      ],
      tool_choice: "auto",
      parallel_tool_calls: true,
      prompt_cache_key: "k",
      reasoning: { effort: "high", summary: "auto" },
      text: {
        verbosity: "low",
        format: { type: "json_schema", name: "out", schema: { type: "object" }, strict: true },
      },
      store: false,
      include: ["reasoning.encrypted_content"],
      metadata: { a: "b" },
    } as const;
    // The SDK's types ask for fields that its server does not (an id on every item).
    await client().responses.create(asked as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming);
    const { body, dropped } = responses.encodeRequest(responses.decodeRequest(server.requests[0]!.body));
    expect(dropped).toEqual([]);
    expect({ ...body, tools: undefined }).toEqual({ ...asked, tools: undefined });
    expect(new Set(body["tools"] as object[])).toEqual(new Set(asked.tools));
  });
});

test("our decoder reads what a server built on the openai types writes, over a real connection", async () => {
  const message: OpenAI.Responses.ResponseOutputMessage = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "Hi", annotations: [], logprobs: [] }],
  };
  const call: OpenAI.Responses.ResponseFunctionToolCall = {
    id: "fc_1",
    type: "function_call",
    call_id: "call_a",
    name: "get_weather",
    arguments: "{}",
    status: "completed",
  };
  const base = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const events: OpenAI.Responses.ResponseStreamEvent[] = [
    {
      type: "response.output_item.added",
      sequence_number: 0,
      output_index: 0,
      item: { ...message, content: [], status: "in_progress" },
    },
    {
      type: "response.content_part.added",
      sequence_number: 1,
      ...base,
      part: { type: "output_text", text: "", annotations: [] },
    },
    { type: "response.output_text.delta", sequence_number: 2, ...base, delta: "Hi", logprobs: [] },
    { type: "response.output_text.done", sequence_number: 3, ...base, text: "Hi", logprobs: [] },
    { type: "response.output_item.done", sequence_number: 4, output_index: 0, item: message },
    { type: "response.output_item.added", sequence_number: 5, output_index: 1, item: { ...call, arguments: "" } },
    {
      type: "response.function_call_arguments.delta",
      sequence_number: 6,
      item_id: "fc_1",
      output_index: 1,
      delta: "{}",
    },
    { type: "response.output_item.done", sequence_number: 7, output_index: 1, item: call },
  ];
  const end = {
    type: "response.completed",
    sequence_number: 8,
    response: { id: "resp_1", model: "m", status: "completed", output: [message, call] },
  };
  const body = [...events, end].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  const typed = await serve(() => ({ type: "text/event-stream", body }));
  const response = await fetch(`${typed.url}${responses.path("m", true)}`, { method: "POST", body: "{}" });
  const read = await collect(decodeStream(responses, response.body!));
  await typed.close();
  expect(read.items).toEqual([
    { type: "message", id: "msg_1", role: "assistant", content: [text("Hi")] },
    {
      type: "call",
      kind: "function",
      id: "call_a",
      itemId: "fc_1",
      name: "get_weather",
      arguments: "{}",
      complete: true,
    },
  ]);
});
