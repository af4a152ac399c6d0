import { describe, expect, test } from "vitest";
import { collect } from "../../../src/wire/answer.ts";
import { reportAnswer } from "../../../src/wire/report.ts";
import { responses } from "../../../src/wire/responses/index.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";
import { added, call, completed, created, done, message, read, sse } from "./events.ts";

const whole = {
  id: "call_a",
  name: "get_weather",
  arguments: '{"city":"Oslo"}',
  input: { city: "Oslo" },
  complete: true,
};
const delta = (type: string, text: string, more: object = {}) => ({
  type: `response.${type}.delta`,
  item_id: "fc_a",
  output_index: 0,
  delta: text,
  ...more,
});

describe("a call is found whatever the stream leaves out", () => {
  test("only in completed.output", () => {
    expect(read(created, completed([call("a")]))).toMatchObject({
      outcome: "ok",
      finish: "tool_calls",
      calls: [whole],
    });
  });

  test("never announced", () => {
    expect(read(created, done(0, call("a")), completed())).toMatchObject({ calls: [whole] });
  });

  test("no created, no item ids, no output index", () => {
    const bare = call("a", undefined, { id: undefined });
    expect(read({ type: "response.output_item.done", item: bare }, completed([bare]))).toMatchObject({
      calls: [whole],
    });
  });

  test("arguments only in the deltas", () => {
    const empty = call("a", "");
    const events = [delta("function_call_arguments", '{"city"'), delta("function_call_arguments", ':"Oslo"}')];
    expect(read(added(0, empty), ...events, done(0, empty), completed())).toMatchObject({ calls: [whole] });
    expect(read(added(0, empty), ...events, completed())).toMatchObject({ calls: [whole] });
  });

  test("arguments only in arguments.done, with the name", () => {
    const event = {
      type: "response.function_call_arguments.done",
      item_id: "fc_a",
      output_index: 0,
      name: "get_weather",
      arguments: '{"city":"Oslo"}',
    };
    expect(read(event, completed())).toMatchObject({
      calls: [{ ...whole, id: expect.stringMatching(/^call_[0-9a-f]{24}$/) }],
    });
  });

  test("arguments as an object", () => {
    expect(read(created, done(0, call("a", { city: "Oslo" })), completed())).toMatchObject({ calls: [whole] });
    expect(read(created, completed([call("a", { city: "Oslo" })]))).toMatchObject({ calls: [whole] });
  });

  test("item ids that change from event to event", () => {
    const events = [
      added(0, call("x1", "", { call_id: "call_a" })),
      delta("function_call_arguments", '{"city":"Oslo"}', { item_id: "fc_x2" }),
      done(0, call("x3", '{"city":"Oslo"}', { call_id: "call_a" })),
    ];
    expect(read(created, ...events, completed([call("x4", undefined, { call_id: "call_a" })]))["calls"]).toMatchObject([
      whole,
    ]);
  });

  test("every item with output_index 0", () => {
    const items = [call("a"), call("b", '{"city":"Rome"}')];
    const events = items.flatMap((item) => [added(0, { ...item, arguments: "" }), done(0, item)]);
    expect(read(created, ...events, completed(items))["calls"]).toMatchObject([whole, { id: "call_b" }]);
  });

  test("output indexes out of order and with gaps", () => {
    const report = read(created, done(5, call("b", '{"city":"Rome"}')), done(2, call("a")), completed());
    expect(report["calls"]).toMatchObject([whole, { id: "call_b" }]);
  });

  test("interleaved parallel calls", () => {
    const events = [
      added(0, call("a", "")),
      added(1, call("b", "")),
      delta("function_call_arguments", '{"city":', {}),
      delta("function_call_arguments", '{"city":"Ro', { item_id: "fc_b", output_index: 1 }),
      delta("function_call_arguments", '"Oslo"}'),
      delta("function_call_arguments", 'me"}', { item_id: "fc_b", output_index: 1 }),
    ];
    expect(read(created, ...events, completed())["calls"]).toMatchObject([
      whole,
      { id: "call_b", input: { city: "Rome" }, complete: true },
    ]);
  });

  test("the same call id twice, or none", () => {
    const twice = read(
      created,
      done(0, call("a")),
      done(1, call("b", '{"city":"Rome"}', { call_id: "call_a" })),
      completed(),
    );
    expect(twice["calls"]).toMatchObject([
      whole,
      { id: expect.stringMatching(/^call_[0-9a-f]{24}$/), input: { city: "Rome" } },
    ]);
    const none = read(created, done(0, call("a", undefined, { call_id: null })), completed());
    expect(none["calls"]).toMatchObject([{ id: expect.stringMatching(/^call_/), complete: true }]);
  });
});

describe("a call of a turn that did not end well is never complete", () => {
  test("the body just ends", () => {
    expect(read(created, done(0, call("a")))).toMatchObject({
      outcome: "truncated",
      finish: null,
      usage: null,
      calls: [{ ...whole, complete: false }],
    });
    const cut = read(created, added(0, call("a", "")), delta("function_call_arguments", '{"ci'));
    expect(cut).toMatchObject({ outcome: "truncated", calls: [{ arguments: '{"ci', input: null, complete: false }] });
  });

  test("the server stopped early", () => {
    const response = {
      id: "resp_1",
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [call("a", '{"ci', { status: "incomplete" })],
    };
    const report = read(created, added(0, call("a", "")), delta("function_call_arguments", '{"ci'), {
      type: "response.incomplete",
      response,
    });
    expect(report).toMatchObject({
      outcome: "incomplete",
      finish: "length",
      calls: [{ arguments: '{"ci', complete: false }],
    });
  });

  test("a filter stopped it", () => {
    const response = { status: "incomplete", incomplete_details: { reason: "content_filter" }, output: [] };
    expect(read(created, { type: "response.incomplete", response })).toMatchObject({
      outcome: "incomplete",
      finish: "content_filter",
      calls: [],
    });
  });

  test("it failed, with the reason and the wait", () => {
    const error = { code: "rate_limit_exceeded", message: "Please try again in 1.5s." };
    const report = read(created, done(0, call("a")), {
      type: "response.failed",
      response: { status: "failed", error, output: [] },
    });
    expect(report).toMatchObject({
      outcome: "error",
      finish: null,
      error: { ...error, retryAfterMs: 1500 },
      calls: [{ complete: false }],
    });
  });

  test("completed in name only", () => {
    const report = read(
      created,
      done(0, call("a")),
      completed([call("a")], { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }),
    );
    expect(report).toMatchObject({ outcome: "incomplete", calls: [{ complete: false }] });
  });

  test("arguments that are no JSON, in a turn that ended well", () => {
    expect(read(created, done(0, call("a", '{"city":')), completed())).toMatchObject({
      outcome: "ok",
      finish: "tool_calls",
      calls: [{ input: null, complete: false }],
    });
  });
});

describe("errors inside the stream", () => {
  test.each([
    ["flat", { type: "error", code: "server_error", message: "boom", param: null }],
    ["nested", { type: "error", error: { type: "server_error", code: "server_error", message: "boom" } }],
    ["nested, type only", { type: "error", error: { type: "server_error", message: "boom" } }],
    ["without a type", { error: { code: "server_error", message: "boom" } }],
  ])("%s", (_name, event) => {
    const text = `data: ${JSON.stringify(created)}\n\ndata: ${JSON.stringify(event)}\n\n`;
    expect(reportAnswer(decodeRecording(responses, [text]))).toMatchObject({
      outcome: "error",
      finish: null,
      usage: null,
      error: { code: "server_error", message: "boom" },
    });
  });

  test("a proxy's words in an error event", () => {
    const body = `event: response.created\ndata: ${JSON.stringify(created)}\n\nevent: error\ndata: upstream gone\n\n`;
    expect(reportAnswer(decodeRecording(responses, [body]))).toMatchObject({
      outcome: "error",
      error: { message: "upstream gone" },
    });
  });

  test("an error instead of a stream", () => {
    const body = {
      error: { message: "no", type: "invalid_request_error", code: "context_length_exceeded", param: null },
    };
    expect(reportAnswer(decodeRecording(responses, [JSON.stringify(body)]))).toMatchObject({
      outcome: "error",
      error: { code: "context_length_exceeded", message: "no" },
    });
  });
});

describe("text, thoughts and refusals", () => {
  const text = (value: string, more: object = {}) => ({
    type: "response.output_text.delta",
    item_id: "msg_1",
    output_index: 0,
    content_index: 0,
    delta: value,
    ...more,
  });

  test("text that was never announced or ended", () => {
    expect(read(created, text("He"), text("llo"), completed())).toMatchObject({ text: "Hello", finish: "stop" });
    expect(read(created, text("He"), text("llo"))).toMatchObject({ text: "Hello", outcome: "truncated" });
  });

  test("text only in the done item, or only at the end", () => {
    expect(read(created, done(0, message("Hello")), completed())).toMatchObject({ text: "Hello" });
    expect(read(created, completed([message("Hello")]))).toMatchObject({ text: "Hello" });
  });

  test("what deltas did not say comes as one more delta", () => {
    const decoder = responses.createDecoder();
    const frames = [created, text("He"), done(0, message("Hello")), completed([message("Hello")])];
    const events = frames.flatMap((event) => decoder.push({ data: JSON.stringify(event) }));
    const deltas = events.flatMap((event) => (event.type === "item.delta" ? [event.delta] : []));
    expect(deltas).toEqual(["He", "llo"]);
    expect(events.filter((event) => event.type === "item.done")).toHaveLength(1);
    expect(collect(events).items).toMatchObject([{ type: "message", content: [{ text: "Hello" }] }]);
  });

  test("annotations and phase are kept", () => {
    const noted = message("See", {
      phase: "final_answer",
      content: [{ type: "output_text", text: "See", annotations: [{ type: "url_citation", url: "u" }] }],
    });
    const answer = decodeRecording(responses, [sse([created, done(0, noted), completed()])]);
    expect(answer.items).toMatchObject([
      { phase: "final_answer", extra: { fields: { parts: { 0: { annotations: [{ url: "u" }] } } } } },
    ]);
    expect(responses.encodeAnswer(answer)["output"]).toMatchObject([
      { phase: "final_answer", content: [{ annotations: [{ url: "u" }] }] },
    ]);
  });

  test("a summary in parts, with the encrypted state", () => {
    const item = {
      type: "reasoning",
      id: "rs_1",
      summary: [
        { type: "summary_text", text: "one " },
        { type: "summary_text", text: "two" },
      ],
      encrypted_content: "ENC",
    };
    const events = ["one ", "two"].flatMap((value, at) => [
      {
        type: "response.reasoning_summary_part.added",
        item_id: "rs_1",
        output_index: 0,
        summary_index: at,
        part: { type: "summary_text", text: "" },
      },
      {
        type: "response.reasoning_summary_text.delta",
        item_id: "rs_1",
        output_index: 0,
        summary_index: at,
        delta: value,
      },
    ]);
    const report = read(
      created,
      added(0, { type: "reasoning", id: "rs_1", summary: [] }),
      ...events,
      done(0, item),
      completed(),
    );
    expect(report).toMatchObject({
      reasoning: "one two",
      opaque: [{ type: "reasoning", id: "rs_1", encrypted_content: "ENC" }],
    });
  });

  test("a refusal is not text", () => {
    const part = { type: "response.refusal.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: "No." };
    expect(read(created, part, completed())).toMatchObject({ text: "", refusal: "No.", finish: "stop" });
  });
});

describe("every kind of call", () => {
  const one = (item: object) => (read(created, done(0, item), completed([item]))["calls"] as readonly object[])[0];

  test("custom, with its text in deltas", () => {
    const item = { type: "custom_tool_call", id: "ctc_1", call_id: "call_a", name: "apply_patch", input: "" };
    const events = [
      added(0, item),
      { type: "response.custom_tool_call_input.delta", item_id: "ctc_1", output_index: 0, delta: "*** Begin" },
      { type: "response.custom_tool_call_input.done", item_id: "ctc_1", output_index: 0, input: "*** Begin Patch" },
    ];
    const report = read(created, ...events, done(0, { ...item, input: "*** Begin Patch" }), completed());
    expect(report["calls"]).toMatchObject([
      { kind: "custom", name: "apply_patch", arguments: "*** Begin Patch", input: "*** Begin Patch", complete: true },
    ]);
    expect(read(created, ...events)["calls"]).toMatchObject([{ complete: false }]);
  });

  test("in a namespace, with its caller and what else it carries", () => {
    const caller = { type: "program", caller_id: "prog_1" };
    expect(one(call("a", undefined, { namespace: "mcp__docs", caller, async: true }))).toMatchObject({
      namespace: "mcp__docs",
      caller,
      extra: { async: true },
    });
  });

  test("shell, its commands streamed", () => {
    const action = { commands: [], timeout_ms: 1000, max_output_length: null };
    const item = {
      type: "shell_call",
      id: "sh_1",
      call_id: "call_a",
      action,
      environment: { type: "local" },
      status: "in_progress",
    };
    const at = { item_id: "sh_1", output_index: 0, command_index: 0 };
    const events = [
      { type: "response.shell_call_command.added", ...at, command: "" },
      { type: "response.shell_call_command.delta", ...at, delta: "ls" },
      { type: "response.shell_call_command.done", ...at, command: "ls -l" },
    ];
    const report = read(created, added(0, item), ...events, completed());
    expect(report["calls"]).toMatchObject([
      {
        kind: "shell",
        name: "shell",
        itemId: "sh_1",
        input: { commands: ["ls -l"], timeout_ms: 1000 },
        complete: true,
      },
    ]);
    expect(one({ ...item, action: { ...action, commands: ["pwd"] } })).toMatchObject({
      arguments: '{"commands":["pwd"],"timeout_ms":1000}',
    });
  });

  test("a shell in the provider's container ran there", () => {
    const item = {
      type: "shell_call",
      id: "sh_1",
      call_id: "call_a",
      action: { commands: ["ls"] },
      environment: { type: "container_reference", container_id: "c" },
      status: "completed",
    };
    expect(read(created, done(0, item), completed([item]))).toMatchObject({
      calls: [],
      finish: "stop",
      serverCalls: [{ kind: "shell", id: "sh_1" }],
    });
  });

  test("apply_patch", () => {
    const operation = { type: "update_file", path: "a.txt", diff: "@@\n-a\n+b\n" };
    expect(
      one({ type: "apply_patch_call", id: "apc_1", call_id: "call_a", operation, status: "completed" }),
    ).toMatchObject({ kind: "apply_patch", name: "apply_patch", input: operation, complete: true });
  });

  test("tool_search by the client, and by the server", () => {
    const item = {
      type: "tool_search_call",
      id: "tsc_1",
      call_id: "call_a",
      execution: "client",
      arguments: { query: "docs" },
      status: "completed",
    };
    expect(one(item)).toMatchObject({
      kind: "tool_search",
      name: "tool_search",
      input: { query: "docs" },
      complete: true,
    });
    const there = { ...item, execution: "server", call_id: null };
    expect(read(created, done(0, there), completed([there]))).toMatchObject({
      calls: [],
      serverCalls: [{ kind: "tool_search" }],
    });
  });

  test.each([
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
  ])("%s ran at the provider", (type) => {
    const item = { type, id: "x_1", status: "completed" };
    const progress = { type: `response.${type}.in_progress`, item_id: "x_1", output_index: 0 };
    const report = read(
      created,
      added(0, { ...item, status: "in_progress" }),
      progress,
      done(0, item),
      completed([item]),
    );
    expect(report).toMatchObject({
      calls: [],
      finish: "stop",
      serverCalls: [{ kind: type.replace(/_call$/, ""), id: "x_1", status: "completed" }],
    });
  });
});

describe("what has no neutral name is kept", () => {
  test("unknown items and programs go back unchanged", () => {
    const items = [
      { type: "program", id: "prog_1", call_id: "call_p", code: "x()", fingerprint: "f" },
      { type: "brand_new_item", id: "bn_1", secret: { a: 1 } },
    ];
    const answer = decodeRecording(responses, [
      sse([created, done(0, items[0]!), done(1, items[1]!), completed(items)]),
    ]);
    expect(reportAnswer(answer)["opaque"]).toEqual(items);
    expect(responses.encodeRequest({ model: "m", tools: [], input: answer.items }).body["input"]).toEqual(items);
  });

  test("compaction", () => {
    const item = { type: "compaction", id: "cmp_1", encrypted_content: "C" };
    const answer = decodeRecording(responses, [sse([created, done(0, item), completed([item])])]);
    expect(reportAnswer(answer)["opaque"]).toEqual([item]);
    expect(responses.encodeRequest({ model: "m", tools: [], input: answer.items }).body["input"]).toEqual([item]);
  });

  test("unknown events are events too, broken ones are skipped", () => {
    const decoder = responses.createDecoder();
    expect(decoder.push({ data: '{"type":"response.surprise","x":1}' })).toEqual([
      { type: "other", wire: "responses", raw: { type: "response.surprise", x: 1 } },
    ]);
    expect(decoder.push({ data: "[DONE]" })).toEqual([]);
    expect(decoder.push({ data: '{"type":' })).toEqual([]);
    expect(decoder.push({ data: "null" })).toEqual([]);
  });

  test("nothing after the end counts", () => {
    const report = reportAnswer(
      decodeRecording(responses, [
        `${sse([created, done(0, call("a")), completed()])}data: [DONE]\n\n${sse([{ type: "error", message: "late" }])}`,
      ]),
    );
    expect(report).toMatchObject({ outcome: "ok", error: null, calls: [whole] });
  });

  test("usage may be missing, null or without details", () => {
    expect(read(created, completed([], { usage: null }))["usage"]).toBeNull();
    expect(read(created, completed([], { usage: { input_tokens: 3, output_tokens: 4 } }))["usage"]).toEqual({
      input: 3,
      output: 4,
      total: 7,
    });
  });
});
