import { expect, test } from "vitest";
import { text } from "../../src/base/content.ts";
import { wrapTextCalls } from "../../src/dialect/index.ts";
import type { Finish, Item, ModelEvent, Outcome } from "../../src/spec/model.ts";
import { hermes } from "./reading.ts";

const call = hermes('{"name":"a","arguments":{"n":1}}');

function* answer(words: readonly string[], outcome: Outcome = "ok", finish: Finish = "stop"): Generator<ModelEvent> {
  yield { type: "answer.started", id: "r1" };
  yield { type: "item.started", index: 0, item: { type: "reasoning" } };
  yield { type: "item.done", index: 0, item: { type: "reasoning", text: "hm" } };
  yield { type: "item.started", index: 1, item: { type: "message", role: "assistant", id: "m1", content: [] } };
  for (const delta of words) yield { type: "item.delta", index: 1, field: "text", delta };
  yield {
    type: "item.done",
    index: 1,
    item: { type: "message", role: "assistant", id: "m1", content: [text(words.join(""))] },
  };
  const native: Item = { type: "call", kind: "function", id: "toolu_1", name: "b", arguments: "{}", complete: true };
  yield { type: "item.started", index: 2, item: native };
  yield { type: "item.done", index: 2, item: native };
  yield { type: "answer.ended", answer: { outcome, finish } };
}

async function all(events: Iterable<ModelEvent>, history: readonly Item[] = []): Promise<readonly ModelEvent[]> {
  const out: ModelEvent[] = [];
  for await (const event of wrapTextCalls(events, { dialect: "hermes", tools: ["a", "b"], history })) out.push(event);
  return out;
}

const done = (events: readonly ModelEvent[]) =>
  events.flatMap((event) => (event.type === "item.done" ? [event.item] : []));

test("native calls and calls in the text come out as items of one answer", async () => {
  const events = await all(answer(["Sure. ", call.slice(0, 9), call.slice(9), " ok"]));
  expect(done(events)).toMatchObject([
    { type: "reasoning", text: "hm" },
    { type: "message", id: "m1", content: [{ text: "Sure. " }] },
    { type: "call", id: "toolu_1", name: "b" },
    { type: "message", id: "m1", content: [{ text: " ok" }] },
    { type: "call", name: "a", arguments: '{"n":1}', complete: true },
  ]);
  const places = events.flatMap((event) => (event.type === "item.started" ? [event.index] : []));
  expect(new Set(places).size).toBe(places.length);
  expect(events.filter(({ type }) => type === "answer.ended")).toEqual([
    { type: "answer.ended", answer: { outcome: "ok", finish: "tool_calls" } },
  ]);
});

test("an answer that was cut runs none of its text calls", async () => {
  for (const [outcome, finish] of [
    ["incomplete", "length"],
    ["truncated", "stop"],
    ["error", "error"],
  ] as const) {
    const calls = done(await all(answer([call], outcome, finish))).filter(
      (item) => item.type === "call" && item.name === "a",
    );
    expect(calls).toMatchObject([{ complete: false }]);
  }
});

test("ids go on from the conversation, so that none comes twice", async () => {
  const first = done(await all(answer([call])));
  const second = done(await all(answer([call]), first));
  const ids = [...first, ...second].flatMap((item) => (item.type === "call" && item.name === "a" ? [item.id] : []));
  expect(new Set(ids).size).toBe(2);
});

test("without the conversation, ids name the answer they stand in", async () => {
  const ids: string[] = [];
  for (const id of ["chatcmpl-1", "chatcmpl-2"]) {
    const events = [...answer([call])].map((event) => (event.type === "answer.started" ? { ...event, id } : event));
    for await (const event of wrapTextCalls(events, { dialect: "hermes" })) {
      if (event.type === "item.done" && event.item.type === "call" && event.item.name === "a") ids.push(event.item.id);
    }
  }
  expect(ids).toEqual(["call_chatcmpl-1_0", "call_chatcmpl-2_0"]);
});

test("a message that came whole is read too, and one without calls is left as it is", async () => {
  const whole: ModelEvent[] = [
    { type: "item.started", index: 0, item: { type: "message", role: "assistant", content: [] } },
    {
      type: "item.done",
      index: 0,
      item: { type: "message", role: "assistant", phase: "final_answer", content: [text(`x ${call}`)] },
    },
    { type: "answer.ended", answer: { outcome: "ok", finish: "stop" } },
  ];
  expect(done(await all(whole))).toMatchObject([{ type: "message" }, { type: "call", name: "a" }]);
  expect(done(await all(answer(["Just words."]))).find(({ type }) => type === "message")).toEqual({
    type: "message",
    role: "assistant",
    id: "m1",
    content: [text("Just words.")],
  });
});
