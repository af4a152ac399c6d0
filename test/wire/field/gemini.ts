/** generateContent as AI Studio, Vertex, Code Assist and translators write it. */
import type { JsonObject } from "../../../src/base/json.ts";
import { broken, type FieldCase, made, oslo, xy } from "./case.ts";

function chunk(parts: readonly JsonObject[], finishReason?: string, more: JsonObject = {}): JsonObject {
  return {
    candidates: [
      { content: { role: "model", parts }, index: 0, ...(finishReason === undefined ? {} : { finishReason }) },
    ],
    modelVersion: "m",
    responseId: "r1",
    ...more,
  };
}

function call(name: string, args?: JsonObject, more: JsonObject = {}): JsonObject {
  return { functionCall: { name, ...(args === undefined ? {} : { args }), ...more } };
}

const hi = { text: "Hi" };
const weatherCall = call("get_weather", { city: "Oslo" });
const weather = made(null, "get_weather", oslo);
const search = made(null, "search", xy);
const signature = { thoughtSignature: "U0lH" };

export const cases: readonly FieldCase[] = [
  [
    "two calls in one chunk, without ids",
    [chunk([weatherCall, call("search", { q: "x y" })], "STOP")],
    { calls: [weather, search] },
  ],
  ["the same call twice is two calls", [chunk([weatherCall, weatherCall], "STOP")], { calls: [weather, weather] }],
  [
    "calls in two chunks, the end in a third",
    [chunk([weatherCall]), chunk([call("search", { q: "x y" })]), chunk([{ text: "" }], "STOP")],
    { calls: [weather, search] },
  ],
  [
    "ids where there are some",
    [chunk([call("get_weather", { city: "Oslo" }, { id: "fc1" }), call("search", { q: "x y" })], "STOP")],
    { calls: [made("fc1", "get_weather", oslo), search] },
  ],
  [
    "the same id twice",
    [
      chunk(
        [call("get_weather", { city: "Oslo" }, { id: "fc1" }), call("search", { q: "x y" }, { id: "fc1" })],
        "STOP",
      ),
    ],
    { calls: [made("fc1", "get_weather", oslo), search] },
  ],
  ["a call without arguments", [chunk([call("list_dir")], "STOP")], { calls: [made(null, "list_dir", "{}")] }],
  ["a call without a name", [chunk([call("", { a: 1 })], "STOP")], { calls: [broken(null, "", '{"a":1}')] }],
  [
    "only the first of parallel calls is signed",
    [chunk([{ ...weatherCall, ...signature }, call("search", { q: "x y" })], "STOP")],
    { calls: [made(null, "get_weather", oslo, { extra: signature }), search] },
  ],
  [
    "a signature on the words, on the last empty text, alone",
    [
      chunk([{ text: "H", ...signature }]),
      chunk([{ text: "i" }]),
      chunk([{ text: "", ...signature }]),
      chunk([signature], "STOP"),
    ],
    { text: "Hi" },
  ],
  [
    "thoughts, words, thoughts, a call",
    [chunk([{ text: "hm", thought: true }]), chunk([hi]), chunk([{ text: "so", thought: true }, weatherCall], "STOP")],
    { reasoning: "hmso", text: "Hi", calls: [weather] },
  ],
  [
    "signed thoughts",
    [chunk([{ text: "hm", thought: true, ...signature }, hi], "STOP")],
    { reasoning: "hm", text: "Hi", opaque: [{ type: "reasoning", ...signature }] },
  ],
  [
    "the end stands in the first chunk, before everything",
    [chunk([], "STOP"), chunk([hi]), chunk([], "STOP")],
    { text: "Hi" },
  ],
  ["every chunk says STOP", [chunk([{ text: "H" }], "STOP"), chunk([{ text: "i" }], "STOP")], { text: "Hi" }],
  [
    "the last chunk has no content",
    [
      chunk([hi]),
      {
        candidates: [{ finishReason: "STOP" }],
        usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 },
      },
    ],
    { text: "Hi", usage: { input: 3, output: 2, total: 5 } },
  ],
  [
    "usage after the end, thoughts and tools counted",
    [
      chunk([hi], "STOP"),
      {
        usageMetadata: {
          promptTokenCount: 3,
          toolUsePromptTokenCount: 4,
          candidatesTokenCount: 2,
          thoughtsTokenCount: 6,
          cachedContentTokenCount: 1,
          totalTokenCount: 15,
        },
      },
    ],
    { text: "Hi", usage: { input: 7, output: 8, total: 15, cached: 1, reasoning: 6 } },
  ],
  [
    "an envelope around each chunk (Code Assist)",
    [{ response: chunk([{ text: "H" }]), traceId: "t" }, { response: chunk([{ text: "i" }, weatherCall], "STOP") }],
    { text: "Hi", calls: [weather] },
  ],
  [
    "code that ran there",
    [
      chunk([{ executableCode: { language: "PYTHON", code: "1" } }]),
      chunk([{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } }]),
      chunk([hi], "STOP"),
    ],
    {
      text: "Hi",
      serverCalls: [{ kind: "code_execution" }, { kind: "code_execution" }],
    },
  ],
  [
    "a tool that ran there",
    [
      chunk([{ toolCall: { toolType: "GOOGLE_SEARCH_WEB", id: "t1", args: {} }, ...signature }]),
      chunk([{ toolResponse: { toolType: "GOOGLE_SEARCH_WEB", id: "t1", response: {} } }]),
      chunk([hi], "STOP"),
    ],
    {
      text: "Hi",
      serverCalls: [
        { kind: "google_search_web", id: "t1" },
        { kind: "google_search_web", id: "t1" },
      ],
    },
  ],
  [
    "a part of a kind nobody knows",
    [chunk([{ hologram: { x: 1 } }, hi], "STOP")],
    { text: "Hi", opaque: [{ hologram: { x: 1 } }] },
  ],
  [
    "several candidates",
    [
      {
        candidates: [
          { index: 1, content: { parts: [{ text: "no" }] } },
          { index: 0, content: { parts: [hi] }, finishReason: "STOP" },
        ],
      },
    ],
    { text: "Hi" },
  ],
  [
    "a malformed call",
    [chunk([hi]), { candidates: [{ finishReason: "MALFORMED_FUNCTION_CALL", finishMessage: "call: print(x)" }] }],
    {
      outcome: "error",
      finish: "error",
      text: "Hi",
      error: { code: "MALFORMED_FUNCTION_CALL", message: "call: print(x)" },
    },
  ],
  [
    "a call that was not to be made",
    [chunk([weatherCall], "UNEXPECTED_TOOL_CALL")],
    {
      outcome: "error",
      finish: "error",
      calls: [broken(null, "get_weather", oslo)],
      error: { code: "UNEXPECTED_TOOL_CALL" },
    },
  ],
  [
    "too long, with a whole call",
    [chunk([weatherCall], "MAX_TOKENS")],
    { outcome: "incomplete", finish: "length", calls: [broken(null, "get_weather", oslo)] },
  ],
  ["filtered", [chunk([hi]), chunk([], "SAFETY")], { outcome: "incomplete", finish: "content_filter", text: "Hi" }],
  ["recited", [chunk([hi], "RECITATION")], { outcome: "incomplete", finish: "content_filter", text: "Hi" }],
  [
    "blocked, whatever follows",
    [{ promptFeedback: { blockReason: "PROHIBITED_CONTENT", blockReasonMessage: "no" } }, chunk([], "STOP")],
    { outcome: "error", finish: "content_filter", error: { code: "PROHIBITED_CONTENT", message: "no" } },
  ],
  [
    "a block reason that is none",
    [{ promptFeedback: { blockReason: "BLOCK_REASON_UNSPECIFIED", safetyRatings: [] } }, chunk([hi], "STOP")],
    { text: "Hi" },
  ],
  [
    "an error in the middle",
    [chunk([hi]), { error: { code: 503, message: "overloaded", status: "UNAVAILABLE" } }],
    { outcome: "error", text: "Hi", error: { code: "UNAVAILABLE", status: 503, message: "overloaded" } },
  ],
  [
    "an error in a proxy's words",
    [chunk([hi]), "event: error\ndata: upstream gone\n\n"],
    { outcome: "error", text: "Hi", error: { message: "upstream gone" } },
  ],
  [
    "the body breaks off after a whole call",
    [chunk([weatherCall])],
    { outcome: "truncated", calls: [broken(null, "get_weather", oslo)] },
  ],
  [
    "the body breaks off inside a chunk",
    [chunk([hi]), 'data: {"candidates":[{"con'],
    { outcome: "truncated", text: "Hi" },
  ],
  ["an end mark that does not belong here", [chunk([hi], "STOP"), "data: [DONE]\n\n"], { text: "Hi" }],
  [
    "a list instead of a stream",
    [JSON.stringify([chunk([hi]), chunk([weatherCall], "STOP")], null, 1)],
    { text: "Hi", calls: [weather] },
  ],
  [
    "a list that is an error",
    [JSON.stringify([{ error: { code: 400, message: "bad key", status: "INVALID_ARGUMENT" } }])],
    { outcome: "error", error: { code: "INVALID_ARGUMENT", status: 400 } },
  ],
];
