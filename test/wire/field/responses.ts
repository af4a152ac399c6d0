/** Responses as gateways, older servers and OpenAI itself write it. */
import type { JsonObject } from "../../../src/base/json.ts";
import { broken, type FieldCase, made, oslo, xy } from "./case.ts";

const usage = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 5 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 18,
};
const counted = { input: 11, output: 7, total: 18, cached: 5, reasoning: 2 };
const created: JsonObject = {
  type: "response.created",
  response: { id: "resp_1", model: "m", status: "in_progress", output: [] },
};

function added(output_index: number, item: JsonObject): JsonObject {
  return { type: "response.output_item.added", output_index, item };
}

function done(output_index: number, item: JsonObject): JsonObject {
  return { type: "response.output_item.done", output_index, item };
}

function completed(output: readonly JsonObject[] = [], more: JsonObject = {}): JsonObject {
  return {
    type: "response.completed",
    response: { id: "resp_1", model: "m", status: "completed", output, usage, ...more },
  };
}

function call(id: string, name: string, args: string, more: JsonObject = {}): JsonObject {
  return {
    type: "function_call",
    id: `fc_${id}`,
    call_id: `call_${id}`,
    name,
    arguments: args,
    status: "completed",
    ...more,
  };
}

function message(text: string, id = "msg_1", more: JsonObject = {}): JsonObject {
  return {
    type: "message",
    id,
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
    ...more,
  };
}

function words(delta: string, more: JsonObject = {}): JsonObject {
  return { type: "response.output_text.delta", output_index: 0, content_index: 0, delta, ...more };
}

function args(delta: string, more: JsonObject = {}): JsonObject {
  return { type: "response.function_call_arguments.delta", output_index: 0, delta, ...more };
}

const weatherItem = call("a", "get_weather", oslo);
const weather = made("call_a", "get_weather", oslo);
const search = made("call_b", "search", xy);
const shell = {
  type: "local_shell_call",
  id: "lsh_1",
  call_id: "call_a",
  action: { type: "exec", command: ["ls"], env: {} },
  status: "completed",
};

const items: readonly FieldCase[] = [
  [
    "an item that is null, or missing (openai-python#3125)",
    [
      created,
      { type: "response.output_item.added", output_index: 0, item: null },
      { type: "response.output_item.done", output_index: 0 },
      done(1, weatherItem),
      completed(),
    ],
    { calls: [weather], usage: counted },
  ],
  [
    "the output of completed is null, or missing (goose#9449)",
    [created, done(0, message("Hi")), { type: "response.completed", response: { id: "resp_1", output: null } }],
    { text: "Hi" },
  ],
  [
    "the output of completed is empty after a whole stream (litellm#32724)",
    [created, added(0, message("")), words("Hi"), completed()],
    { text: "Hi", usage: counted },
  ],
  [
    "completed says nothing at all",
    [created, done(0, weatherItem), { type: "response.completed" }],
    { calls: [weather] },
  ],
  [
    "done items are empty, the words are only in the deltas (agentgateway#2281)",
    [created, added(0, message("")), words("4"), done(0, message("", "msg_1", { content: [] })), completed()],
    { text: "4", usage: counted },
  ],
  [
    "an item told done twice, without an id",
    [
      created,
      done(0, call("a", "get_weather", oslo, { id: "" })),
      done(0, call("a", "get_weather", oslo, { id: "" })),
      completed(),
    ],
    { calls: [weather], usage: counted },
  ],
  [
    "ids that change in every event, and an end that leaves the thoughts out (Copilot)",
    [
      created,
      added(0, { type: "reasoning", id: "r1", summary: [] }),
      { type: "response.reasoning_summary_text.delta", item_id: "r2", output_index: 0, summary_index: 0, delta: "hm" },
      done(0, { type: "reasoning", id: "r3", summary: [{ type: "summary_text", text: "hm" }] }),
      added(1, message("", "m1")),
      words("Hi", { output_index: 1, item_id: "m2" }),
      done(1, message("Hi", "m3")),
      added(2, call("a", "get_weather", "", { id: "f1" })),
      args(oslo, { output_index: 2, item_id: "f2" }),
      done(2, call("a", "get_weather", oslo, { id: "f3" })),
      completed([message("Hi", "m4"), call("a", "get_weather", oslo, { id: "f4" })]),
    ],
    { reasoning: "hm", text: "Hi", calls: [weather], usage: counted },
  ],
  [
    "two messages of one turn, told again at the end",
    [
      created,
      done(0, message("One ", "m1")),
      done(1, message("two.", "m2")),
      completed([message("One ", "m1"), message("two.", "m2")]),
    ],
    { text: "One two.", usage: counted },
  ],
  [
    "the end brings what no event told",
    [created, done(0, message("Hi", "m1")), completed([message("Hi", "m1"), weatherItem, call("b", "search", xy)])],
    { text: "Hi", calls: [weather, search], usage: counted },
  ],
  [
    "pieces before the item is announced",
    [
      created,
      args('{"city":', { item_id: "fc_a" }),
      added(0, call("a", "get_weather", "")),
      args('"Oslo"}', { item_id: "fc_a" }),
      { type: "response.function_call_arguments.done", output_index: 0, item_id: "fc_a", arguments: oslo },
      completed(),
    ],
    { calls: [weather], usage: counted },
  ],
  [
    "the item is done before its pieces come",
    [created, done(0, weatherItem), args(oslo, { item_id: "fc_a" }), completed()],
    { calls: [weather], usage: counted },
  ],
  [
    "whole arguments where the item is announced, and nothing after it",
    [created, added(0, weatherItem), completed()],
    { calls: [weather], usage: counted },
  ],
  [
    "the done item knows better than its pieces",
    [created, added(0, call("a", "get_weather", "")), args('{"city":"Os'), done(0, weatherItem), completed()],
    { calls: [weather], usage: counted },
  ],
  [
    "one output index for two items",
    [
      created,
      added(0, message("")),
      words("Hi"),
      done(0, message("Hi")),
      added(0, call("a", "get_weather", "")),
      args(oslo),
      done(0, weatherItem),
      completed(),
    ],
    { text: "Hi", calls: [weather], usage: counted },
  ],
  [
    "pieces of two calls in turn",
    [
      created,
      added(0, call("a", "get_weather", "")),
      added(1, call("b", "search", "")),
      args('{"q":', { output_index: 1 }),
      args('{"city":'),
      args('"x y"}', { output_index: 1 }),
      args('"Oslo"}'),
      completed(),
    ],
    { calls: [weather, search], usage: counted },
  ],
  [
    "indexes from the end to the start",
    [created, done(2, call("b", "search", xy)), done(0, weatherItem), completed()],
    { calls: [weather, search], usage: counted },
  ],
  [
    "a whole response instead of a stream",
    [
      {
        id: "resp_1",
        object: "response",
        status: "completed",
        model: "m",
        output: [message("Hi"), weatherItem],
        usage,
      },
    ],
    { text: "Hi", calls: [weather], usage: counted },
  ],
  [
    "words as a bare string",
    [created, done(0, { type: "message", role: "assistant", content: "Hi" }), completed()],
    { text: "Hi", usage: counted },
  ],
  [
    "the type stands only in the event's name",
    [
      `event: response.output_item.done\ndata: ${JSON.stringify({ output_index: 0, item: weatherItem })}\n\n`,
      `event: response.completed\ndata: ${JSON.stringify({ response: { id: "r", output: [] } })}\n\n`,
    ],
    { calls: [weather] },
  ],
  [
    "an end mark that does not belong here, and keep-alives",
    [created, ": ping\n\n", { type: "keepalive" }, done(0, weatherItem), completed(), "data: [DONE]\n\n"],
    { calls: [weather], usage: counted },
  ],
];

const again: readonly FieldCase[] = [
  [
    "a call under another call id at the end (vLLM#47916)",
    [
      created,
      done(0, weatherItem),
      done(1, call("b", "search", xy)),
      completed([call("x", "get_weather", oslo), call("y", "search", xy)]),
    ],
    { calls: [weather, search], usage: counted },
  ],
  [
    "the same call made twice is two calls, at the end as well",
    [
      created,
      done(0, weatherItem),
      done(1, call("b", "get_weather", oslo)),
      completed([call("b", "get_weather", oslo), weatherItem]),
    ],
    { calls: [weather, made("call_b", "get_weather", oslo)], usage: counted },
  ],
  [
    "another call at the end is news",
    [created, done(0, weatherItem), completed([call("x", "get_weather", '{"city":"Bergen"}')])],
    { calls: [weather, made("call_x", "get_weather", '{"city":"Bergen"}')], usage: counted },
  ],
  [
    "thoughts whose parts are said to be text (vLLM)",
    [
      created,
      added(0, { type: "reasoning", id: "rs_1", summary: [] }),
      {
        type: "response.content_part.added",
        output_index: 0,
        item_id: "rs_1",
        content_index: 0,
        part: { type: "output_text", text: "" },
      },
      { type: "response.reasoning_text.delta", output_index: 0, item_id: "rs_1", content_index: 0, delta: "hm" },
      {
        type: "response.content_part.done",
        output_index: 0,
        item_id: "rs_1",
        content_index: 0,
        part: { type: "output_text", text: "hm" },
      },
      done(1, message("Hi")),
      completed(),
    ],
    { reasoning: "hm", text: "Hi", usage: counted },
  ],
];

const bare: readonly FieldCase[] = [
  [
    "words, and an end without its envelope (LiteLLM#22102)",
    [
      { type: "response.output_text.delta", delta: "Hi" },
      { type: "response.completed", output: [message("Hi"), weatherItem], usage },
      "data: [DONE]\n\n",
    ],
    { text: "Hi", calls: [weather], usage: counted },
  ],
  [
    "only the whole text, without index or id",
    [
      created,
      { type: "response.output_text.done", text: "Hi" },
      { type: "response.completed", response: { id: "resp_1" } },
    ],
    { text: "Hi" },
  ],
  [
    "parts of thoughts under vLLM's own name",
    [
      created,
      {
        type: "response.reasoning_part.added",
        output_index: 0,
        item_id: "rs_1",
        content_index: 0,
        part: { type: "reasoning_text", text: "" },
      },
      { type: "response.reasoning_text.delta", output_index: 0, item_id: "rs_1", content_index: 0, delta: "h" },
      {
        type: "response.reasoning_part.done",
        output_index: 0,
        item_id: "rs_1",
        content_index: 0,
        part: { type: "reasoning_text", text: "hm" },
      },
      done(1, message("Hi")),
      completed(),
    ],
    { reasoning: "hm", text: "Hi", usage: counted },
  ],
];

const kinds: readonly FieldCase[] = [
  [
    "a wrapper that holds two calls (gpt-5.4)",
    [
      created,
      done(
        0,
        call(
          "p",
          "parallel",
          '{"tool_uses":[{"recipient_name":"functions.get_weather","parameters":{"city":"Oslo"}},{"recipient_name":"search","parameters":{"q":"x y"}}]}',
        ),
      ),
      completed(),
    ],
    { calls: [made("call_p_0", "get_weather", oslo), made("call_p_1", "search", xy)], usage: counted },
  ],
  [
    "a wrapper that was cut is one call, not to be run",
    [created, done(0, call("p", "parallel", '{"tool_uses":[{"recipient_name":"functions.get_weather"')), completed()],
    {
      calls: [broken("call_p", "parallel", '{"tool_uses":[{"recipient_name":"functions.get_weather"')],
      usage: counted,
    },
  ],
  [
    "a custom tool whose text is JSON",
    [
      created,
      done(0, { type: "custom_tool_call", id: "ctc_1", call_id: "call_a", name: "apply_patch", input: '{"a":1}' }),
      completed(),
    ],
    {
      calls: [
        { kind: "custom", id: "call_a", name: "apply_patch", arguments: '{"a":1}', input: '{"a":1}', complete: true },
      ],
      usage: counted,
    },
  ],
  [
    "a custom tool without any text",
    [
      created,
      done(0, { type: "custom_tool_call", id: "ctc_1", call_id: "call_a", name: "apply_patch", input: "" }),
      completed(),
    ],
    {
      calls: [{ kind: "custom", id: "call_a", name: "apply_patch", arguments: "", input: "", complete: true }],
      usage: counted,
    },
  ],
  [
    "a local shell without a call id",
    [created, done(0, { ...shell, call_id: null }), completed()],
    {
      calls: [
        {
          kind: "local_shell",
          id: "lsh_1",
          itemId: "lsh_1",
          name: "local_shell",
          arguments: '{"command":["ls"],"env":{}}',
          input: { command: ["ls"], env: {} },
          complete: true,
        },
      ],
      usage: counted,
    },
  ],
  [
    "a local shell in a turn that failed",
    [
      created,
      done(0, shell),
      {
        type: "response.failed",
        response: { id: "resp_1", status: "failed", error: { code: "server_error", message: "boom" }, output: [] },
      },
    ],
    {
      outcome: "error",
      calls: [
        {
          kind: "local_shell",
          id: "call_a",
          itemId: "lsh_1",
          name: "local_shell",
          arguments: '{"command":["ls"],"env":{}}',
          input: { command: ["ls"], env: {} },
          complete: false,
        },
      ],
      error: { code: "server_error", message: "boom" },
    },
  ],
  [
    "a patch by the native tool",
    [
      created,
      done(0, {
        type: "apply_patch_call",
        id: "apc_1",
        call_id: "call_a",
        status: "completed",
        operation: { type: "delete_file", path: "a.txt" },
      }),
      completed(),
    ],
    {
      calls: [
        {
          kind: "apply_patch",
          id: "call_a",
          itemId: "apc_1",
          name: "apply_patch",
          arguments: '{"type":"delete_file","path":"a.txt"}',
          input: { type: "delete_file", path: "a.txt" },
          complete: true,
        },
      ],
      usage: counted,
    },
  ],
  [
    "a search for tools",
    [
      created,
      done(0, {
        type: "tool_search_call",
        id: "tsc_1",
        call_id: "call_a",
        execution: "client",
        arguments: { query: "mail" },
        status: "completed",
      }),
      completed(),
    ],
    {
      calls: [
        {
          kind: "tool_search",
          id: "call_a",
          itemId: "tsc_1",
          name: "tool_search",
          arguments: '{"query":"mail"}',
          input: { query: "mail" },
          complete: true,
        },
      ],
      usage: counted,
    },
  ],
  [
    "a call in a namespace, made by a program",
    [
      created,
      done(
        0,
        call("a", "get_weather", oslo, { namespace: "mcp__w", caller: { type: "program", caller_id: "call_p" } }),
      ),
      completed(),
    ],
    {
      calls: [
        made("call_a", "get_weather", oslo, { namespace: "mcp__w", caller: { type: "program", caller_id: "call_p" } }),
      ],
      usage: counted,
    },
  ],
  [
    "a program and what it gave go back unchanged",
    [
      created,
      done(0, { type: "program", id: "cm_1", call_id: "call_p", code: "1", fingerprint: "F" }),
      done(1, { type: "program_output", id: "cmo_1", call_id: "call_p", result: "1" }),
      completed(),
    ],
    {
      usage: counted,
      opaque: [
        { type: "program", id: "cm_1", call_id: "call_p", code: "1", fingerprint: "F" },
        { type: "program_output", id: "cmo_1", call_id: "call_p", result: "1" },
      ],
    },
  ],
  [
    "a click on a screen is kept, never run",
    [
      created,
      done(0, {
        type: "computer_call",
        id: "cu_1",
        call_id: "call_a",
        action: { type: "screenshot" },
        pending_safety_checks: [],
        status: "completed",
      }),
      completed(),
    ],
    {
      usage: counted,
      opaque: [
        {
          type: "computer_call",
          id: "cu_1",
          call_id: "call_a",
          action: { type: "screenshot" },
          pending_safety_checks: [],
          status: "completed",
        },
      ],
    },
  ],
  [
    "a web search, its steps and its words",
    [
      created,
      added(0, { type: "web_search_call", id: "ws_1", status: "in_progress" }),
      { type: "response.web_search_call.searching", output_index: 0, item_id: "ws_1" },
      done(0, { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "x" } }),
      done(1, message("Found.")),
      completed(),
    ],
    {
      text: "Found.",
      usage: counted,
      serverCalls: [{ kind: "web_search", id: "ws_1", status: "completed" }],
    },
  ],
  [
    "code that ran at the provider",
    [
      created,
      added(0, { type: "code_interpreter_call", id: "ci_1", status: "in_progress", code: "" }),
      { type: "response.code_interpreter_call_code.delta", output_index: 0, item_id: "ci_1", delta: "1+1" },
      done(0, { type: "code_interpreter_call", id: "ci_1", status: "completed", code: "1+1", outputs: [] }),
      completed(),
    ],
    {
      usage: counted,
      serverCalls: [{ kind: "code_interpreter", id: "ci_1", status: "completed" }],
    },
  ],
  [
    "a picture made at the provider",
    [
      created,
      added(0, { type: "image_generation_call", id: "ig_1", status: "in_progress" }),
      {
        type: "response.image_generation_call.partial_image",
        output_index: 0,
        item_id: "ig_1",
        partial_image_b64: "AAAA",
      },
      done(0, { type: "image_generation_call", id: "ig_1", status: "completed", result: "AAAA" }),
      completed(),
    ],
    {
      usage: counted,
      serverCalls: [{ kind: "image_generation", id: "ig_1", status: "completed" }],
    },
  ],
  [
    "an MCP list and a call at the provider",
    [
      created,
      done(0, { type: "mcp_list_tools", id: "mcpl_1", server_label: "s", tools: [] }),
      added(1, { type: "mcp_call", id: "mcp_1", name: "ask", arguments: "", server_label: "s" }),
      { type: "response.mcp_call_arguments.delta", output_index: 1, item_id: "mcp_1", delta: "{}" },
      done(1, {
        type: "mcp_call",
        id: "mcp_1",
        name: "ask",
        arguments: "{}",
        output: "42",
        server_label: "s",
        status: "completed",
      }),
      completed(),
    ],
    {
      usage: counted,
      serverCalls: [
        { kind: "mcp_list_tools", id: "mcpl_1" },
        { kind: "mcp", id: "mcp_1", name: "ask", status: "completed" },
      ],
    },
  ],
  [
    "an older history packed by the provider",
    [
      created,
      done(0, { type: "compaction", id: "cmp_1", encrypted_content: "E" }),
      done(1, message("Hi")),
      completed(),
    ],
    { text: "Hi", usage: counted, opaque: [{ type: "compaction", id: "cmp_1", encrypted_content: "E" }] },
  ],
  [
    "sealed thoughts that only the end unseals whole",
    [
      created,
      added(0, { type: "reasoning", id: "rs_1", encrypted_content: "E0", summary: [] }),
      done(0, { type: "reasoning", id: "rs_1", encrypted_content: "E1", summary: [] }),
      done(1, message("Hi")),
      completed(),
    ],
    { text: "Hi", usage: counted, opaque: [{ type: "reasoning", id: "rs_1", encrypted_content: "E1" }] },
  ],
  [
    "thoughts under the old event names",
    [
      created,
      { type: "response.reasoning.delta", output_index: 0, item_id: "rs_1", delta: "hm" },
      { type: "response.reasoning_summary.delta", output_index: 1, item_id: "rs_2", delta: "so" },
      done(2, message("Hi")),
      completed(),
    ],
    { reasoning: "hmso", text: "Hi", usage: counted },
  ],
  [
    "a refusal only in its done event",
    [created, { type: "response.refusal.done", output_index: 0, content_index: 0, refusal: "No." }, completed()],
    { refusal: "No.", usage: counted },
  ],
];

const endings: readonly FieldCase[] = [
  [
    "too long, with a whole call",
    [
      created,
      done(0, weatherItem),
      {
        type: "response.incomplete",
        response: {
          id: "resp_1",
          status: "incomplete",
          incomplete_details: { reason: "max_output_tokens" },
          output: [],
          usage,
        },
      },
    ],
    { outcome: "incomplete", finish: "length", calls: [broken("call_a", "get_weather", oslo)], usage: counted },
  ],
  [
    "too long, in the middle of a call",
    [
      created,
      added(0, call("a", "get_weather", "")),
      args('{"city":"Os'),
      {
        type: "response.incomplete",
        response: {
          id: "resp_1",
          incomplete_details: { reason: "max_output_tokens" },
          output: [call("a", "get_weather", '{"city":"Os', { status: "incomplete" })],
        },
      },
    ],
    { outcome: "incomplete", finish: "length", calls: [broken("call_a", "get_weather", '{"city":"Os')] },
  ],
  [
    "filtered",
    [
      created,
      words("Su"),
      { type: "response.incomplete", response: { id: "resp_1", incomplete_details: { reason: "content_filter" } } },
    ],
    { outcome: "incomplete", finish: "content_filter", text: "Su" },
  ],
  [
    "steered",
    [
      created,
      words("Su"),
      { type: "response.incomplete", response: { id: "resp_1", incomplete_details: { reason: "steered" } } },
    ],
    { outcome: "incomplete", finish: "pause", text: "Su" },
  ],
  [
    "an incomplete call in a turn that says completed",
    [created, done(0, call("a", "get_weather", oslo, { status: "incomplete" })), completed()],
    { calls: [broken("call_a", "get_weather", oslo)], usage: counted },
  ],
  [
    "failed at once",
    [
      {
        type: "response.failed",
        response: { id: "resp_1", status: "failed", error: { code: "context_length_exceeded", message: "too long" } },
      },
    ],
    { outcome: "error", error: { code: "context_length_exceeded", message: "too long" } },
  ],
  [
    "failed with words before it",
    [
      created,
      words("par"),
      {
        type: "response.failed",
        response: { id: "resp_1", error: { code: "rate_limit_exceeded", message: "Please try again in 1.5s." } },
      },
    ],
    { outcome: "error", text: "par", error: { code: "rate_limit_exceeded", retryAfterMs: 1500 } },
  ],
  [
    "cancelled",
    [created, done(0, weatherItem), { type: "response.cancelled", response: { id: "resp_1", status: "cancelled" } }],
    { outcome: "error", calls: [broken("call_a", "get_weather", oslo)], error: { code: "cancelled" } },
  ],
  [
    "an error with a null code",
    [created, { type: "error", code: null, message: "boom", param: null }],
    { outcome: "error", error: { message: "boom" } },
  ],
  [
    "a nested error",
    [created, { type: "error", status: 400, error: { type: "invalid_request_error", code: "bad", message: "boom" } }],
    { outcome: "error", error: { code: "bad", type: "invalid_request_error", status: 400, message: "boom" } },
  ],
  [
    "an error body without a type",
    [{ error: { message: "no such model", type: "invalid_request_error", code: "model_not_found" } }],
    { outcome: "error", error: { code: "model_not_found", message: "no such model" } },
  ],
  [
    "the body breaks off after a whole call",
    [created, done(0, weatherItem)],
    { outcome: "truncated", calls: [broken("call_a", "get_weather", oslo)] },
  ],
  [
    "the body breaks off among the words",
    [created, added(0, message("")), words("par")],
    { outcome: "truncated", text: "par" },
  ],
  [
    "the body breaks off inside an event",
    [created, words("par"), 'data: {"type":"response.output_te'],
    { outcome: "truncated", text: "par" },
  ],
  [
    "completed in name, failed in its body",
    [
      created,
      {
        type: "response.completed",
        response: { id: "resp_1", status: "failed", error: { code: "server_error", message: "boom" } },
      },
    ],
    { outcome: "error", error: { code: "server_error" } },
  ],
  [
    "usage in Chat's words",
    [created, done(0, message("Hi")), completed([], { usage: { prompt_tokens: 3, completion_tokens: 2 } })],
    { text: "Hi", usage: { input: 3, output: 2, total: 5 } },
  ],
  [
    "usage with what was written to the cache",
    [
      created,
      done(0, message("Hi")),
      completed([], {
        usage: { input_tokens: 9, input_tokens_details: { cached_tokens: 4, cache_write_tokens: 3 }, output_tokens: 2 },
      }),
    ],
    { text: "Hi", usage: { input: 9, output: 2, total: 11, cached: 4, cacheWritten: 3 } },
  ],
];

export const cases: readonly FieldCase[] = [...items, ...again, ...bare, ...kinds, ...endings];
