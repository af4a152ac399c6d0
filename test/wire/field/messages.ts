/** Messages as Anthropic and those who copy it write it. */
import type { JsonObject } from "../../../src/base/json.ts";
import { broken, type FieldCase, made, oslo, xy } from "./case.ts";

const usage = { input_tokens: 6, cache_creation_input_tokens: 0, cache_read_input_tokens: 5, output_tokens: 1 };
const counted = { input: 11, output: 7, total: 18, cached: 5 };

function started(more: JsonObject = {}): JsonObject {
  return {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "m",
      content: [],
      stop_reason: null,
      usage,
      ...more,
    },
  };
}

function start(index: number, content_block: JsonObject): JsonObject {
  return { type: "content_block_start", index, content_block };
}

function delta(index: number, fields: JsonObject): JsonObject {
  return { type: "content_block_delta", index, delta: fields };
}

function stop(index: number): JsonObject {
  return { type: "content_block_stop", index };
}

function json(index: number, partial_json: string): JsonObject {
  return delta(index, { type: "input_json_delta", partial_json });
}

function ended(stop_reason: string | null, more: JsonObject = {}): JsonObject {
  return { type: "message_delta", delta: { stop_reason, stop_sequence: null, ...more }, usage: { output_tokens: 7 } };
}

function use(id: string, name: string, more: JsonObject = {}): JsonObject {
  return { type: "tool_use", id, name, input: {}, ...more };
}

function called(index: number, id: string, name: string, ...args: readonly string[]): readonly JsonObject[] {
  return [start(index, use(id, name)), ...args.map((piece) => json(index, piece)), stop(index)];
}

function said(index: number, text: string): readonly JsonObject[] {
  return [start(index, { type: "text", text: "" }), delta(index, { type: "text_delta", text }), stop(index)];
}

function thought(index: number, text: string, signature: string): readonly JsonObject[] {
  return [
    start(index, { type: "thinking", thinking: "", signature: "" }),
    delta(index, { type: "thinking_delta", thinking: text }),
    delta(index, { type: "signature_delta", signature }),
    stop(index),
  ];
}

const stopped: JsonObject = { type: "message_stop" };
const end = [ended("tool_use"), stopped];
const turn = [ended("end_turn"), stopped];
const weather = made("toolu_a", "get_weather", oslo);
const search = made("toolu_b", "search", xy);

const blocks: readonly FieldCase[] = [
  [
    "a first piece of input that is empty",
    [started(), ...called(0, "toolu_a", "get_weather", "", '{"city":', '"Oslo"}'), ...end],
    { calls: [weather], usage: counted },
  ],
  [
    "a call without any input",
    [started(), ...called(0, "toolu_a", "list_dir"), ...end],
    { calls: [made("toolu_a", "list_dir", "")], usage: counted },
  ],
  [
    "a call whose only piece is empty",
    [started(), ...called(0, "toolu_a", "list_dir", ""), ...end],
    { calls: [made("toolu_a", "list_dir", "")], usage: counted },
  ],
  [
    "the input stands in the start, and no piece follows",
    [started(), start(0, use("toolu_a", "get_weather", { input: { city: "Oslo" } })), stop(0), ...end],
    { calls: [weather], usage: counted },
  ],
  [
    "the input stands in the start, and again in the pieces",
    [started(), start(0, use("toolu_a", "get_weather", { input: { city: "Oslo" } })), json(0, oslo), stop(0), ...end],
    { calls: [weather], usage: counted },
  ],
  [
    "the input is text that holds JSON",
    [started(), start(0, use("toolu_a", "get_weather", { input: oslo })), stop(0), ...end],
    { calls: [weather], usage: counted },
  ],
  [
    "two calls in turn",
    [
      started(),
      start(0, use("toolu_a", "get_weather")),
      start(1, use("toolu_b", "search")),
      json(1, '{"q":'),
      json(0, oslo),
      json(1, '"x y"}'),
      stop(1),
      stop(0),
      ...end,
    ],
    { calls: [weather, search], usage: counted },
  ],
  [
    "indexes from one on, with a gap",
    [started(), ...called(1, "toolu_a", "get_weather", oslo), ...called(4, "toolu_b", "search", xy), ...end],
    { calls: [weather, search], usage: counted },
  ],
  [
    "no index anywhere",
    [started(), ...said(0, "Hi"), ...called(1, "toolu_a", "get_weather", oslo), ...end].map(
      ({ index: _index, ...event }) => event as JsonObject,
    ),
    { text: "Hi", calls: [weather], usage: counted },
  ],
  [
    "no content_block_stop",
    [started(), start(0, use("toolu_a", "get_weather")), json(0, oslo), ...end],
    { calls: [weather], usage: counted },
  ],
  [
    "pieces after the stop",
    [started(), start(0, use("toolu_a", "get_weather")), stop(0), json(0, oslo), ...end],
    { calls: [weather], usage: counted },
  ],
  [
    "a call without a name",
    [started(), start(0, { type: "tool_use", id: "toolu_a", input: {} }), json(0, oslo), ...end],
    { calls: [broken("toolu_a", "", oslo)], usage: counted },
  ],
  [
    "a call made by code that runs at the provider",
    [
      started(),
      start(0, use("toolu_a", "get_weather", { caller: { type: "code_execution_20250825", tool_id: "srvtoolu_1" } })),
      json(0, oslo),
      stop(0),
      ...end,
    ],
    {
      calls: [
        made("toolu_a", "get_weather", oslo, { caller: { type: "code_execution_20250825", tool_id: "srvtoolu_1" } }),
      ],
      usage: counted,
    },
  ],
  [
    "a call made by the model itself says so and means nothing",
    [
      started(),
      start(0, use("toolu_a", "get_weather", { caller: { type: "direct" } })),
      json(0, oslo),
      stop(0),
      ...end,
    ],
    { calls: [weather], usage: counted },
  ],
  [
    "a call of a toolset keeps its name",
    [started(), start(0, use("toolu_a", "get_weather", { toolset_name: "browser" })), json(0, oslo), stop(0), ...end],
    { calls: [made("toolu_a", "get_weather", oslo, { extra: { toolset_name: "browser" } })], usage: counted },
  ],
  [
    "words in the start of a block",
    [started(), start(0, { type: "text", text: "H" }), delta(0, { type: "text_delta", text: "i" }), stop(0), ...turn],
    { text: "Hi", usage: counted },
  ],
  [
    "two texts around a call",
    [started(), ...said(0, "One "), ...called(1, "toolu_a", "get_weather", oslo), ...said(2, "two."), ...end],
    { text: "One two.", calls: [weather], usage: counted },
  ],
  [
    "a turn that goes on begins with its content",
    [
      started({
        content: [{ type: "text", text: "Hi" }, use("toolu_a", "get_weather", { input: { city: "Oslo" } })],
        stop_reason: "tool_use",
      }),
      stopped,
    ],
    { text: "Hi", calls: [weather], usage: { input: 11, output: 1, total: 12, cached: 5 } },
  ],
  [
    "message_start twice",
    [started(), started({ usage: { input_tokens: 99, output_tokens: 1 } }), ...said(0, "Hi"), ...turn],
    { text: "Hi", usage: counted },
  ],
  [
    "a whole message instead of a stream",
    [
      {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "m",
        content: [{ type: "text", text: "Hi" }, use("toolu_a", "list_dir")],
        stop_reason: "tool_use",
        usage: { ...usage, output_tokens: 7 },
      },
    ],
    { text: "Hi", calls: [made("toolu_a", "list_dir", "{}")], usage: counted },
  ],
  ["no message_start", [...said(0, "Hi"), ...turn], { text: "Hi", usage: { input: 0, output: 7, total: 7 } }],
  [
    "pings, comments and events nobody knows",
    [
      started(),
      { type: "ping" },
      ": keep-alive\n\n",
      { type: "message_hint", x: 1 },
      ...said(0, "Hi"),
      { type: "ping" },
      ...turn,
    ],
    { text: "Hi", usage: counted },
  ],
];

const kinds: readonly FieldCase[] = [
  [
    "signed thoughts before a call",
    [started(), ...thought(0, "hm", "S1"), ...called(1, "toolu_a", "get_weather", oslo), ...end],
    {
      reasoning: "hm",
      calls: [weather],
      usage: counted,
      opaque: [{ type: "thinking", signature: "S1" }],
      blockOrder: ["thinking", "tool_use"],
    },
  ],
  [
    "a signature in two pieces",
    [
      started(),
      start(0, { type: "thinking", thinking: "" }),
      delta(0, { type: "thinking_delta", thinking: "hm" }),
      delta(0, { type: "signature_delta", signature: "S" }),
      delta(0, { type: "signature_delta", signature: "1" }),
      stop(0),
      ...said(1, "Hi"),
      ...turn,
    ],
    {
      reasoning: "hm",
      text: "Hi",
      usage: counted,
      opaque: [{ type: "thinking", signature: "S1" }],
      blockOrder: ["thinking", "text"],
    },
  ],
  [
    "thoughts that are only signed, not shown",
    [
      started(),
      start(0, { type: "thinking", thinking: "", signature: "" }),
      delta(0, { type: "signature_delta", signature: "S1" }),
      stop(0),
      ...said(1, "Hi"),
      ...turn,
    ],
    { text: "Hi", usage: counted, opaque: [{ type: "thinking", signature: "S1" }], blockOrder: ["thinking", "text"] },
  ],
  [
    "thoughts without a signature",
    [
      started(),
      start(0, { type: "thinking", thinking: "" }),
      delta(0, { type: "thinking_delta", thinking: "hm" }),
      stop(0),
      ...said(1, "Hi"),
      ...turn,
    ],
    { reasoning: "hm", text: "Hi", usage: counted },
  ],
  [
    "redacted thoughts",
    [started(), start(0, { type: "redacted_thinking", data: "R1" }), stop(0), ...said(1, "Hi"), ...turn],
    { text: "Hi", usage: counted, opaque: [{ type: "redacted_thinking", data: "R1" }] },
  ],
  [
    "a search at the provider, with its result and a citation",
    [
      started(),
      start(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
      json(0, ""),
      json(0, '{"query":"x"}'),
      stop(0),
      start(1, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
      stop(1),
      start(2, { type: "text", text: "", citations: [] }),
      delta(2, { type: "citations_delta", citation: { type: "web_search_result_location", url: "u" } }),
      delta(2, { type: "text_delta", text: "Found." }),
      stop(2),
      ...turn,
    ],
    {
      text: "Found.",
      usage: counted,
      serverCalls: [{ kind: "web_search", id: "srvtoolu_1", name: "web_search" }],
      opaque: [{ type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }],
    },
  ],
  [
    "an MCP call at the provider",
    [
      started(),
      start(0, { type: "mcp_tool_use", id: "mcptoolu_1", name: "ask", server_name: "s", input: {} }),
      json(0, "{}"),
      stop(0),
      start(1, { type: "mcp_tool_result", tool_use_id: "mcptoolu_1", is_error: false, content: [] }),
      stop(1),
      ...said(2, "Hi"),
      ...turn,
    ],
    {
      text: "Hi",
      usage: counted,
      serverCalls: [{ kind: "mcp_tool_use", id: "mcptoolu_1", name: "ask" }],
      opaque: [{ type: "mcp_tool_result", tool_use_id: "mcptoolu_1", is_error: false, content: [] }],
    },
  ],
  [
    "a call here beside one there",
    [
      started(),
      start(0, { type: "server_tool_use", id: "srvtoolu_1", name: "code_execution", input: {} }),
      json(0, '{"code":"1"}'),
      stop(0),
      ...called(1, "toolu_a", "get_weather", oslo),
      ...end,
    ],
    {
      calls: [weather],
      usage: counted,
      serverCalls: [{ kind: "code_execution", id: "srvtoolu_1", name: "code_execution" }],
    },
  ],
  [
    "another model took over",
    [
      started(),
      ...thought(0, "a", "S1"),
      start(1, { type: "fallback", from: { model: "x" }, to: { model: "y" } }),
      stop(1),
      ...called(2, "toolu_a", "get_weather", oslo),
      ...end,
    ],
    {
      reasoning: "a",
      calls: [weather],
      usage: counted,
      opaque: [
        { type: "thinking", signature: "S1" },
        { type: "fallback", from: { model: "x" }, to: { model: "y" } },
      ],
      blockOrder: ["thinking", "tool_use"],
    },
  ],
  [
    "a file the provider's container has",
    [
      started(),
      start(0, { type: "container_upload", file_id: "f" }),
      stop(0),
      ...said(1, "Hi"),
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn", container: { id: "c" } },
        usage: { output_tokens: 7 },
      },
      stopped,
    ],
    { text: "Hi", usage: counted, opaque: [{ type: "container_upload", file_id: "f" }] },
  ],
  [
    "a packed history",
    [
      started(),
      start(0, { type: "compaction", content: null }),
      delta(0, { type: "compaction_delta", content: "So far." }),
      stop(0),
      ended("compaction"),
      stopped,
    ],
    { finish: "pause", usage: counted },
  ],
];

const endings: readonly FieldCase[] = [
  [
    "end_turn with a call",
    [started(), ...called(0, "toolu_a", "get_weather", oslo), ...turn],
    { calls: [weather], usage: counted },
  ],
  ["tool_use without a call", [started(), ...said(0, "Hi"), ...end], { text: "Hi", usage: counted }],
  [
    "no message_stop",
    [started(), ...called(0, "toolu_a", "get_weather", oslo), ended("tool_use")],
    { calls: [weather], usage: counted },
  ],
  [
    "no message_delta",
    [started(), ...called(0, "toolu_a", "get_weather", oslo), stopped],
    { calls: [weather], usage: { input: 11, output: 1, total: 12, cached: 5 } },
  ],
  [
    "a stop sequence",
    [started(), ...said(0, "Hi"), ended("stop_sequence", { stop_sequence: "END" }), stopped],
    { text: "Hi", usage: counted },
  ],
  [
    "paused among its own tools",
    [
      started(),
      start(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
      json(0, '{"query":"x"}'),
      stop(0),
      ended("pause_turn"),
      stopped,
    ],
    { finish: "pause", usage: counted, serverCalls: [{ kind: "web_search", id: "srvtoolu_1", name: "web_search" }] },
  ],
  [
    "refused, with the reason",
    [
      started(),
      ...said(0, "I "),
      ended("refusal", { stop_details: { type: "refusal", category: "bio", explanation: "Not that." } }),
      stopped,
    ],
    { finish: "refusal", text: "I ", refusal: "Not that.", usage: counted },
  ],
  [
    "refused after a call: it does not run",
    [started(), ...called(0, "toolu_a", "get_weather", oslo), ended("refusal"), stopped],
    { finish: "refusal", calls: [broken("toolu_a", "get_weather", oslo)], usage: counted },
  ],
  [
    "too long, with a whole call",
    [started(), ...called(0, "toolu_a", "get_weather", oslo), ended("max_tokens"), stopped],
    { outcome: "incomplete", finish: "length", calls: [broken("toolu_a", "get_weather", oslo)], usage: counted },
  ],
  [
    "the window is full",
    [started(), ...said(0, "Hi"), ended("model_context_window_exceeded"), stopped],
    { outcome: "incomplete", finish: "length", text: "Hi", usage: counted },
  ],
  [
    "input that is no JSON in a turn that ended well",
    [started(), ...called(0, "toolu_a", "get_weather", '{"city":'), ...end],
    { calls: [broken("toolu_a", "get_weather", '{"city":')], usage: counted },
  ],
  [
    "the body breaks off inside the input",
    [started(), start(0, use("toolu_a", "get_weather")), json(0, '{"ci')],
    { outcome: "truncated", calls: [broken("toolu_a", "get_weather", '{"ci')] },
  ],
  [
    "the body breaks off before the input",
    [started(), start(0, use("toolu_a", "get_weather"))],
    { outcome: "truncated", calls: [broken("toolu_a", "get_weather", "")] },
  ],
  [
    "the body breaks off after a whole call",
    [started(), ...called(0, "toolu_a", "get_weather", oslo)],
    { outcome: "truncated", calls: [broken("toolu_a", "get_weather", oslo)] },
  ],
  [
    "an error after a whole call",
    [
      started(),
      ...called(0, "toolu_a", "get_weather", oslo),
      `event: error\ndata: ${JSON.stringify({ type: "error", error: { type: "api_error", message: "boom" } })}\n\n`,
    ],
    {
      outcome: "error",
      calls: [broken("toolu_a", "get_weather", oslo)],
      error: { code: "api_error", message: "boom" },
    },
  ],
  [
    "an error instead of a stream",
    [{ type: "error", error: { type: "invalid_request_error", message: "prompt is too long" }, request_id: "r" }],
    { outcome: "error", error: { code: "invalid_request_error", message: "prompt is too long" } },
  ],
  [
    "an error in a proxy's words",
    [started(), "event: error\ndata: upstream gone\n\n"],
    { outcome: "error", error: { message: "upstream gone" } },
  ],
  [
    "an error in Chat's shape",
    [started(), { error: { message: "boom", type: "server_error" } }],
    { outcome: "error", error: { code: "server_error", message: "boom" } },
  ],
  [
    "counters that come late replace the early ones",
    [
      started(),
      ...said(0, "Hi"),
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn" },
        usage: {
          input_tokens: 20,
          cache_read_input_tokens: 10,
          cache_creation_input_tokens: 4,
          output_tokens: 9,
          output_tokens_details: { thinking_tokens: 3 },
        },
      },
      stopped,
    ],
    { text: "Hi", usage: { input: 34, output: 9, total: 43, cached: 10, cacheWritten: 4, reasoning: 3 } },
  ],
];

export const cases: readonly FieldCase[] = [...blocks, ...kinds, ...endings];
