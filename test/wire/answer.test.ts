import * as fc from "fast-check";
import { expect, test } from "vitest";
import { text } from "../../src/base/content.ts";
import { answerToEvents, collect } from "../../src/wire/answer.ts";
import { brokenAnswer, endedAnswer } from "./arbitrary.ts";

test("an answer and its events are the same thing", () => {
  fc.assert(
    fc.property(fc.oneof(endedAnswer, brokenAnswer), (answer) => {
      expect(collect(answerToEvents(answer))).toEqual(answer);
    }),
  );
});

test("an answer that was broken off holds what had come, and none of its calls may run", () => {
  const answer = collect([
    { type: "answer.started", id: "x" },
    { type: "item.started", index: 1, item: { type: "message", role: "assistant", content: [] } },
    { type: "item.delta", index: 1, field: "text", delta: "Hel" },
    { type: "item.delta", index: 1, field: "text", delta: "lo" },
    {
      type: "item.started",
      index: 2,
      item: { type: "call", kind: "function", id: "c", name: "t", arguments: "", complete: false },
    },
    { type: "item.delta", index: 2, field: "arguments", delta: "{}" },
    { type: "item.started", index: 0, item: { type: "reasoning" } },
    { type: "item.delta", index: 0, field: "summary", delta: "b", part: 1 },
    { type: "item.delta", index: 0, field: "summary", delta: "a", part: 0 },
  ]);
  expect(answer).toEqual({
    id: "x",
    outcome: "truncated",
    items: [
      { type: "reasoning", summary: ["a", "b"] },
      { type: "message", role: "assistant", content: [text("Hello")] },
      { type: "call", kind: "function", id: "c", name: "t", arguments: "{}", complete: false },
    ],
  });
});
