import fc from "fast-check";
import { expect, test } from "vitest";
import { truncate } from "../../src/result/truncate.ts";

test("a text within the budget stays as it is", () => {
  expect(truncate("one\ntwo\n", { maxTokens: 100, maxLines: 10 })).toEqual({ text: "one\ntwo\n", cutChars: 0 });
});

test("head and tail stay, and the marker says how many lines are missing", () => {
  const text = Array.from({ length: 10 }, (_, index) => `line ${index}`).join("\n");
  expect(truncate(text, { maxTokens: 1_000, maxLines: 4 }).text).toBe(
    "line 0\nline 1\n[… 6 lines omitted …]\nline 8\nline 9",
  );
});

test("the note stands in the marker", () => {
  expect(truncate("x".repeat(1_000), { maxTokens: 50, maxLines: 10 }, ", whole in /tmp/f").text).toContain(
    "omitted, whole in /tmp/f …]",
  );
});

test("the budget is never exceeded, no character is cut in half, and what is missing is counted", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "binary", maxLength: 2_000 }),
      fc.integer({ min: 0, max: 200 }),
      (text, maxTokens) => {
        const cut = truncate(text, { maxTokens, maxLines: 1_000_000 });
        expect(cut.text.length).toBeLessThanOrEqual(
          Math.max(maxTokens * 4, text.length <= maxTokens * 4 ? text.length : 0),
        );
        if (cut.cutChars === 0) expect(cut.text).toBe(text);
        if (text.isWellFormed?.() ?? true) expect(hasLoneSurrogate(cut.text) && !hasLoneSurrogate(text)).toBe(false);
      },
    ),
  );
});

test("lines are never more than asked for, plus the marker", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ maxLength: 5 }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 30 }),
      (lines, maxLines) => {
        const text = lines.map((line) => line.replaceAll("\n", "")).join("\n");
        expect(truncate(text, { maxTokens: 1_000_000, maxLines }).text.split("\n").length).toBeLessThanOrEqual(
          maxLines + 2,
        );
      },
    ),
  );
});

function hasLoneSurrogate(text: string): boolean {
  return /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(text);
}
