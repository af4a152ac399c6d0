import { expect, test } from "vitest";
import { createHiddenPattern } from "../../src/base/hidden.ts";

const show = (text: string) => text.replaceAll(createHiddenPattern(), "#");

test.each([
  ["a zero-width space", "ma\u200Bin", "ma#in"],
  ["a tag character", "ok\u{E0041}", "ok#"],
  ["a Hangul filler", "a\u3164b", "a#b"],
  ["a mark that turns the direction", "\u202Etxt.exe", "#txt.exe"],
  ["half a character", "a\uD800b", "a#b"],
  ["a joiner between Latin letters", "pay\u200Dpal", "pay#pal"],
])("%s is found", (_name, text, shown) => expect(show(text)).toBe(shown));

test.each(["a\tb\nc", "می\u200Cخواهم", "👩\u200D👩\u200D👧", "naïve — Ελλάδα"])("%j is left as it is", (text) =>
  expect(show(text)).toBe(text),
);
