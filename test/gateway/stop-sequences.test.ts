/** Stop sequences of a client, where the model's API has none. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { text } from "../../src/base/content.ts";
import type { ModelEvent } from "../../src/spec/model.ts";
import { collect } from "../../src/wire/answer.ts";
import { stopAt } from "../../src/gateway/stop-sequences.ts";
import { ask, gateway, question, scripted } from "./gateways.ts";

async function* streamed(pieces: readonly string[]): AsyncGenerator<ModelEvent> {
  const item = { type: "message", role: "assistant" } as const;
  yield { type: "answer.started" };
  yield { type: "item.started", index: 0, item: { ...item, content: [] } };
  for (const delta of pieces) yield { type: "item.delta", index: 0, field: "text", delta };
  yield { type: "item.done", index: 0, item: { ...item, content: [text(pieces.join(""))] } };
  yield { type: "answer.ended", answer: { outcome: "ok", finish: "stop", usage: { input: 1, output: 1 } } };
}

test("however the text is cut, what is shown is the text before the first sequence", async () => {
  const letters = fc.array(fc.constantFrom("a", "b", "ab", "END", "E", "\n\n"), { maxLength: 12 });
  const sequences = fc.uniqueArray(fc.constantFrom("ab", "aab", "END", "\n\n", "bbb"), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(letters, sequences, async (pieces, stops) => {
      const whole = pieces.join("");
      const ends = stops.map((stop) => whole.indexOf(stop)).filter((at) => at >= 0);
      const expected = ends.length === 0 ? whole : whole.slice(0, Math.min(...ends));
      const events: ModelEvent[] = [];
      for await (const event of stopAt(streamed(pieces), stops)) events.push(event);
      const shown = events.map((event) => (event.type === "item.delta" ? event.delta : "")).join("");
      const answer = collect(events);
      const [item] = answer.items;
      const said = item?.type === "message" ? item.content.map((part) => (part.type === "text" ? part.text : "")) : [];
      expect([shown, said.join(""), answer.outcome]).toEqual([expected, expected, "ok"]);
      expect(answer.extra?.fields["stop_reason"]).toBe(ends.length === 0 ? undefined : "stop_sequence");
    }),
  );
});

const stops = { chat: "stop", messages: "stop_sequences" } as const;

test.each([
  ["chat", true],
  ["chat", false],
  ["messages", true],
  ["messages", false],
] as const)(
  "a client of %s (streaming: %s) on a Responses model gets an answer that ends there",
  async (wire, stream) => {
    const model = await scripted([{ text: "one two END three" }]);
    const url = await gateway({
      routes: [{ match: "*", targets: [{ baseUrl: model.baseUrl, wire: "responses", model: "x" }] }],
    });
    const { answer, text: raw } = await ask(url, wire, { ...question(wire, stream), [stops[wire]]: ["END"] });
    expect(answer).toMatchObject({ outcome: "ok", items: [{ content: [{ text: "one two " }] }] });
    if (wire === "messages") expect(raw).toMatch(/"stop_reason":"stop_sequence","stop_sequence":"END"/);
  },
);

test("a call that began before the sequence was complete is not seen", async () => {
  async function* interleaved(): AsyncGenerator<ModelEvent> {
    const call = { type: "call", id: "c", name: "rm", kind: "function", arguments: "", complete: false } as const;
    yield { type: "item.started", index: 0, item: { type: "message", role: "assistant", content: [] } };
    yield { type: "item.started", index: 1, item: call };
    yield { type: "item.delta", index: 1, field: "arguments", delta: "{" };
    yield { type: "item.delta", index: 0, field: "text", delta: "a STOP b" };
    throw new Error("not read any further");
  }
  const events: ModelEvent[] = [];
  for await (const event of stopAt(interleaved(), ["STOP"])) events.push(event);
  expect(collect(events)).toMatchObject({ outcome: "ok", finish: "stop", items: [{ content: [{ text: "a " }] }] });
});
