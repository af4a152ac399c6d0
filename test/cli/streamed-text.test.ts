/** Answers as they grow on the screen. */
import fc from "fast-check";
import { Markdown, visibleWidth } from "@earendil-works/pi-tui";
import { expect, test } from "vitest";
import { alignTables } from "../../src/cli/tui/align-tables.ts";
import { drawMarkdown, wrapPlain } from "../../src/cli/tui/draw-markdown.ts";
import { createStreamedText } from "../../src/cli/tui/streamed-text.ts";
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

const word = fc.stringMatching(/^[A-Za-z][a-z0-9,.;:'"()?!%-]{0,14}$/);
const sentence = fc
  .array(
    fc.oneof(
      { weight: 9, arbitrary: word },
      fc.constantFrom("1.", "-", "*b*", "42)", "https://a.b", "x".repeat(70), "a@b.c", "www.x.y"),
    ),
    { minLength: 1, maxLength: 30 },
  )
  .map((words) => words.join(" "));
const block = fc.oneof(
  { weight: 4, arbitrary: fc.array(sentence, { minLength: 1, maxLength: 3 }).map((lines) => lines.join("\n")) },
  fc.constantFrom(
    "# a heading",
    "- one\n- two **bold**",
    "1. one\n2. two",
    "> quoted",
    "two  blanks,  and one at the end ",
    "| a | b |\n|---|--:|\n| 1 | 2 |",
    "```js\nlet x = 1;\n\nlet y;\n```",
    "Title\n=====",
    "    indented code",
    "a `word` and *another* and é 漢字",
    "<!-- open",
    "closed -->",
    "$$ a",
    "[see][it]",
    "[it]: https://example.com",
    "---",
  ),
);

test("paragraphs without marks are drawn by ourselves to the very lines that the library draws", () => {
  const theme = createTheme(false);
  const blocks = fc.array(block, { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(blocks, fc.integer({ min: 12, max: 90 }), (list, width) => {
      const source = list.join("\n\n");
      expect(drawMarkdown(source, width, theme)).toEqual(
        alignTables(new Markdown(source, 1, 0, theme.markdown).render(width), source),
      );
    }),
    { numRuns: Number(process.env["CALLGATE_LAWS"] ?? 300) },
  );
});
