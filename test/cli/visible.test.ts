import { expect, test } from "vitest";
import { visible } from "../../src/cli/chat/visible.ts";

test.each([
  ["a\u001B[31mb", "a‹001B›[31mb"],
  ["\u009B2Jx", "‹009B›2Jx"],
  ["over\rwritten", "overwritten"],
  ["\u202Eevil", "‹202E›evil"],
  ["pass\u200Bword\u200D", "pass‹200B›word‹200D›"],
  ["rm\u200Dx and ев\u200Cа", "rm‹200D›x and ев‹200C›а"],
  ["tag\u{E0041}", "tag‹E0041›"],
  ["lone \uD800 half", "lone ‹D800› half"],
])("what hides or acts is written out: %j", (text, shown) => {
  expect(visible(text)).toBe(shown);
});

test.each([
  "tab\tand\nline",
  "日本語 é ü ß",
  "👩\u200D👩\u200D👧 👍🏽 ❤️\u200D🔥",
  "می\u200Cخواهم",
  "क्\u200Dष",
  "naïve—“quoted”…",
])("what is only writing stays: %j", (text) => {
  expect(visible(text)).toBe(text);
});
