import fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import { createBodyWriter } from "../../src/model/body.ts";

const toText = (pieces: readonly Uint8Array[]) => Buffer.concat(pieces).toString("utf8");
const item = fc.dictionary(fc.string(), fc.jsonValue()) as fc.Arbitrary<JsonObject>;

test("a body is written as JSON.stringify would", () => {
  fc.assert(
    fc.property(item, (body) => {
      expect(toText(createBodyWriter()(body))).toBe(JSON.stringify(body));
    }),
  );
});

test("whatever a history shares with the one before, its bytes are its own", () => {
  const step = fc.record({ keep: fc.nat(20), add: fc.array(item, { maxLength: 5 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 10 }), (steps) => {
      const write = createBodyWriter();
      const sent: { readonly text: string; readonly pieces: readonly Uint8Array[] }[] = [];
      let input: readonly JsonObject[] = [];
      for (const { keep, add } of steps) {
        input = [...input.slice(0, Math.max(0, input.length - keep)), ...add];
        const body = { model: "m", input, tools: [{ name: "é" }], stream: true };
        sent.push({ text: JSON.stringify(body), pieces: write(body) });
      }
      // Bytes that were handed out earlier may still be on their way: later requests change none of them.
      for (const { text, pieces } of sent) expect(toText(pieces)).toBe(text);
    }),
  );
});

test("what was sent before is not written again", () => {
  let reads = 0;
  const watched = { type: "message", toJSON: () => ({ reads: ++reads }) } as unknown as JsonObject;
  const write = createBodyWriter();
  write({ input: [watched] });
  expect(toText(write({ input: [watched, { type: "x" }] }))).toBe('{"input":[{"reads":1},{"type":"x"}]}');
});
