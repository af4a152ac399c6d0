import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createGrowingText } from "../../src/base/growing-text.ts";

test("pieces of any size add up, however often they are looked at", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string({ maxLength: 50 }), fc.integer({ min: 1, max: 900 }), fc.boolean())),
      (list) => {
        const text = createGrowingText();
        let expected = "";
        for (const [piece, times, isRead] of list) {
          text.add(piece.repeat(times));
          expected += piece.repeat(times);
          if (isRead) expect(text.toString()).toBe(expected);
          expect(text.length).toBe(expected.length);
        }
        expect(text.toString()).toBe(expected);
      },
    ),
  );
});
