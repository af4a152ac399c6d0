import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../src/base/json.ts";
import { collect } from "../../../src/wire/answer.ts";
import { chat } from "../../../src/wire/chat/index.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";
import { cpuMs } from "../../work.ts";
import { decodeBody, expectReport } from "../streams.ts";
import { call, calls, delta, done, finish, oslo, sse, tools, xy, type Line } from "./body.ts";

interface Expected {
  readonly calls?: readonly JsonObject[];
  readonly outcome?: string;
  readonly finish?: string | null;
  readonly text?: string;
  readonly reasoning?: string;
  readonly refusal?: string | null;
  readonly usage?: JsonObject | null;
  readonly error?: JsonObject | null;
}

type Case = readonly [name: string, lines: readonly Line[], expected: Expected];

const weather = {
  kind: "function",
  id: "call_a",
  name: "get_weather",
  arguments: oslo,
  input: { city: "Oslo" },
  complete: true,
};
const search = { kind: "function", id: "call_b", name: "search", arguments: xy, input: { q: "x y" }, complete: true };
const both = [weather, search];
const ends = [finish("tool_calls"), done];

function run([name, lines, expected]: Case): void {
  test(name, () => {
    const body = sse(lines);
    const whole = decodeBody(chat, body, [], { declared: tools });
    const made = expected.calls ?? [];
    expectReport(whole, {
      outcome: "ok",
      finish: made.length > 0 ? "tool_calls" : "stop",
      text: "",
      reasoning: "",
      refusal: null,
      usage: null,
      error: null,
      ...(expected as JsonObject),
      calls: made,
    });
    const bytes = new TextEncoder().encode(body);
    expect(
      decodeBody(
        chat,
        bytes,
        Array.from(bytes, (_, at) => at),
        { declared: tools },
      ),
    ).toEqual(whole);
  });
}

describe("calls are told apart when", () => {
  const cases: readonly Case[] = [
    [
      "two are streamed one after the other",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: "" })),
        calls(call({ index: 0, args: oslo })),
        calls(call({ index: 1, id: "call_b", name: "search", args: "" })),
        calls(call({ index: 1, args: xy })),
        ...ends,
      ],
      { calls: both },
    ],
    [
      "their fragments are interleaved",
      [
        calls(
          call({ index: 0, id: "call_a", name: "get_weather", args: "" }),
          call({ index: 1, id: "call_b", name: "search", args: "" }),
        ),
        calls(call({ index: 1, args: '{"q":' })),
        calls(call({ index: 0, args: '{"city":' })),
        calls(call({ index: 1, args: '"x y"}' })),
        calls(call({ index: 0, args: '"Oslo"}' })),
        ...ends,
      ],
      { calls: both },
    ],
    [
      "there is no index and one call",
      [
        calls(call({ id: "call_a", name: "get_weather", args: "" })),
        calls(call({ args: '{"city":' })),
        calls(call({ args: '"Oslo"}' })),
        ...ends,
      ],
      { calls: [weather] },
    ],
    [
      "there is no index and two calls follow each other",
      [
        calls(call({ id: "call_a", name: "get_weather", args: '{"city":' })),
        calls(call({ args: '"Oslo"}' })),
        calls(call({ id: "call_b", name: "search", args: '{"q"' })),
        calls(call({ args: ':"x y"}' })),
        ...ends,
      ],
      { calls: both },
    ],
    [
      "there is no index and the id says whose fragment it is",
      [
        calls(call({ id: "call_a", name: "get_weather", args: "" }), call({ id: "call_b", name: "search", args: "" })),
        calls(call({ id: "call_a", args: oslo })),
        calls(call({ id: "call_b", args: xy })),
        ...ends,
      ],
      { calls: both },
    ],
    [
      "there is neither index nor id",
      [calls(call({ name: "get_weather", args: oslo })), calls(call({ name: "search", args: xy })), ...ends],
      {
        calls: [
          { ...weather, id: null },
          { ...search, id: null },
        ],
      },
    ],
    [
      "every call has index 0 and its own id",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo })),
        calls(call({ index: 0, id: "call_b", name: "search", args: xy })),
        ...ends,
      ],
      { calls: both },
    ],
    [
      "every call has index 0, an id at its start and fragments after it",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: "" })),
        calls(call({ index: 0, args: oslo })),
        calls(call({ index: 0, id: "call_b", name: "search", args: "" })),
        calls(call({ index: 0, args: xy })),
        ...ends,
      ],
      { calls: both },
    ],
    [
      "every call has index 0 and no id",
      [
        calls(call({ index: 0, name: "get_weather", args: oslo })),
        calls(call({ index: 0, name: "search", args: xy })),
        ...ends,
      ],
      {
        calls: [
          { ...weather, id: null },
          { ...search, id: null },
        ],
      },
    ],
    [
      "the same tool is called twice under index 0 without ids",
      [
        calls(call({ index: 0, name: "search", args: '{"q":"1"}' })),
        calls(call({ index: 0, name: "search", args: '{"q":"2"}' })),
        ...ends,
      ],
      {
        calls: [
          { ...search, id: null, arguments: '{"q":"1"}', input: { q: "1" } },
          { ...search, id: null, arguments: '{"q":"2"}', input: { q: "2" } },
        ],
      },
    ],
    [
      "the id is repeated in every delta",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: "" })),
        calls(call({ index: 0, id: "call_a", args: '{"city":' })),
        calls(call({ index: 0, id: "call_a", args: '"Oslo"}' })),
        ...ends,
      ],
      { calls: [weather] },
    ],
    [
      "id and name are blank in later deltas",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: "" })),
        calls(call({ index: 0, id: "", name: "", args: '{"city":' })),
        calls(call({ index: 0, id: null, name: null, args: '"Oslo"}' })),
        ...ends,
      ],
      { calls: [weather] },
    ],
    [
      "the name is repeated in full in every delta",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: "" })),
        calls(call({ index: 0, name: "get_weather", args: '{"city":' })),
        calls(call({ index: 0, name: "get_weather", args: '"Oslo"}' })),
        ...ends,
      ],
      { calls: [weather] },
    ],
    [
      "the name comes in three pieces",
      [
        calls(call({ index: 0, id: "call_a", name: "get", args: "" })),
        calls(call({ index: 0, name: "_wea", args: "" })),
        calls(call({ index: 0, name: "ther", args: oslo })),
        ...ends,
      ],
      { calls: [weather] },
    ],
    [
      "the name comes later than the id",
      [calls(call({ index: 0, id: "call_a" })), calls(call({ index: 0, name: "get_weather", args: oslo })), ...ends],
      { calls: [weather] },
    ],
    [
      "arguments come before the name",
      [
        calls(call({ index: 0, id: "call_a", args: '{"city":' })),
        calls(call({ index: 0, name: "get_weather", args: '"Oslo"}' })),
        ...ends,
      ],
      { calls: [weather] },
    ],
    [
      "the name comes later and there is no index",
      [calls(call({ id: "call_a" })), calls(call({ name: "get_weather", args: oslo })), ...ends],
      { calls: [weather] },
    ],
    [
      "indexes have a gap",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo })),
        calls(call({ index: 3, id: "call_b", name: "search", args: xy })),
        ...ends,
      ],
      { calls: both },
    ],
    [
      "indexes arrive out of order",
      [
        calls(call({ index: 1, id: "call_b", name: "search", args: xy })),
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo })),
        ...ends,
      ],
      { calls: both },
    ],
    [
      "there are no ids",
      [
        calls(call({ index: 0, name: "get_weather", args: oslo })),
        calls(call({ index: 1, name: "search", args: xy })),
        ...ends,
      ],
      {
        calls: [
          { ...weather, id: null },
          { ...search, id: null },
        ],
      },
    ],
    [
      "two calls have the same id",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo })),
        calls(call({ index: 1, id: "call_a", name: "search", args: xy })),
        ...ends,
      ],
      { calls: [weather, { ...search, id: null }] },
    ],
    [
      "two calls have the same id, fragments by index",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: "" })),
        calls(call({ index: 1, id: "call_a", name: "search", args: "" })),
        calls(call({ index: 0, args: oslo })),
        calls(call({ index: 1, args: xy })),
        ...ends,
      ],
      { calls: [weather, { ...search, id: null }] },
    ],
    [
      "a fresh id stands on every delta of one call",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: "" })),
        calls(call({ index: 0, id: "call_x", args: '{"city":' })),
        calls(call({ index: 0, id: "call_y", args: '"Oslo"}' })),
        ...ends,
      ],
      { calls: [weather] },
    ],
    [
      "the finish chunk says the whole call again",
      [
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo })),
        delta({ tool_calls: [call({ index: 0, id: "call_a", name: "get_weather", args: oslo })] }, "tool_calls"),
        done,
      ],
      { calls: [weather] },
    ],
    [
      "a ghost without name and arguments stands beside them",
      [calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo }), { index: 1 }), ...ends],
      { calls: [weather] },
    ],
  ];
  cases.forEach(run);
});

describe("arguments are read when", () => {
  const cases: readonly Case[] = [
    [
      "they are an object",
      [calls(call({ index: 0, id: "call_a", name: "get_weather", args: { city: "Oslo" } })), ...ends],
      { calls: [weather] },
    ],
    [
      "they are null",
      [calls(call({ index: 0, id: "call_a", name: "list_dir", args: null })), ...ends],
      { calls: [{ id: "call_a", name: "list_dir", arguments: "", input: {}, complete: true }] },
    ],
    [
      "a character of two units is split between deltas",
      [
        calls(call({ index: 0, id: "call_a", name: "search", args: '{"q":"\ud83d' })),
        calls(call({ index: 0, args: '\ude00é"}' })),
        ...ends,
      ],
      { calls: [{ ...search, id: "call_a", arguments: '{"q":"😀é"}', input: { q: "😀é" } }] },
    ],
    [
      "they are not JSON: told, never run",
      [calls(call({ index: 0, id: "call_a", name: "search", args: "{'q': 1}" })), ...ends],
      { calls: [{ id: "call_a", name: "search", arguments: "{'q': 1}", input: null, complete: false }] },
    ],
    [
      "the old function_call form is used",
      [
        delta({ function_call: { name: "get_weather", arguments: "" } }),
        delta({ function_call: { arguments: oslo } }),
        finish("function_call"),
        done,
      ],
      { calls: [{ ...weather, id: null }] },
    ],
    [
      "the tool is a custom one",
      [
        calls({ index: 0, id: "call_p", type: "custom", custom: { name: "apply_patch", input: "*** Begin" } }),
        calls({ index: 0, custom: { input: " Patch" } }),
        ...ends,
      ],
      {
        calls: [
          {
            kind: "custom",
            id: "call_p",
            name: "apply_patch",
            arguments: "*** Begin Patch",
            input: "*** Begin Patch",
            complete: true,
          },
        ],
      },
    ],
    [
      "a wrapper holds several calls",
      [
        calls(
          call({
            index: 0,
            id: "call_a",
            name: "multi_tool_use.parallel",
            args: JSON.stringify({
              tool_uses: [
                { recipient_name: "functions.get_weather", parameters: { city: "Oslo" } },
                { recipient_name: "search", parameters: { q: "x y" } },
              ],
            }),
          }),
        ),
        ...ends,
      ],
      {
        calls: [
          { ...weather, id: null },
          { ...search, id: null },
        ],
      },
    ],
  ];
  cases.forEach(run);
});

describe("words and thoughts are read from", () => {
  const cases: readonly Case[] = [
    [
      "reasoning_content",
      [
        delta({ reasoning_content: "h" }),
        delta({ reasoning_content: "m", content: null }),
        delta({ content: "Hi" }),
        finish("stop"),
        done,
      ],
      { text: "Hi", reasoning: "hm" },
    ],
    [
      "reasoning",
      [delta({ reasoning: "hm", content: "" }), delta({ content: "Hi" }), finish("stop"), done],
      { text: "Hi", reasoning: "hm" },
    ],
    [
      "both fields at once, said once",
      [delta({ reasoning: "hm", reasoning_content: "hm" }), delta({ content: "Hi" }), finish("stop"), done],
      { text: "Hi", reasoning: "hm" },
    ],
    [
      "reasoning_details alone",
      [
        delta({ reasoning_details: [{ type: "reasoning.text", text: "hm" }] }),
        delta({ content: "Hi" }),
        finish("stop"),
        done,
      ],
      { text: "Hi", reasoning: "hm" },
    ],
    [
      "think tags: they stay text unless asked",
      [delta({ content: "<think>hm</think>Hi" }), finish("stop"), done],
      { text: "<think>hm</think>Hi" },
    ],
    [
      "text after the call, in the same turn",
      [
        delta({ content: "a" }),
        calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo })),
        delta({ content: "b" }),
        ...ends,
      ],
      { text: "ab", calls: [weather] },
    ],
    [
      "a refusal",
      [delta({ refusal: "I can" }), delta({ refusal: "not." }), finish("stop"), done],
      { refusal: "I cannot." },
    ],
    [
      "calls leaked as text: left as text",
      [delta({ content: '<tool_call>{"name":"search","arguments":{"q":"x y"}}</tool_call>' }), finish("stop"), done],
      { text: '<tool_call>{"name":"search","arguments":{"q":"x y"}}</tool_call>' },
    ],
    [
      "the first of several choices",
      [
        {
          choices: [
            { index: 1, delta: { content: "no" } },
            { index: 0, delta: { content: "yes" } },
          ],
        },
        { choices: [{ index: 1, delta: {}, finish_reason: "length" }] },
        finish("stop"),
        done,
      ],
      { text: "yes" },
    ],
    [
      "the lowest of several choices where none is the first",
      [
        { choices: [{ index: 3, delta: { content: "no" } }] },
        { choices: [{ index: 2, delta: { content: "ye" } }] },
        { choices: [{ index: 3, delta: {}, finish_reason: "length" }] },
        { choices: [{ index: 2, delta: { content: "s" }, finish_reason: "stop" }] },
        done,
      ],
      { text: "yes" },
    ],
    [
      "the first choice, though another was first to speak",
      [
        { choices: [{ index: 1, delta: { content: "no" }, finish_reason: "length" }] },
        delta({ content: "yes" }),
        finish("stop"),
        done,
      ],
      { text: "yes" },
    ],
    [
      "chunks between null deltas",
      [
        { choices: [{ index: 0, delta: null, finish_reason: null }] },
        delta({ content: "Hi", tool_calls: null, role: null }),
        { choices: null },
        finish("stop"),
        done,
      ],
      { text: "Hi" },
    ],
    [
      "a whole message in place of a delta",
      [{ choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }] }, done],
      { text: "Hi" },
    ],
  ];
  cases.forEach(run);
});

describe("the end is told when", () => {
  const whole = calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo }));
  const part = calls(call({ index: 0, id: "call_a", name: "get_weather", args: '{"city":"Os' }));
  const counted = { input: 11, output: 7, total: 18, cached: 5, reasoning: 2 };
  const usage = {
    prompt_tokens: 11,
    completion_tokens: 7,
    total_tokens: 18,
    prompt_tokens_details: { cached_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };
  const cases: readonly Case[] = [
    ["the server says stop although there are calls", [whole, finish("stop"), done], { calls: [weather] }],
    [
      "usage stands in the finish chunk",
      [whole, { ...finish("tool_calls"), usage }, done],
      { calls: [weather], usage: counted },
    ],
    [
      "usage is null in every chunk but the last",
      [{ ...whole, usage: null }, { ...finish("tool_calls"), usage: null }, { choices: [], usage }, done],
      { calls: [weather], usage: counted },
    ],
    ["there is no [DONE]", [whole, finish("tool_calls")], { calls: [weather] }],
    ["there is [DONE] and no finish reason", [whole, done], { calls: [weather] }],
    [
      "the body ends inside the arguments",
      [part],
      {
        outcome: "truncated",
        finish: null,
        calls: [{ ...weather, arguments: '{"city":"Os', input: null, complete: false }],
      },
    ],
    [
      "the body ends with whole arguments and no finish: nothing may run",
      [whole],
      { outcome: "truncated", finish: null, calls: [{ ...weather, complete: false }] },
    ],
    [
      "the body ends inside a chunk",
      [whole, 'data: {"id":"chatcmpl-1","choices":[{"ind'],
      { outcome: "truncated", finish: null, calls: [{ ...weather, complete: false }] },
    ],
    [
      "the answer was too long",
      [part, finish("length"), done],
      {
        outcome: "incomplete",
        finish: "length",
        calls: [{ ...weather, arguments: '{"city":"Os', input: null, complete: false }],
      },
    ],
    [
      "the answer was too long with whole arguments: they may be a prefix",
      [whole, finish("length"), done],
      { outcome: "incomplete", finish: "length", calls: [{ ...weather, complete: false }] },
    ],
    [
      "an error stands beside choices",
      [
        delta({ content: "par" }),
        { ...delta({ content: "" }, "error"), error: { code: 502, message: "upstream exploded" } },
      ],
      { outcome: "error", finish: "error", text: "par", error: { message: "upstream exploded" } },
    ],
    [
      "an error comes as a named event",
      [delta({ content: "par" }), 'event: error\ndata: {"message":"upstream exploded"}'],
      { outcome: "error", finish: null, text: "par", error: { message: "upstream exploded" } },
    ],
    [
      "an error comes as a named event that nests it",
      ['event: error\ndata: {"error":{"message":"upstream exploded","type":"server_error"}}', done],
      { outcome: "error", finish: null, error: { message: "upstream exploded", type: "server_error" } },
    ],
    [
      "an error follows a whole call: it is not run",
      [whole, { error: { message: "boom" } }, done],
      { outcome: "error", finish: null, calls: [{ ...weather, complete: false }], error: { message: "boom" } },
    ],
    ["the error is a bare string", [{ error: "boom" }], { outcome: "error", finish: null, error: { message: "boom" } }],
    ["the body is empty", [], { outcome: "truncated", finish: null }],
    [
      "comments keep the line open",
      [": OPENROUTER PROCESSING", delta({ content: "Hi" }), ":", finish("stop"), ": ping", done],
      { text: "Hi" },
    ],
    [
      "the JSON spans several data lines",
      [`data: {"choices":[{"index":0,\ndata: "delta":{"content":"Hi"},\ndata: "finish_reason":"stop"}]}`, done],
      { text: "Hi" },
    ],
    [
      "there is no space after the colon",
      [`data:${JSON.stringify(delta({ content: "Hi" }))}`, `data:${JSON.stringify(finish("stop"))}`, "data:[DONE]"],
      { text: "Hi" },
    ],
    ["more follows [DONE]", [delta({ content: "Hi" }), finish("stop"), done, delta({ content: "no" })], { text: "Hi" }],
  ];
  cases.forEach(run);
});

test("CRLF and lone CR end lines too", () => {
  const lines = [
    delta({ content: "Hé" }),
    calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo })),
    ...ends,
  ];
  const plain = decodeBody(chat, sse(lines), [], { declared: tools });
  for (const end of ["\r\n", "\r"]) {
    const bytes = new TextEncoder().encode(`\ufeff${sse(lines, end)}`);
    expect(decodeBody(chat, bytes)).toEqual(plain);
    expect(
      decodeBody(
        chat,
        bytes,
        Array.from(bytes, (_, at) => at),
      ),
    ).toEqual(plain);
  }
});

test("think tags are read as thoughts when asked, wherever they are cut", () => {
  const pieces = "<think>a <b> c</think>\nHi </think> there".split("");
  const body = sse([...pieces.map((content) => delta({ content })), finish("stop"), done]);
  expect(decodeBody(chat, body, [], { thinkTags: true })).toMatchObject({
    reasoning: "a <b> c",
    text: "\nHi </think> there",
  });
});

test("arguments of a megabyte in small pieces cost the same per byte", () => {
  const decoder = chat.createDecoder({ declared: tools });
  const piece = { data: JSON.stringify(calls(call({ index: 0, name: "search", args: "x".repeat(8) }))) };
  const feed = () => {
    for (let at = 0; at < 125_000; at++) decoder.push(piece);
  };
  expect(cpuMs(feed)).toBeLessThan(10_000);
});

test("arguments nested beyond all measure are no reason to crash, and never run", () => {
  const deep = `${'{"a":'.repeat(200_000)}1${"}".repeat(200_000)}`;
  const fn = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"search","arguments":${deep}}}]},"finish_reason":"tool_calls"}]}`;
  expect(decodeBody(chat, `data: ${fn}\n\ndata: [DONE]\n\n`)).toMatchObject({
    outcome: "ok",
    calls: [{ complete: false }],
  });
});

test("nor are they in a wrapper of several calls, or in a part of an unknown kind", () => {
  const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  const args = JSON.stringify(`{"tool_uses":[{"recipient_name":"search","parameters":{"q":${deep}}}]}`);
  const wrapped = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"multi_tool_use.parallel","arguments":${args}}}]},"finish_reason":"tool_calls"}]}`;
  expect(decodeBody(chat, `data: ${wrapped}\n\ndata: [DONE]\n\n`)).toMatchObject({
    outcome: "ok",
    calls: [{ name: "search", complete: false }],
  });
  const strange = `{"choices":[{"index":0,"delta":{"images":[{"type":"odd","x":${deep}}]},"finish_reason":"stop"}]}`;
  expect(decodeBody(chat, `data: ${strange}\n\ndata: [DONE]\n\n`)).toMatchObject({ outcome: "ok" });
});

test("thoughts in pieces go back whole, and an empty thought is none", () => {
  const decoder = chat.createDecoder();
  const piece = (fields: JsonObject): JsonObject => ({ type: "reasoning.text", index: 0, ...fields });
  const chunks = [
    delta({ reasoning_content: "", reasoning_details: [piece({ text: "h", signature: null })] }),
    delta({ reasoning_details: [piece({ text: "m", signature: "S" })] }),
    delta({ reasoning_details: [{ type: "reasoning.encrypted", index: 1, data: "E" }] }),
    finish("stop"),
  ];
  const { items } = collect([
    ...chunks.flatMap((chunk) => decoder.push({ data: JSON.stringify(chunk) })),
    ...decoder.end(),
  ]);
  const reasoning_details = [
    piece({ text: "hm", signature: "S" }),
    { type: "reasoning.encrypted", index: 1, data: "E" },
  ];
  expect(items).toEqual([{ type: "reasoning", text: "hm", extra: { wire: "chat", fields: { reasoning_details } } }]);
  const [said] = chat.encodeRequest({
    model: "m",
    tools: [],
    input: [...items, { type: "message", role: "assistant", content: [{ type: "text", text: "x" }] }],
  }).body["messages"] as readonly JsonObject[]; // one message
  expect(said).toMatchObject({ reasoning_details });
  const quiet = sse([delta({ reasoning_content: "", content: "Hi" }), finish("stop"), done]);
  expect(decodeRecording(chat, [quiet]).items.map((item) => item.type)).toEqual(["message"]);
});
