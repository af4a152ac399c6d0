/** Whole patches against whole folders: what is there before, what is there after, and how it ends. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { applyPatch } from "../../../src/tools/patch/patch.ts";
import { filesIn } from "../workspace.ts";

type Folder = Readonly<Record<string, string>>;

interface Scenario {
  readonly name: string;
  readonly before: Folder;
  readonly patch: readonly string[];
  /** Left out: the patch fails and nothing has changed. */
  readonly after?: Folder;
  /** Where codex does otherwise: it keeps what came before a failure, and adds lines without a place at the end. */
  readonly codex?: Folder;
}

const poem = "roses\nviolets\nsugar\nyou\n";
const scenarios: readonly Scenario[] = [
  {
    name: "adds a file in a new folder",
    before: {},
    patch: ["*** Add File: a/b/c.txt", "+one", "+two"],
    after: { "a/b/c.txt": "one\ntwo\n" },
  },
  {
    name: "adds over a file that is there",
    before: { a: "old\n" },
    patch: ["*** Add File: a", "+new"],
    after: { a: "new\n" },
  },
  { name: "deletes", before: { a: "x\n", b: "y\n" }, patch: ["*** Delete File: a"], after: { b: "y\n" } },
  {
    name: "changes one line",
    before: { p: poem },
    patch: ["*** Update File: p", "@@", "-violets", "+tulips"],
    after: { p: "roses\ntulips\nsugar\nyou\n" },
  },
  {
    name: "changes in two places of one file",
    before: { p: poem },
    patch: ["*** Update File: p", "@@", "-roses", "+daisies", "@@", " sugar", "-you", "+me"],
    after: { p: "daisies\nviolets\nsugar\nme\n" },
  },
  {
    name: "inserts after the named line",
    before: { p: poem },
    patch: ["*** Update File: p", "@@ sugar", "+spice"],
    after: { p: "roses\nviolets\nsugar\nspice\nyou\n" },
    codex: { p: `${poem}spice\n` },
  },
  {
    name: "adds at the end of the file",
    before: { p: poem },
    patch: ["*** Update File: p", "@@", " you", "+end", "*** End of File"],
    after: { p: `${poem}end\n` },
  },
  {
    name: "moves and changes",
    before: { "old/n.txt": "a\nb\n" },
    patch: ["*** Update File: old/n.txt", "*** Move to: new/n.txt", "@@", "-a", "+c"],
    after: { "new/n.txt": "c\nb\n" },
  },
  {
    name: "does several files at once",
    before: { a: "1\n", b: "2\n", c: "3\n" },
    patch: ["*** Add File: d", "+4", "*** Delete File: a", "*** Update File: b", "@@", "-2", "+two"],
    after: { b: "two\n", c: "3\n", d: "4\n" },
  },
  {
    name: "finds a line whose spaces differ at its end",
    before: { p: "a  \nb\n" },
    patch: ["*** Update File: p", "@@", " a", "-b", "+c"],
    after: { p: "a  \nc\n" },
  },
  {
    name: "reads markers with space around them",
    before: { p: "a\n" },
    patch: ["  *** Update File: p  ", "@@", "-a", "+b"],
    after: { p: "b\n" },
  },
  {
    name: "keeps characters of any script",
    before: { p: "naïve café 東京\n" },
    patch: ["*** Update File: p", "@@", "-naïve café 東京", "+naïve café 京都 🎉"],
    after: { p: "naïve café 京都 🎉\n" },
  },
  { name: "refuses a patch without a file", before: { a: "1\n" }, patch: [] },
  { name: "refuses to delete what is not there", before: { a: "1\n" }, patch: ["*** Delete File: none"] },
  {
    name: "refuses to update what is not there",
    before: { a: "1\n" },
    patch: ["*** Update File: none", "@@", "-1", "+2"],
  },
  { name: "refuses a heading it does not know", before: { a: "1\n" }, patch: ["*** Frobnicate File: a"] },
  {
    name: "refuses lines that are not in the file",
    before: { p: poem },
    patch: ["*** Update File: p", "@@", "-thistles", "+x"],
  },
  { name: "refuses a folder as a file", before: { "d/x": "1\n" }, patch: ["*** Update File: d", "@@", "-1", "+2"] },
  {
    name: "takes back the first file when the second fails, unless told to do as codex does",
    before: { a: "1\n" },
    patch: ["*** Add File: made", "+x", "*** Update File: none", "@@", "-1", "+2"],
    codex: { a: "1\n", made: "x\n" },
  },
];

describe.each(scenarios)("a patch that $name", ({ before, patch, after, codex }) => {
  test.each([
    ["all or nothing", false, after ?? before],
    ["as codex does", true, codex ?? after ?? before],
  ] as const)("%s", async (_name, isCodex, expected) => {
    const dir = mkdtempSync(join(tmpdir(), "callgate-patch-"));
    for (const [path, text] of Object.entries(before)) {
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), text);
    }
    const text = ["*** Begin Patch", ...patch, "*** End Patch", ""].join("\n");
    const applied = applyPatch(text, { files: filesIn(dir), cwd: dir }, { codex: isCodex });
    await (after === undefined ? expect(applied).rejects.toThrow() : applied);
    expect(contents(dir)).toEqual(expected);
  });
});

function contents(dir: string): Folder {
  const names = readdirSync(dir, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => statSync(join(dir, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(dir, name), "utf8")]));
}
