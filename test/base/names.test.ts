import { describe, expect, test } from "vitest";
import { foldName, nameMatcher } from "../../src/base/names.ts";
import { findProtected } from "../../src/gate/paths.ts";

/** Ways to write `.git` that some file system takes for it. */
const spellings = [
  ".GIT",
  ".git.",
  ".git ",
  ".git. .",
  ".g\u200cit",
  "\ufeff.git",
  ".git::$INDEX_ALLOCATION",
  "．ｇｉｔ",
  ".ＧIT",
];
const others = [".github", "git", ".git2", "x.git", "..git", "git~x", "gits~1", ":git"];

describe("a protected name", () => {
  const isProtected = nameMatcher([".git", ".callgate"]);

  test.each(spellings)("%j is one to the file tools and to the gate", (name) => {
    expect(isProtected(name)).toBe(true);
    expect(findProtected(`/w/a/${name}/config`, ["/w"], [".git"])).toBe(".git");
  });

  test.each(["GIT~1", "git~2", "CALLGA~1"])("%j is one by its short form", (name) => {
    expect(isProtected(name)).toBe(true);
  });

  test.each(others)("%j is another name", (name) => {
    expect(isProtected(name)).toBe(false);
  });
});

test("folding twice is folding once", () => {
  for (const name of [...spellings, ...others, "a.B.c", "", ".", "...", "İ", "ﬁle"])
    expect(foldName(foldName(name))).toBe(foldName(name));
});
