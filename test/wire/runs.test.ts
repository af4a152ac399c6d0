/** Runs of frames that differ only in their words are read at once, and say the same as frame by frame. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { collect } from "../../src/wire/answer.ts";
import type { Frame } from "../../src/wire/codec.ts";
import { codecs } from "../../src/wire/index.ts";
import { createRunFinder, cutFrame } from "../../src/wire/runs.ts";
import { encodeFrame } from "../../src/wire/sse.ts";
import { createStreamReader } from "../../src/wire/stream.ts";

const awkward = fc.constantFrom(
  '"',
  "\\",
  "\n",
  '\\"}}]}',
  '"content":"',
  "</think>",
  "<think>",
  "ü",
  "東京",
  "😀",
  "\u2028",
);
const words = fc.oneof(
  { weight: 6, arbitrary: fc.string({ minLength: 1, maxLength: 12 }) },
  { weight: 1, arbitrary: awkward },
);

const chatFrames = fc.record({
  texts: fc.array(words, { minLength: 5, maxLength: 80 }),
  spaced: fc.boolean(),
  created: fc.integer({ min: 0, max: 3 }),
});

function toChat({
  texts,
  spaced,
  created,
}: {
  texts: readonly string[];
  spaced: boolean;
  created: number;
}): readonly Frame[] {
  const write = (value: object) => {
    const text = JSON.stringify(value);
    return spaced ? text.replace('"content":', '"content": ') : text;
  };
  const chunks = texts.map((content, at) => ({
    id: "c",
    created: created === 0 ? at : 1,
    choices: [{ index: 0, delta: at % 17 === 16 ? { reasoning_content: content } : { content }, finish_reason: null }],
  }));
  const last = { id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
  return [...chunks.map(write), JSON.stringify(last), "[DONE]"].map((data) => ({ data }));
}

function toMessages({ texts }: { texts: readonly string[] }): readonly Frame[] {
  const frame = (type: string, fields: object): Frame => ({ event: type, data: JSON.stringify({ type, ...fields }) });
  return [
    frame("message_start", { message: { id: "m", model: "x", usage: {} } }),
    frame("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ...texts.map((text) => frame("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
    frame("content_block_stop", { index: 0 }),
    frame("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } }),
    frame("message_stop", {}),
  ];
}

function toResponses({
  texts,
  spaced,
  created,
}: {
  texts: readonly string[];
  spaced: boolean;
  created: number;
}): readonly Frame[] {
  let sequence = created * 7;
  const frame = (type: string, fields: object): Frame => ({
    event: `response.${type}`,
    data: JSON.stringify({ type: `response.${type}`, sequence_number: sequence++, ...fields }),
  });
  const where = { item_id: "m", output_index: 0, content_index: 0 };
  const filling = (text: string) =>
    spaced ? { logprobs: [], obfuscation: "x0Yz4".repeat(3).slice(text.length % 16) } : {};
  const content = [{ type: "output_text", text: texts.join(""), annotations: [] }];
  return [
    frame("created", { response: { id: "r", model: "m" } }),
    frame("output_item.added", { output_index: 0, item: { type: "message", id: "m", role: "assistant", content: [] } }),
    ...texts.map((delta, at) =>
      at % 19 === 18
        ? frame("output_text.annotation.added", { ...where, annotation: { type: "url_citation", url: delta } })
        : frame("output_text.delta", { ...where, delta, ...filling(delta) }),
    ),
    // The end repeats the text only sometimes: what was heard must be the same without it.
    ...(created > 1
      ? [frame("output_item.done", { output_index: 0, item: { type: "message", id: "m", role: "assistant", content } })]
      : []),
    frame("completed", { response: { id: "r", status: "completed", output: [] } }),
  ];
}

test.each([
  ["chat", toChat],
  ["messages", toMessages],
  ["responses", toResponses],
] as const)("%s: wherever the bytes are cut, an answer read in runs is the answer", (wire, write) => {
  fc.assert(
    fc.property(chatFrames, fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 6 }), (said, sizes) => {
      const frames = write(said);
      const bytes = Buffer.from(frames.map(encodeFrame).join(""));
      const how = { thinkTags: true };
      const decoder = codecs[wire].createDecoder(how);
      const expected = collect([...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()]);
      const reader = createStreamReader(codecs[wire], how);
      const events = [];
      let at = 0;
      for (const size of [...sizes, bytes.length]) {
        events.push(...reader.push(bytes.subarray(at, at + size)));
        at += size;
      }
      expect(collect([...events, ...reader.end()])).toEqual(expected);
    }),
    { numRuns: Number(process.env["CALLGATE_RUNS"] ?? 60) },
  );
});

test("a frame is only cut where its words stand alone", () => {
  const data = JSON.stringify({ content: "a", choices: [{ delta: { content: "b" } }] });
  expect(cutFrame({ data }, "content", "b")).toBeUndefined();
  expect(cutFrame({ data: '{"content":"b"}' }, "content", "a")).toBeUndefined();
  expect(cutFrame({ data: '{"content":["a"]}' }, "content", "a")).toBeUndefined();
  expect(cutFrame({ data: '{"content": "\\u0061\\""}' }, "content", 'a"')).toEqual({
    before: 'data: {"content": "',
    after: '"}\n\n',
  });
  expect(cutFrame({ data: '{"content":"a"}' }, "content", "")).toBeUndefined();
  const cut = cutFrame({ data: '{"content":"a"}' }, "content", "a");
  expect(cut).toEqual({ before: 'data: {"content":"', after: '"}\n\n' });
  const frame = { ...cut!, hear: () => [] };
  const text = (...list: readonly string[]) =>
    `: hi\n\n${list.map((one) => `data: {"content":"${one}"}\n\n`).join("")}`;
  const findRun = createRunFinder();
  expect(findRun(text("one ", "two", "three"), frame)).toEqual({ first: ": hi\n\n", words: "one twothree", rest: "" });
  expect(findRun(text("one ", "two", "three").slice(0, -7), frame)).toEqual({
    first: ": hi\n\n",
    words: "one two",
    rest: 'data: {"content":"th',
  });
  expect(findRun(text('a \\"word\\"', "\\n", "\\ud83d", "\\ude00"), frame)?.words).toBe('a "word"\n😀');
  expect(findRun(text("one ", '","more":"', "three"), frame)).toBeUndefined();
  expect(findRun(text("one ", '","', "three"), frame)).toBeUndefined();
  expect(findRun(text('a \\"word\\",', "\\n", "\\\\", "b"), frame)?.words).toBe('a "word",\n\\b');
  // Joined, these would be valid: each text has to be.
  expect(findRun(text("one \\", "n", "three"), frame)).toBeUndefined();
  expect(findRun(text("one \\u00", "41", "three"), frame)).toBeUndefined();
  // Only where a frame begins may the text itself begin with one.
  expect(findRun(text("one ", "two").slice(6), frame)?.words).toBe("two");
  expect(findRun(text("one ", "two").slice(6), frame, true)?.words).toBe("one two");
});

test("words behind an error are not read as a run either", () => {
  const said = (content: string) =>
    encodeFrame({ data: JSON.stringify({ choices: [{ index: 0, delta: { content } }] }) });
  const broken = encodeFrame({ data: JSON.stringify({ error: { message: "out of memory" } }) });
  const reader = createStreamReader(codecs.chat);
  const events = [...reader.push(said("a")), ...reader.push(broken + said("b").repeat(40)), ...reader.end()];
  expect(collect(events)).toMatchObject({ outcome: "error", items: [{ content: [{ text: "a" }] }] });
});
