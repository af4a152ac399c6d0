/** JSON in pieces is JSON. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonPieces } from "../../src/base/json-pieces.ts";

const long = fc
  .tuple(fc.constantFrom("a", "é", "😀", '"', "\\", "\n", "\ud83d", "x😀"), fc.integer({ min: 65_530, max: 140_000 }))
  .map(([unit, length]) => unit.repeat(Math.ceil(length / unit.length)));
const leaf = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.constant("callgate:long-text"),
  fc.constant(null),
  fc.constant(undefined),
  long,
);
const value = fc.dictionary(
  fc.string(),
  fc.oneof(leaf, fc.array(leaf, { maxLength: 3 }), fc.dictionary(fc.string(), leaf, { maxKeys: 3 })),
  { maxKeys: 4 },
);

test("the pieces are what JSON.stringify writes, and none ends inside a character", () => {
  fc.assert(
    fc.property(value, (one) => {
      const pieces = [...jsonPieces(one)];
      expect(pieces.join("") === JSON.stringify(one)).toBe(true);
      for (const piece of pieces) expect(piece.isWellFormed()).toBe(true);
    }),
    { numRuns: 200 },
  );
});

test("a long text is never written as one", () => {
  const pieces = [...jsonPieces({ type: "x", content: [{ text: "word ".repeat(200_000) }] })];
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(70_000);
});
