/** What a person is shown is what is meant. */
import { expect, test } from "vitest";
import { lookAlikes, toQuotedBlock, toVisible, toVisibleCommand, toVisibleLine } from "../../src/gate/show.ts";

test("runs of blanks, tabs and breaks are counted; one tab and a break stay in a text, and are written out in a line", () => {
  expect(toVisible("a\tb\nc")).toBe("a\tb\nc");
  expect(toVisible(`a${" ".repeat(40)}b`)).toBe("a ⟨40 blanks⟩ b");
  expect(toVisible(`a${" ".repeat(39)}b`)).toBe(`a${" ".repeat(39)}b`);
  expect(toVisible("a\t\tb")).toBe("a ⟨2 tabs⟩ b");
  expect(toVisible("a\n\n\n\nb")).toBe("a\n⟨4 line breaks⟩\nb");
  expect(toVisibleLine("a\r\nb\tc")).toBe("a⏎ b \\t c");
});

test("a word that a shell would split is quoted, and letters that only look like ASCII are named", () => {
  expect(toVisibleCommand(["echo", "a b", "it's", "plain-1.0"])).toBe("echo 'a b' 'it'\\''s' plain-1.0");
  expect(toVisibleCommand(["cat"])).toBe("cat");
  expect(toVisibleCommand(["сcat"])).toBe("сcat ⟨not ASCII: U+0441⟩");
  expect(lookAlikes("сat сow")).toEqual(["с U+0441"]);
  expect(lookAlikes("cat, ça va, 中")).toEqual([]);
});

test("shown text has a mark on every line", () => {
  expect(toQuotedBlock("a\nb")).toBe("  │ a\n  │ b");
});
