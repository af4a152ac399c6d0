/** A server that speaks another wire than it is asked in: said at once, with what to look at. */
import { expect, test } from "vitest";
import { createReader } from "../../src/model/http.ts";
import type { Answer } from "../../src/spec/model.ts";
import { answerToEvents, codecs, encodeSse, type WireName } from "../../src/wire/index.ts";

const wires = Object.keys(codecs) as WireName[];
const answer: Answer = {
  outcome: "ok",
  finish: "stop",
  items: [{ type: "message", role: "assistant", content: [{ type: "text", text: "hi" }] }],
  usage: { input: 1, output: 1 },
};

function read(spoken: WireName, asked: WireName) {
  const encoder = codecs[spoken].createEncoder({ model: "m" });
  const body = encodeSse(answerToEvents(answer).flatMap((event) => encoder.push(event)));
  const reader = createReader(
    codecs[asked],
    {},
    { url: new URL("http://host/v1"), headers: {}, redact: (text) => text },
  );
  const last = [...reader.push(new TextEncoder().encode(body)), ...reader.end()].at(-1);
  return last?.type === "answer.ended" ? last.answer : undefined;
}

test.each(wires.flatMap((spoken) => wires.map((asked) => [spoken, asked] as const)))(
  "the server speaks %s and is asked in %s",
  (spoken, asked) => {
    const ended = read(spoken, asked);
    if (spoken === asked) return expect(ended).toMatchObject({ outcome: "ok" });
    expect(ended?.error).toMatchObject({ type: "bad_request", message: expect.stringContaining(`in '${asked}'`) });
  },
);

test("an answer that is cut off before its first word is not taken for another wire", () => {
  const reader = createReader(
    codecs.messages,
    {},
    { url: new URL("http://host/v1"), headers: {}, redact: (text) => text },
  );
  const frames = ['{"type":"message_start","message":{"id":"m","content":[]}}', '{"type":"ping"}', '{"type":"ping"}'];
  reader.push(new TextEncoder().encode(encodeSse(frames.map((data) => ({ data })))));
  expect(reader.end().at(-1)).toMatchObject({ type: "answer.ended", answer: { outcome: "truncated" } });
});
