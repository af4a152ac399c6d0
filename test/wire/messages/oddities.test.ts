import { describe, expect, test } from "vitest";
import { messages } from "../../../src/wire/messages/index.ts";
import { reportAnswer } from "../../../src/wire/report.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";
import { called, delta, ended, json, read, said, sse, start, started, stop, stopped, toolUse } from "./events.ts";

const args = '{"city":"Oslo"}';
const whole = { id: "toolu_a", name: "get_weather", arguments: args, input: { city: "Oslo" }, complete: true };
const usage = { input: 11, output: 7, total: 18, cached: 5 };

describe("a call is found whatever the stream leaves out", () => {
  test("no message_stop: the stop reason has said it", () => {
    expect(read(started, ...called(0, args), ended("tool_use"))).toMatchObject({
      outcome: "ok",
      finish: "tool_calls",
      usage,
      calls: [whole],
    });
  });

  test("no message_delta: message_stop has said it", () => {
    expect(read(started, ...called(0, args), stopped)).toMatchObject({
      outcome: "ok",
      finish: "tool_calls",
      calls: [whole],
    });
  });

  test("no message_start, no content_block_stop, no ping", () => {
    expect(read(start(0, toolUse()), json(0, args), ended("tool_use"), stopped)).toMatchObject({ calls: [whole] });
  });

  test("input given in content_block_start", () => {
    expect(
      read(started, start(0, toolUse("toolu_a", { input: { city: "Oslo" } })), stop(0), ended("tool_use"), stopped),
    ).toMatchObject({ calls: [whole] });
  });

  test("no input at all means an empty one", () => {
    const report = read(started, start(0, toolUse()), json(0, ""), stop(0), ended("tool_use"), stopped);
    expect(report).toMatchObject({ calls: [{ arguments: "", input: {}, complete: true }] });
  });

  test("stop reasons that say otherwise", () => {
    expect(read(started, ...called(0, args), ended("end_turn"), stopped)).toMatchObject({
      finish: "tool_calls",
      calls: [whole],
    });
    expect(read(started, ...said(0, "hi"), ended("tool_use"), stopped)).toMatchObject({ finish: "stop", calls: [] });
  });

  test("no id, or the same one twice", () => {
    const report = read(
      started,
      ...called(0, args),
      ...called(1, "{}"),
      ...called(2, "{}", ""),
      ended("tool_use"),
      stopped,
    );
    const ids = (report["calls"] as readonly { id: string }[]).map(({ id }) => id);
    expect(ids[0]).toBe("toolu_a");
    expect(new Set(ids).size).toBe(3);
    expect(ids.every((id) => /^[a-zA-Z0-9_-]+$/.test(id))).toBe(true);
  });

  test("the same index twice, interleaved blocks, indexes out of order", () => {
    expect(read(started, ...said(0, "a"), ...called(0, args), ended("tool_use"), stopped)).toMatchObject({
      text: "a",
      calls: [whole],
    });
    const mixed = [
      start(3, toolUse("toolu_b")),
      start(1, toolUse()),
      json(3, '{"q"'),
      json(1, args),
      json(3, ":1}"),
      stop(1),
      stop(3),
    ];
    expect(read(started, ...mixed, ended("tool_use"), stopped)["calls"]).toMatchObject([
      whole,
      { id: "toolu_b", input: { q: 1 } },
    ]);
  });

  test("deltas of a block that never started", () => {
    expect(read(started, delta(0, { type: "text_delta", text: "hi" }), ended("end_turn"), stopped)).toMatchObject({
      text: "hi",
    });
    expect(read(started, json(0, args), ended("tool_use"), stopped)).toMatchObject({
      calls: [{ name: "", complete: false }],
    });
  });
});

describe("a call of a turn that did not end well is never complete", () => {
  test("the body just ends", () => {
    const report = read(started, ...called(0, args));
    expect(report).toMatchObject({
      outcome: "truncated",
      finish: null,
      usage: null,
      calls: [{ ...whole, complete: false }],
    });
    expect(read(started, start(0, toolUse()), json(0, '{"ci'))).toMatchObject({
      outcome: "truncated",
      calls: [{ arguments: '{"ci', input: null, complete: false }],
    });
  });

  test.each(["max_tokens", "model_context_window_exceeded"])("%s", (reason) => {
    expect(read(started, ...called(0, args), ended(reason), stopped)).toMatchObject({
      outcome: "incomplete",
      finish: "length",
      usage,
      calls: [{ complete: false }],
    });
  });

  test("an error in the middle", () => {
    const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    expect(read(started, ...called(0, args), error)).toMatchObject({
      outcome: "error",
      finish: null,
      usage: null,
      error: { code: "overloaded_error", message: "Overloaded" },
      calls: [{ complete: false }],
    });
  });

  test("input that is not JSON, in a turn that ended well", () => {
    expect(read(started, ...called(0, '{"city": Oslo}'), ended("tool_use"), stopped)).toMatchObject({
      outcome: "ok",
      finish: "tool_calls",
      calls: [{ arguments: '{"city": Oslo}', input: null, complete: false }],
    });
  });

  test("a refusal, with its reason", () => {
    const details = { type: "refusal", category: "bio", explanation: "Not this." };
    const report = read(
      started,
      ...said(0, "I "),
      ...called(1, args),
      ended("refusal", { stop_details: details }),
      stopped,
    );
    expect(report).toMatchObject({
      outcome: "ok",
      finish: "refusal",
      text: "I ",
      refusal: "Not this.",
      calls: [{ complete: false }],
    });
    expect(read(started, ended("refusal"), stopped)).toMatchObject({ finish: "refusal", refusal: null });
  });
});

describe("thoughts, server calls and the rest", () => {
  test("thinking with its signature, redacted thinking, in their order", () => {
    const events = [
      start(0, { type: "thinking", thinking: "", signature: "" }),
      delta(0, { type: "thinking_delta", thinking: "hm" }),
      delta(0, { type: "signature_delta", signature: "S1" }),
      stop(0),
      start(1, { type: "redacted_thinking", data: "R" }),
      stop(1),
      ...called(2, args),
    ];
    const answer = decodeRecording(messages, [sse([started, ...events, ended("tool_use"), stopped])]);
    expect(reportAnswer(answer)).toMatchObject({
      reasoning: "hm",
      opaque: [
        { type: "thinking", signature: "S1" },
        { type: "redacted_thinking", data: "R" },
      ],
    });
    expect(messages.encodeAnswer(answer)["content"]).toEqual([
      { type: "thinking", thinking: "hm", signature: "S1" },
      { type: "redacted_thinking", data: "R" },
      { type: "tool_use", id: "toolu_a", name: "get_weather", input: { city: "Oslo" } },
    ]);
  });

  test("a tool that ran at the provider, and its result, go back unchanged", () => {
    const result = {
      type: "web_search_tool_result",
      tool_use_id: "srvtoolu_1",
      content: [{ type: "web_search_result", url: "u", title: "t", encrypted_content: "E" }],
    };
    const events = [
      start(0, { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }),
      json(0, '{"query":'),
      json(0, '"x"}'),
      stop(0),
      start(1, result),
      stop(1),
      ...said(2, "Found."),
    ];
    const answer = decodeRecording(messages, [sse([started, ...events, ended("end_turn"), stopped])]);
    expect(reportAnswer(answer)).toMatchObject({
      calls: [],
      text: "Found.",
      finish: "stop",
      serverCalls: [{ id: "srvtoolu_1", name: "web_search" }],
      opaque: [result],
    });
    const { body } = messages.encodeRequest({ model: "m", tools: [], input: answer.items });
    expect(body["messages"]).toEqual([
      {
        role: "assistant",
        content: [
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
          result,
          { type: "text", text: "Found." },
        ],
      },
    ]);
  });

  test("citations stay with their text", () => {
    const citation = { type: "char_location", cited_text: "c", document_index: 0 };
    const events = [
      start(0, { type: "text", text: "" }),
      delta(0, { type: "text_delta", text: "See" }),
      delta(0, { type: "citations_delta", citation }),
      stop(0),
    ];
    const answer = decodeRecording(messages, [sse([started, ...events, ended("end_turn"), stopped])]);
    expect(messages.encodeAnswer(answer)["content"]).toEqual([{ type: "text", text: "See", citations: [citation] }]);
  });

  test("compaction pauses, and comes back", () => {
    const events = [
      start(0, { type: "compaction", content: null, encrypted_content: null }),
      delta(0, { type: "compaction_delta", content: "sum", encrypted_content: "C" }),
      stop(0),
    ];
    const answer = decodeRecording(messages, [sse([started, ...events, ended("compaction"), stopped])]);
    expect(answer).toMatchObject({
      outcome: "ok",
      finish: "pause",
      items: [{ type: "compaction", text: "sum", opaque: { value: "C" } }],
    });
    const { body } = messages.encodeRequest({ model: "m", tools: [], input: answer.items });
    expect(body["messages"]).toEqual([
      { role: "assistant", content: [{ type: "compaction", content: "sum", encrypted_content: "C" }] },
    ]);
    expect(messages.encodeAnswer(answer)["stop_reason"]).toBe("compaction");
  });

  test("an empty text is nothing", () => {
    const answer = decodeRecording(messages, [
      sse([started, start(0, { type: "text", text: "" }), stop(0), ...said(1, "a"), ended("end_turn"), stopped]),
    ]);
    expect(answer.items).toEqual([{ type: "message", role: "assistant", content: [{ type: "text", text: "a" }] }]);
  });

  test("counters of message_delta replace those of message_start", () => {
    const counted = {
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage: {
        input_tokens: 10,
        cache_read_input_tokens: 2,
        cache_creation_input_tokens: 3,
        output_tokens: 9,
        output_tokens_details: { thinking_tokens: 4 },
      },
    };
    expect(read(started, counted, stopped)["usage"]).toEqual({
      input: 15,
      output: 9,
      total: 24,
      cached: 2,
      cacheWritten: 3,
      reasoning: 4,
    });
    const sparse = {
      type: "message_delta",
      delta: { stop_reason: "end_turn" },
      usage: { output_tokens: 9, input_tokens: null },
    };
    expect(read(started, sparse, stopped)["usage"]).toEqual({ input: 11, output: 9, total: 20, cached: 5 });
  });

  test("a stop sequence is told", () => {
    const answer = decodeRecording(messages, [
      sse([started, ...said(0, "a"), ended("stop_sequence", { stop_sequence: "END" }), stopped]),
    ]);
    expect(answer).toMatchObject({
      finish: "stop",
      extra: { fields: { stop_reason: "stop_sequence", stop_sequence: "END" } },
    });
    expect(messages.encodeAnswer(answer)).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
  });

  test("unknown events and blocks are kept, broken frames skipped", () => {
    const decoder = messages.createDecoder();
    expect(decoder.push({ data: '{"type":"surprise"}' })).toEqual([
      { type: "other", wire: "messages", raw: { type: "surprise" } },
    ]);
    expect(decoder.push({ data: "{" })).toEqual([]);
    const block = { type: "brand_new", x: 1 };
    expect(read(started, start(0, block), stop(0), ended("end_turn"), stopped)["opaque"]).toEqual([block]);
  });

  test("a proxy's words in an error event", () => {
    const body = `${sse([started])}event: error\ndata: upstream gone\n\n`;
    expect(reportAnswer(decodeRecording(messages, [body]))).toMatchObject({
      outcome: "error",
      error: { message: "upstream gone" },
    });
  });

  test("input in pieces that are objects", () => {
    const piece = delta(0, { type: "input_json_delta", partial_json: { city: "Oslo" } });
    expect(read(started, start(0, toolUse()), piece, stop(0), ended("tool_use"), stopped)).toMatchObject({
      calls: [whole],
    });
  });

  test("an error instead of a stream", () => {
    const body = { type: "error", error: { type: "invalid_request_error", message: "no" }, request_id: "r" };
    expect(reportAnswer(decodeRecording(messages, [JSON.stringify(body)]))).toMatchObject({
      outcome: "error",
      error: { code: "invalid_request_error", message: "no" },
    });
  });

  test("a whole body", () => {
    const body = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "m",
      content: [{ type: "text", text: "a" }, toolUse("toolu_a", { input: { city: "Oslo" } }), toolUse("toolu_b")],
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 2 },
    };
    expect(reportAnswer(messages.decodeAnswer(body))).toMatchObject({
      outcome: "ok",
      text: "a",
      calls: [whole, { id: "toolu_b", arguments: "{}", input: {} }],
      usage: { input: 1, output: 2, total: 3 },
    });
  });
});
