/** Answers as they grow on the screen. */
import fc from "fast-check";
import { visibleWidth } from "@earendil-works/pi-tui";
import { expect, test } from "vitest";
import { createStreamedText, wrapPlain } from "../../src/cli/tui/streamed-text.ts";
import { createTheme } from "../../src/cli/tui/theme.ts";

test("a flood of five megabytes is drawn whole, and its end still as Markdown", () => {
  const text = createStreamedText(createTheme(false));
  const all = Array.from({ length: 50_000 }, (_, n) => `line ${n} ${"x".repeat(90)}`);
  for (const line of all) text.append(`${line}\n`);
  text.append("\n**the end**\n");
  const drawn = text.render(120);
  expect(drawn[0]).toContain("line 0 ");
  for (const n of [1, 25_000, 49_000]) expect(drawn.some((line) => line.includes(`line ${n} `))).toBe(true);
  expect(drawn.join("\n")).toMatch(/^ *the end *$/m);
});

test("what is drawn plain keeps every word, in order, and no line is wider than the screen", () => {
  const words = fc.array(fc.stringMatching(/^[a-z0-9漢é]{1,30}$/), { maxLength: 60 });
  fc.assert(
    fc.property(words, fc.integer({ min: 4, max: 80 }), (list, width) => {
      const rows = wrapPlain(list.join(" "), width);
      for (const row of rows) expect(visibleWidth(row)).toBeLessThanOrEqual(width);
      expect(rows.join("").replaceAll(" ", "")).toBe(list.join(""));
    }),
  );
});
