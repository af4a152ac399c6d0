import { expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import type { CallItem, Item, MessageItem, ModelEvent } from "../../../src/spec/model.ts";
import { messages } from "../../../src/wire/messages/index.ts";
import { encodeSse } from "../../../src/wire/sse.ts";
import { decodeRecording } from "../../../src/wire/stream.ts";

const message = (words: string): Item => ({ type: "message", role: "assistant", content: [text(words)] });
const empty: MessageItem = { type: "message", role: "assistant", content: [] };
const call: CallItem = { type: "call", kind: "function", id: "toolu_a", name: "f", arguments: "{}", complete: true };
const types = (frames: readonly { event?: string }[]) => frames.map((frame) => frame.event);

test("text goes out as it comes; a call waits for the end of the answer", () => {
  const encoder = messages.createEncoder();
  const push = (event: ModelEvent) => types(encoder.push(event));
  expect(push({ type: "answer.started", id: "msg_1", model: "m" })).toEqual(["message_start"]);
  expect(push({ type: "item.started", index: 0, item: empty })).toEqual([]);
  expect(push({ type: "item.delta", index: 0, field: "text", delta: "He" })).toEqual([
    "content_block_start",
    "content_block_delta",
  ]);
  expect(push({ type: "item.delta", index: 0, field: "text", delta: "y" })).toEqual(["content_block_delta"]);
  expect(push({ type: "item.done", index: 0, item: message("Hey") })).toEqual(["content_block_stop"]);
  expect(push({ type: "item.started", index: 1, item: { ...call, arguments: "" } })).toEqual([]);
  expect(push({ type: "item.delta", index: 1, field: "arguments", delta: "{}" })).toEqual([]);
  expect(push({ type: "item.done", index: 1, item: call })).toEqual([]);
  expect(push({ type: "answer.ended", answer: { outcome: "ok", finish: "tool_calls" } })).toEqual([
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
});

test("items that grow at the same time come out one after the other, nothing lost", () => {
  const events: readonly ModelEvent[] = [
    { type: "answer.started" },
    { type: "item.started", index: 1, item: empty },
    { type: "item.delta", index: 1, field: "text", delta: "on" },
    { type: "item.started", index: 0, item: { type: "reasoning" } },
    { type: "item.delta", index: 0, field: "reasoning", delta: "hm" },
    { type: "item.delta", index: 1, field: "text", delta: "e" },
    { type: "item.started", index: 2, item: empty },
    { type: "item.delta", index: 2, field: "text", delta: "two" },
    { type: "item.done", index: 2, item: message("two") },
    { type: "item.done", index: 0, item: { type: "reasoning", text: "hm" } },
    { type: "item.done", index: 1, item: message("one") },
    { type: "answer.ended", answer: { outcome: "ok", finish: "stop" } },
  ];
  const encoder = messages.createEncoder();
  const answer = decodeRecording(messages, [encodeSse(events.flatMap((event) => [...encoder.push(event)]))]);
  expect(answer.items).toEqual([message("one"), { type: "reasoning", text: "hm" }, message("two")]);
});

test("a summary in parts is one thought", () => {
  const encoder = messages.createEncoder();
  const events: readonly ModelEvent[] = [
    { type: "item.started", index: 0, item: { type: "reasoning" } },
    { type: "item.delta", index: 0, field: "summary", delta: "one", part: 0 },
    { type: "item.delta", index: 0, field: "summary", delta: "two", part: 1 },
    { type: "item.done", index: 0, item: { type: "reasoning", summary: ["one", "two"] } },
    { type: "answer.ended", answer: { outcome: "ok", finish: "stop" } },
  ];
  const answer = decodeRecording(messages, [encodeSse(events.flatMap((event) => [...encoder.push(event)]))]);
  expect(answer.items).toEqual([{ type: "reasoning", text: "one\n\ntwo" }]);
});

test("a refusal of another wire is the reason it stopped", () => {
  const answer = messages.encodeAnswer({
    items: [{ ...empty, refusal: "No." }],
    outcome: "ok",
    finish: "stop",
  });
  expect(answer).toMatchObject({ content: [], stop_reason: "refusal", stop_details: { explanation: "No." } });
});

test("an error of another wire gets the name this API has for it", () => {
  const encode = (code: string) =>
    messages.encodeAnswer({ items: [], outcome: "error", error: { message: "m", code } });
  expect(encode("rate_limit_exceeded")).toEqual({ type: "error", error: { type: "rate_limit_error", message: "m" } });
  expect(encode("server_is_overloaded")).toMatchObject({ error: { type: "overloaded_error" } });
  expect(encode("context_length_exceeded")).toMatchObject({ error: { type: "invalid_request_error" } });
  expect(encode("anything")).toMatchObject({ error: { type: "api_error" } });
});
