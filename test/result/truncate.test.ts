import fc from "fast-check";
import { describe, expect, test } from "vitest";
import tokenCounts from "../base/token-counts.json" with { type: "json" };
import { estimateTokens } from "../../src/base/tokens.ts";
import { defaultBudget, truncate } from "../../src/result/truncate.ts";
import type { CapturedOutput } from "../../src/spec/capability.ts";

const wide = { ...defaultBudget, maxTokens: 1_000_000, maxLines: 1_000_000, maxBytes: 1 << 30 };

test("a text within the budget stays as it is", () => {
  const cut = truncate("one\ntwo\n", { ...wide, maxTokens: 100, maxLines: 2 });
  expect(cut).toMatchObject({ text: "one\ntwo\n", bytes: 0, lines: 0 });
});

test("head and tail stay, and the marker says how many lines and bytes are missing", () => {
  const text = Array.from({ length: 10 }, (_, index) => `line ${index}`).join("\n");
  expect(truncate(text, { ...wide, maxLines: 4 })).toMatchObject({
    text: "line 0\nline 1\n[… 6 lines (42 bytes) omitted …]\nline 8\nline 9",
    bytes: 42,
    lines: 6,
  });
});

test("the note stands in the marker", () => {
  const cut = truncate("x".repeat(1_000), { ...wide, maxTokens: 50 }, ", whole in /tmp/f");
  expect(cut.text).toContain("bytes omitted, whole in /tmp/f …]");
});

test("a line is left out whole rather than cut to another number", () => {
  const text = Array.from({ length: 2_000 }, (_, index) => `${100_000 + index}\n`).join("");
  const { text: cut } = truncate(text, { ...wide, maxTokens: 200 });
  expect(cut.split("\n").filter((line) => !/^(\d{6}|\[.*\]|)$/.test(line))).toEqual([]);
});

test("the middle that was never in memory is counted with what is cut from the ends", () => {
  const line = "0123456789\n";
  const captured: CapturedOutput = {
    head: line.repeat(100),
    tail: line.repeat(100),
    droppedBytes: 11 * 1_000_000,
    totalBytes: 11 * 1_000_200,
    lineBreaks: 1_000_200,
    binary: false,
  };
  const cut = truncate(captured, { ...wide, maxLines: 10 });
  expect(cut).toMatchObject({ bytes: 11 * 1_000_190, lines: 1_000_190 });
  expect(cut.text).toBe(`${line.repeat(5)}[… 1000190 lines (${11 * 1_000_190} bytes) omitted …]\n${line.repeat(5)}`);
});

const scripts = ["a", "Z", "7", " ", "\n", "é", "ß", "я", "中", "語", "한", "😀", "{", "✓", "\ud800"];
const texts = fc.string({ unit: fc.constantFrom(...scripts), maxLength: 1_500 });

describe("whatever the text and the budget", () => {
  test("the budget is never exceeded, in any script, and every byte and line is told or counted", () => {
    fc.assert(
      fc.property(texts, fc.nat(400), fc.nat(60), fc.nat(3_000), (text, maxTokens, maxLines, maxBytes) => {
        const cut = truncate(text, { maxTokens, maxLines, maxBytes });
        if (cut.bytes === 0) expect(cut.text).toBe(text);
        if (cut.bytes === 0) return;
        const marker = /\[…[^\]]*…\]\n/.exec(cut.text)?.[0];
        expect(estimateTokens(cut.text)).toBeLessThanOrEqual(maxTokens);
        if (marker === undefined) return; // a budget too small for the marker itself
        const at = cut.text.indexOf(marker);
        const [head, tail] = [cut.text.slice(0, at), cut.text.slice(at + marker.length)];
        const count = (words: string) => words.split("\n").length - 1;
        // The marker has a line of its own: a break before it may be the text's or not.
        const isTrue = [head, head.replace(/\n$/, "")].some(
          (first) =>
            text.startsWith(first) &&
            text.endsWith(tail) &&
            Buffer.byteLength(first) + Buffer.byteLength(tail) + cut.bytes === Buffer.byteLength(text) &&
            count(first) + count(tail) + cut.lines === count(text) &&
            count(first) + count(tail) <= maxLines &&
            Buffer.byteLength(first) + Buffer.byteLength(tail) <= maxBytes,
        );
        expect(isTrue).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  // Lines that end in a break and begin with no space are counted one by one by every tokenizer, so sums are exact.
  test.each(Object.entries(tokenCounts))("%s: what is told fits as o200k counts it", (_kind, counted) => {
    const counts = new Map(counted as [string, number][]); // pairs, which JSON cannot say
    const lines = fc.array(fc.constantFrom(...counts.keys()), { minLength: 60, maxLength: 300 });
    fc.assert(
      fc.property(lines, fc.integer({ min: 400, max: 1_500 }), (chosen, maxTokens) => {
        const whole = chosen.map((line) => `${line}\n`).join("");
        const cut = truncate(whole, { ...wide, maxTokens });
        const told = cut.text.split("\n").slice(0, -1);
        const tokens = sum(told.map((line) => counts.get(line) ?? markerTokens(line)));
        expect(tokens).toBeLessThanOrEqual(maxTokens);
        if (cut.bytes > 0) expect(tokens).toBeGreaterThan(maxTokens / 4);
      }),
      { numRuns: 20 },
    );
  });

  test("no character is cut in half", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 500 }), fc.nat(100), (text, maxTokens) => {
        expect(hasLoneSurrogate(truncate(text, { ...wide, maxTokens }).text)).toBe(false);
      }),
    );
  });
});

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);

/** What o200k counts for the marker: three digits at a time, and the words around them. */
function markerTokens(line: string): number {
  const [, lines, bytes = ""] = /^\[… (?:(\d+) lines \()?(\d+) bytes\)? omitted …\]$/.exec(line) ?? [];
  if (bytes === "") throw new Error(`neither one of the lines nor the marker: ${line}`);
  const digits = (number: string) => Math.ceil(number.length / 3);
  return lines === undefined ? 6 + digits(bytes) : 9 + digits(lines) + digits(bytes);
}

function hasLoneSurrogate(text: string): boolean {
  return /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(text);
}

test("bytes count as bytes, not as characters", () => {
  const text = "é".repeat(1_000);
  expect(truncate(text, { ...wide, maxBytes: 1_500 }).bytes).toBeGreaterThan(0);
  expect(truncate(text, { ...wide, maxBytes: 1_999 }).bytes).toBeGreaterThan(0);
  expect(truncate(text, { ...wide, maxBytes: 2_000 }).bytes).toBe(0);
});

test("the line break before the marker is within the budget too", () => {
  const text = "[… 3 bytes omitted …]\n😀a語a";
  const cut = truncate(text, { maxTokens: 27, maxLines: 2, maxBytes: 18 });
  expect(cut.bytes).toBeGreaterThan(0);
  expect(estimateTokens(cut.text)).toBeLessThanOrEqual(27);
});
