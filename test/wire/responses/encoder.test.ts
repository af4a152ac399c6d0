import { expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import type { CallItem, Item, ModelEvent } from "../../../src/spec/model.ts";
import { responses } from "../../../src/wire/responses/index.ts";

const message = (words: string): Item => ({ type: "message", role: "assistant", content: [text(words)] });
const empty: Item = { type: "message", role: "assistant", content: [] };
const call: CallItem = { type: "call", kind: "function", id: "call_a", name: "f", arguments: "{}", complete: true };
const types = (frames: readonly { event?: string }[]) => frames.map((frame) => frame.event?.replace("response.", ""));

test("text goes out as it comes; a call waits for the end of the answer, and so does what follows it", () => {
  const encoder = responses.createEncoder();
  const push = (event: ModelEvent) => types(encoder.push(event));
  expect(push({ type: "answer.started", id: "resp_1", model: "m" })).toEqual(["created", "in_progress"]);
  expect(push({ type: "item.started", index: 0, item: empty })).toEqual(["output_item.added"]);
  expect(push({ type: "item.delta", index: 0, field: "text", delta: "He" })).toEqual([
    "content_part.added",
    "output_text.delta",
  ]);
  expect(push({ type: "item.delta", index: 0, field: "text", delta: "y" })).toEqual(["output_text.delta"]);
  expect(push({ type: "item.done", index: 0, item: message("Hey") })).toEqual([
    "output_text.done",
    "content_part.done",
    "output_item.done",
  ]);
  expect(push({ type: "item.started", index: 1, item: { ...call, arguments: "", complete: false } })).toEqual([]);
  expect(push({ type: "item.delta", index: 1, field: "arguments", delta: "{}" })).toEqual([]);
  expect(push({ type: "item.started", index: 2, item: empty })).toEqual([]);
  expect(push({ type: "item.done", index: 2, item: message("after") })).toEqual([]);
  expect(push({ type: "item.done", index: 1, item: call })).toEqual([]);
  const last = encoder.push({ type: "answer.ended", answer: { outcome: "ok", finish: "tool_calls" } });
  expect(types(last).at(-1)).toBe("completed");
  const { output } = JSON.parse(last.at(-1)!.data).response;
  expect(output.map((item: { type: string }) => item.type)).toEqual(["message", "function_call", "message"]);
});

test("an item that only its end tells of is written whole", () => {
  const encoder = responses.createEncoder();
  expect(types(encoder.push({ type: "item.done", index: 0, item: message("Hey") }))).toEqual([
    "created",
    "in_progress",
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
  ]);
});

test("every event that names an item names it by the same id and place", () => {
  const encoder = responses.createEncoder();
  const events: readonly ModelEvent[] = [
    { type: "item.started", index: 4, item: empty },
    { type: "item.started", index: 7, item: { type: "reasoning" } },
    { type: "item.delta", index: 7, field: "summary", delta: "s", part: 0 },
    { type: "item.delta", index: 4, field: "text", delta: "t" },
    { type: "item.done", index: 7, item: { type: "reasoning", id: "elsewhere", summary: ["s"] } },
    {
      type: "item.done",
      index: 4,
      item: { type: "message", id: "chatcmpl-1", role: "assistant", content: [text("t")] },
    },
  ];
  const frames = events.flatMap((event) => [...encoder.push(event)]).map((frame) => JSON.parse(frame.data));
  const places = new Map<number, Set<string>>();
  for (const frame of frames.filter((one) => one.output_index !== undefined)) {
    const ids = places.get(frame.output_index) ?? new Set();
    places.set(frame.output_index, ids.add(frame.item_id ?? frame.item.id));
  }
  expect([...places.keys()]).toEqual([0, 1]);
  expect([...places.values()].map((ids) => [...ids])).toEqual([
    [expect.stringMatching(/^msg_/)],
    [expect.stringMatching(/^rs_/)],
  ]);
});

test("foreign server calls are left out, and nothing is invented for them", () => {
  const item: Item = { type: "server_call", name: "web_search", wire: "messages", raw: { type: "server_tool_use" } };
  expect(responses.encodeAnswer({ items: [item], outcome: "ok" })["output"]).toEqual([]);
});
