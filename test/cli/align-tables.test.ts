import { Markdown, visibleWidth } from "@earendil-works/pi-tui";
import { expect, test } from "vitest";
import { alignTables } from "../../src/cli/tui/align-tables.ts";
import { createTheme } from "../../src/cli/tui/theme.ts";

const draw = (source: string, width = 60, colour = false) =>
  alignTables(new Markdown(source, 1, 0, createTheme(colour).markdown).render(width), source).map((line) =>
    line.trimEnd(),
  );

test("cells stand where the second row says", () => {
  const drawn = draw("| name | count | middle |\n|:---|--:|:-:|\n| a | 1 | x |\n| bcd | 1000 | xxx |\n");
  expect(drawn).toContain(" │ a    │     1 │   x    │");
  expect(drawn).toContain(" │ bcd  │  1000 │  xxx   │");
});

test("wide characters, colours and wrapped cells keep every line as wide as it was", () => {
  const source =
    "| 名前 | **n** |\n|---:|:---:|\n| 漢字かな | `code` and a long text that wraps in a narrow window |\n| x | y |\n";
  for (const width of [24, 40, 80]) {
    const before = new Markdown(source, 1, 0, createTheme(true).markdown).render(width);
    const after = alignTables(before, source);
    expect(after.map(visibleWidth)).toEqual(before.map(visibleWidth));
  }
  expect(draw(source, 80)).toContainEqual(expect.stringMatching(/│ {8}x │/));
});

test("tables in code blocks are not counted, and nothing moves where the tables cannot be matched", () => {
  const source = "```\n| a | b |\n|--:|--:|\n```\n\n| a | bbb |\n|---|--:|\n| x | 1 |\n";
  expect(draw(source)).toContain(" │ x │   1 │");
  const table = "| a | bbb |\n|---|--:|\n| x | 1 |\n";
  const wider = "| a | bbb | c |\n|---|---|---|\n| x | 1 | y |\n";
  for (const other of [`${table}\ntext\n\n${table}`, wider]) {
    const drawn = new Markdown(other, 1, 0, createTheme(false).markdown).render(60);
    expect(alignTables(drawn, table)).toEqual(drawn);
  }
});
