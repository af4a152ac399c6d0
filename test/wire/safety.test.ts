/** What must hold between any upstream and any client: no call of a broken answer, no lost or leaked state. */
import { createHmac } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { text } from "../../src/base/content.ts";
import type { Answer, CallItem, Item, ModelError, ModelEvent, ModelRequest } from "../../src/spec/model.ts";
import { answerToEvents, codecs, collect, encodeSse, type Codec, type WireName } from "../../src/wire/index.ts";
import { createSseReader, decodeSse } from "../../src/wire/sse.ts";

const wires = ["chat", "responses", "messages", "gemini"] as const;
const pairs = wires.flatMap((from) => wires.map((to) => [from, to] as const));

const call: CallItem = {
  type: "call",
  kind: "function",
  id: "call_a",
  name: "read_file",
  arguments: '{"path":"a"}',
  complete: true,
};
const said: Item = { type: "message", role: "assistant", content: [text("Reading.")] };
const thought: Item = { type: "reasoning", text: "hm" };

function streamOf(codec: Codec, answer: Answer): string {
  const encoder = codec.createEncoder({ id: "id-1", model: "m" });
  return encodeSse(answerToEvents(answer).flatMap((event) => [...encoder.push(event)]));
}

/** What a client of `to` is sent for the bytes that a server of `from` sent. */
function translate(from: Codec, to: Codec, body: Uint8Array) {
  const reader = createSseReader();
  const decoder = from.createDecoder();
  const encoder = to.createEncoder();
  const events = [
    ...reader.push(body).flatMap((frame) => decoder.push(frame)),
    ...reader.end().flatMap((frame) => decoder.push(frame)),
    ...decoder.end(),
  ];
  const last = events.at(-1);
  const outcome = last?.type === "answer.ended" ? last.answer.outcome : undefined;
  return { frames: events.flatMap((event) => encoder.push(event)), outcome };
}

describe("an upstream that is cut at any byte of its answer", () => {
  const answer: Answer = {
    id: "id-1",
    model: "m",
    items: [thought, said, call, { ...call, id: "call_b", arguments: '{"path":"b"}' }],
    outcome: "ok",
    finish: "tool_calls",
    usage: { input: 5, output: 5 },
  };

  test.each(pairs)(
    "from %s to %s: no call reaches the client, and it is told of the end",
    (from, to) => {
      const body = new TextEncoder().encode(streamOf(codecs[from], answer));
      const whole = translate(codecs[from], codecs[to], body).frames;
      expect(JSON.stringify(whole)).toContain("read_file");
      for (let end = 0; end < body.length; end++) {
        const { frames, outcome } = translate(codecs[from], codecs[to], body.subarray(0, end));
        // Some wires have said everything before their last byte.
        if (outcome === "ok") continue;
        expect(JSON.stringify(frames)).not.toContain("read_file");
        expect(frames.at(-1)!.data, `cut at ${end}`).toContain("error");
      }
    },
    60_000,
  );

  test.each(wires)("a whole body of %s has no call where the answer broke off", (wire) => {
    for (const outcome of ["truncated", "error", "incomplete"] as const) {
      const body = codecs[wire].encodeAnswer({ ...answer, outcome, finish: "length" });
      expect(JSON.stringify(body)).not.toContain("read_file");
    }
  });

  test.each(wires)("%s hands on no call that is marked as not to be run", (wire) => {
    const stopped: Answer = { ...answer, items: [said, { ...call, complete: false }] };
    expect(JSON.stringify(codecs[wire].encodeAnswer(stopped))).not.toContain('"path');
    expect(streamOf(codecs[wire], stopped)).not.toContain('"path');
  });
});

describe("arguments that hold two values", () => {
  const doubled = '{"a":1}{"a":1}';
  const broken: Answer = {
    items: [{ ...call, arguments: doubled, complete: false }],
    outcome: "ok",
    finish: "tool_calls",
  };

  test("are broken on every wire that has arguments as text", () => {
    const chat = codecs.chat.decodeAnswer({
      choices: [
        {
          message: { tool_calls: [{ id: "call_a", function: { name: "f", arguments: doubled } }] },
          finish_reason: "tool_calls",
        },
      ],
    });
    const responses = codecs.responses.decodeAnswer({
      status: "completed",
      output: [{ type: "function_call", call_id: "call_a", name: "f", arguments: doubled }],
    });
    const decoder = codecs.messages.createDecoder();
    const frames = [
      { type: "message_start", message: {} },
      { type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "a", name: "f", input: {} } },
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: doubled } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "tool_use" } },
      { type: "message_stop" },
    ];
    const messages = collect([
      ...frames.flatMap((frame) => decoder.push({ event: frame.type, data: JSON.stringify(frame) })),
      ...decoder.end(),
    ]);
    for (const answer of [chat, responses, messages])
      expect(answer.items).toMatchObject([{ type: "call", arguments: doubled, complete: false }]);
  });

  test.each(wires)("go to a client of %s in a form that no lenient reader can run half of, and come back", (wire) => {
    const body = streamOf(codecs[wire], broken);
    const decoder = codecs[wire].createDecoder();
    const back = collect([...decodeSse(body).flatMap((frame) => decoder.push(frame)), ...decoder.end()]);
    expect(back.items).toMatchObject([{ type: "call", arguments: doubled, complete: false }]);
    expect(body).toContain("__unparsed");
  });
});

describe("thoughts before text", () => {
  test.each(wires)("are over when the text begins, so that a client of %s sees it live", (wire) => {
    const decoder = codecs.chat.createDecoder();
    const encoder = codecs[wire].createEncoder();
    const push = (delta: object) =>
      decoder
        .push({ data: JSON.stringify({ id: "c", choices: [{ index: 0, delta }] }) })
        .flatMap((event) => encoder.push(event));
    push({ role: "assistant", reasoning_content: "hm" });
    push({ reasoning_content: " yes" });
    expect(JSON.stringify(push({ content: "Hello" }))).toContain("Hello");
  });

  test("may come again between texts; each is an item of its own", () => {
    const decoder = codecs.chat.createDecoder();
    const push = (delta: object) => decoder.push({ data: JSON.stringify({ id: "c", choices: [{ index: 0, delta }] }) });
    const events: readonly ModelEvent[] = [
      ...push({ content: "one" }),
      ...push({ reasoning_content: "hm" }),
      ...push({ content: "two" }),
      ...decoder.push({ data: "[DONE]" }),
    ];
    expect(collect(events).items).toEqual([
      { type: "message", role: "assistant", content: [text("one")] },
      { type: "reasoning", text: "hm" },
      { type: "message", role: "assistant", content: [text("two")] },
    ]);
  });
});

/** What a client sends back of an answer, as far as clients of this wire do. */
function comeBack(wire: WireName, answer: Answer, sign?: (words: string) => string): readonly Item[] {
  const options = sign === undefined ? {} : { sign };
  const told = codecs[wire].encodeAnswer(answer, options);
  // Bodies of answers have these shapes.
  const body = told as Record<string, [never]>;
  switch (wire) {
    case "responses":
      return codecs.responses.decodeRequest({ input: body["output"] }, options).input;
    case "messages":
      return codecs.messages.decodeRequest({ messages: [{ role: "assistant", content: body["content"] }] }, options)
        .input;
    case "chat": {
      const { message } = body["choices"]![0] as { message: Record<string, unknown> };
      const { reasoning_content: _dropped, ...kept } = message;
      return codecs.chat.decodeRequest({ messages: [kept] }, options).input;
    }
    case "gemini": {
      const { content } = body["candidates"]![0] as { content: { parts: { thought?: boolean }[] } };
      // gemini-cli drops thoughts.
      const parts = content.parts.filter((part) => part.thought !== true);
      return codecs.gemini.decodeRequest({ contents: [{ role: "model", parts }] }, options).input;
    }
  }
}

const words = fc.string({ minLength: 1, maxLength: 20 });

describe("state of another wire", () => {
  const opaque = fc.oneof(
    words.map((value) => ({ wire: "responses", kind: "encrypted_content", value })),
    words.map((value) => ({ wire: "messages", kind: "signature", value })),
  );

  test.each(wires)("comes back from a client of %s beside the call it belongs to", (wire) => {
    fc.assert(
      fc.property(opaque, words, (state, value) => {
        const item: Item = { type: "reasoning", text: value, opaque: state };
        const back = comeBack(wire, { items: [item, call], outcome: "ok", finish: "tool_calls" });
        expect(back.filter((one) => one.type === "reasoning")).toMatchObject([{ text: value, opaque: state }]);
        expect(back.at(-1)).toMatchObject({ type: "call", id: "call_a", complete: true });
      }),
    );
  });

  test.each(wires)("a thought signature of Gemini comes back from a client of %s", (wire) => {
    const signed: Item = { ...call, extra: { wire: "gemini", fields: { thoughtSignature: "c2ln" } } };
    const back = comeBack(wire, { items: [signed], outcome: "ok", finish: "tool_calls" });
    const { body } = codecs.gemini.encodeRequest({ model: "m", tools: [], input: back });
    expect(JSON.stringify(body)).toContain('"thoughtSignature":"c2ln"');
  });

  test("what a Gemini client is given as a signature is plain base64", () => {
    const body = codecs.gemini.encodeAnswer({ items: [thought, call], outcome: "ok", finish: "tool_calls" });
    const [signature] = JSON.stringify(body).match(/(?<="thoughtSignature":")[^"]*/) ?? [];
    expect(signature).toMatch(/^[A-Za-z0-9+/]+=*$/);
  });

  test.each(wires)("that a client of %s forged is not taken", (wire) => {
    const sign = (key: string) => (value: string) => createHmac("sha256", key).update(value).digest("base64");
    const item: Item = { type: "reasoning", opaque: { wire: "other", kind: "signature", value: "secret" } };
    const answer: Answer = { items: [item, call], outcome: "ok", finish: "tool_calls" };
    const told = codecs[wire].encodeAnswer(answer, { sign: sign("ours") });
    expect(JSON.stringify(told)).not.toContain("secret");
    expect(JSON.stringify(comeBack(wire, answer, sign("ours")))).toContain("secret");
    const unsigned = JSON.stringify(comeBackWith(wire, answer, sign("ours"), sign("theirs")));
    expect(unsigned).not.toContain("secret");
    expect(unsigned).toContain("read_file");
  });
});

/** Sealed with one key and opened with another. */
function comeBackWith(
  wire: WireName,
  answer: Answer,
  sealing: (words: string) => string,
  opening: (words: string) => string,
): readonly Item[] {
  let isSealed = false;
  return comeBack(wire, answer, (value) => {
    const key = isSealed ? opening : sealing;
    isSealed = true;
    return key(value);
  });
}

describe("an unsigned thought", () => {
  test.each(["responses", "messages"] as const)(
    "has a signature for a client of %s, and comes back as a thought",
    (wire) => {
      const answer: Answer = { items: [thought, said], outcome: "ok", finish: "stop" };
      const told = JSON.stringify(codecs[wire].encodeAnswer(answer));
      expect(told).toMatch(/"(signature|encrypted_content)":"[A-Za-z0-9+/]+=*"/);
      expect(comeBack(wire, answer).filter((item) => item.type === "reasoning")).toMatchObject([{ text: "hm" }]);
      const { body } = codecs.messages.encodeRequest({ model: "m", tools: [], input: comeBack(wire, answer) });
      expect(JSON.stringify(body)).not.toContain("hm");
    },
  );

  test("whose words a Responses client left out comes back with them", () => {
    const { output } = codecs.responses.encodeAnswer({ items: [thought], outcome: "ok" }) as { output: object[] };
    const input = output.map((item) => ({ ...item, summary: [], content: [] }));
    expect(codecs.responses.decodeRequest({ input }).input).toMatchObject([{ type: "reasoning", text: "hm" }]);
  });
});

describe("a request to Messages", () => {
  const asked: ModelRequest = {
    model: "m",
    input: [{ type: "message", role: "user", content: [text("hi")] }],
    tools: [],
  };
  const tool = { kind: "function", name: "read_file", description: "", parameters: { type: "object" } } as const;
  const result: Item = { type: "result", callId: "call_a", kind: "function", content: [text("x")], ok: true };
  const encode = (request: Partial<ModelRequest>) => codecs.messages.encodeRequest({ ...asked, ...request }).body;

  test("does not think where the thoughts of the turn are gone", () => {
    const input = [...asked.input, thought, call, result];
    expect(encode({ input, tools: [tool], reasoning: { budgetTokens: 2000 } })["thinking"]).toBeUndefined();
    const signed = { ...thought, opaque: { wire: "messages", kind: "signature", value: "s" } };
    expect(
      encode({ input: [...asked.input, signed, call, result], tools: [tool], reasoning: { budgetTokens: 2000 } }),
    ).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2000 } });
  });

  test("has a budget for thoughts below its limit, and nothing that does not go with it", () => {
    const body = encode({ maxOutputTokens: 5000, temperature: 0.5, topP: 0.5, reasoning: { budgetTokens: 8192 } });
    expect(body).toMatchObject({ thinking: { budget_tokens: 4000 } });
    expect(body).not.toHaveProperty("temperature");
    expect(body).not.toHaveProperty("top_p");
    expect(encode({ maxOutputTokens: 500, reasoning: { budgetTokens: 8192 } })).not.toHaveProperty("thinking");
    const forced = encode({ tools: [tool], toolChoice: "required", reasoning: { budgetTokens: 2000 } });
    expect(forced).not.toHaveProperty("thinking");
  });

  test("names the tools of its history where none is offered", () => {
    const body = encode({ input: [...asked.input, call, result] });
    expect(body).toMatchObject({ tools: [{ name: "read_file" }], tool_choice: { type: "none" } });
    expect(codecs.messages.decodeRequest(body).tools).toEqual([]);
  });
});

describe("what a client says of itself", () => {
  const userId = JSON.stringify({
    device_id: "d".repeat(64),
    account_uuid: "",
    session_id: "0f2c1a9e-7b4d-4a51-9c33-2f6f0d9a1b2c",
  });

  test.each(wires)("Claude Code's device stays here, and its session is the cache key at %s", (wire) => {
    const asked = codecs.messages.decodeRequest({ metadata: { user_id: userId }, messages: [] });
    const { body } = codecs[wire].encodeRequest(asked);
    expect(JSON.stringify(body)).not.toContain("dddd");
    expect(asked.cacheKey).toBe("0f2c1a9e-7b4d-4a51-9c33-2f6f0d9a1b2c");
  });

  test.each(["chat", "responses", "messages"] as const)("a cache key is at most 64 characters at %s", (wire) => {
    const { body } = codecs[wire].encodeRequest({ model: "m", input: [], tools: [], cacheKey: "k".repeat(150) });
    const key = body["prompt_cache_key"] ?? (body["metadata"] as { user_id: string }).user_id;
    expect(String(key).length).toBeLessThanOrEqual(64);
  });
});

test.each(["chat", "messages", "gemini"] as const)("code mode's prompt is the system prompt at %s", (wire) => {
  const asked = codecs.responses.decodeRequest({
    input: [
      { type: "additional_tools", role: "developer", tools: [{ type: "custom", name: "exec", description: "runs" }] },
      { type: "message", role: "developer", content: "You are Codex." },
      { type: "message", role: "user", content: "hi" },
    ],
  });
  const { body } = codecs[wire].encodeRequest(asked);
  const system = wire === "chat" ? (body["messages"] as object[])[0] : (body["system"] ?? body["systemInstruction"]);
  expect(JSON.stringify(system)).toContain("You are Codex.");
  expect(JSON.stringify(body)).not.toContain("[developer message]");
});

test("a schema of Gemini's own spelling is JSON Schema on every wire", () => {
  const asked = codecs.gemini.decodeRequest({
    contents: [],
    generationConfig: { responseSchema: { type: "OBJECT", properties: { a: { type: "STRING" } } } },
  });
  for (const wire of wires) expect(JSON.stringify(codecs[wire].encodeRequest(asked).body)).not.toMatch(/OBJECT|STRING/);
});

test("a text that a Gemini client sends back in pieces is one text", () => {
  const parts = [{ text: "Reading" }, { text: " the fi" }, { text: "le now." }];
  const { body } = codecs.chat.encodeRequest(codecs.gemini.decodeRequest({ contents: [{ role: "model", parts }] }));
  expect(body["messages"]).toMatchObject([{ role: "assistant", content: "Reading the file now." }]);
});

test("web search goes from Messages to Responses and back", () => {
  const tools = [{ type: "web_search_20250305", name: "web_search", allowed_domains: ["a.org"] }];
  const asked = codecs.messages.decodeRequest({
    messages: [],
    tools,
    tool_choice: { type: "tool", name: "web_search" },
  });
  const { body, dropped } = codecs.responses.encodeRequest(asked);
  expect(dropped).toEqual([]);
  expect(body).toMatchObject({
    tools: [{ type: "web_search", filters: { allowed_domains: ["a.org"] } }],
    tool_choice: { type: "web_search" },
  });
  const again = codecs.messages.encodeRequest(codecs.responses.decodeRequest(body)).body;
  expect(again["tools"]).toEqual(tools);
});

describe("a failure", () => {
  const told = (wire: WireName, error: ModelError) => codecs[wire].encodeError(error);

  test("keeps its kind in every wire's own words", () => {
    const limit = { message: "slow down", type: "rate_limit", retryAfterMs: 1500 };
    expect(told("chat", limit)).toMatchObject({ status: 429, headers: { "retry-after": "2" } });
    expect(told("responses", limit).body).toMatchObject({
      error: { code: "rate_limit_exceeded", message: "slow down Please try again in 1.5s." },
    });
    expect(told("messages", limit).body).toMatchObject({ error: { type: "rate_limit_error" } });
    expect(told("gemini", limit).body).toMatchObject({ error: { code: 429, status: "RESOURCE_EXHAUSTED" } });
    expect(told("messages", { message: "busy", type: "overloaded" })).toMatchObject({
      status: 529,
      body: { error: { type: "overloaded_error" } },
    });
    expect(told("responses", { message: "used up", type: "billing" })).toMatchObject({ status: 400 });
    expect(told("messages", { message: "used up", type: "billing" })).toMatchObject({ status: 402 });
  });

  test.each([
    "The input token count (5000) exceeds the maximum number of tokens allowed (4096).",
    "This model's maximum context length is 4096 tokens",
    "prompt is too long: 5 tokens > 4 maximum",
  ])("of a conversation that is too long is known by '%s'", (message) => {
    const error = { message, code: "INVALID_ARGUMENT", status: 400 };
    expect(told("responses", error).body).toMatchObject({ error: { code: "context_length_exceeded" } });
    expect(JSON.stringify(told("messages", error).body)).toContain("prompt is too long");
  });

  test.each(wires)("inside a stream of %s is told in the same words as before it", (wire) => {
    const error = { message: "busy", type: "overloaded" };
    const body = streamOf(codecs[wire], { items: [], outcome: "error", error });
    const { status = "", code = "", type = "" } = (told(wire, error).body["error"] ?? {}) as Record<string, string>;
    for (const word of [status, wire === "chat" ? code : "", wire === "messages" ? type : ""])
      expect(body).toContain(word);
    expect(body).toContain("busy");
  });
});

describe("an answer that passes a bound", () => {
  const answer: Answer = {
    items: Array.from({ length: 5 }, (_, at): Item => ({ ...call, id: `call_${at}` })),
    outcome: "ok",
    finish: "tool_calls",
  };
  const bounds = [
    ["calls", { calls: 4 }],
    ["argument characters", { argumentCharacters: 3 }],
    ["characters", { characters: 10 }],
  ] as const;

  test.each(wires.flatMap((wire) => bounds.map(([what, limits]) => [wire, what, limits] as const)))(
    "of %s (%s) ends with an error, and none of its calls runs",
    (wire, _what, limits) => {
      const frames = decodeSse(streamOf(codecs[wire], answer));
      const decoder = codecs[wire].createDecoder({ limits });
      const back = collect([...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()]);
      expect(back).toMatchObject({ outcome: "error", error: { type: "limit", code: "answer_too_large" } });
      expect(back.items.some((item) => item.type === "call" && item.complete)).toBe(false);
      const whole = codecs[wire].decodeAnswer(codecs[wire].encodeAnswer(answer), { limits });
      expect(whole).toMatchObject({ outcome: "error" });
      expect(whole.items.some((item) => item.type === "call" && item.complete)).toBe(false);
    },
  );
});
