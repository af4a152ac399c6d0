import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { structuredPatch } from "diff";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { applyByLine, applyChunks } from "../../../src/tools/patch/apply.ts";
import { joinLines, splitLines } from "../../../src/tools/patch/lines.ts";
import { parsePatch } from "../../../src/tools/patch/parse.ts";
import { applyPatch } from "../../../src/tools/patch/patch.ts";
import { filesIn, newWorkspace } from "../workspace.ts";
import { makePatch } from "./make-patch.ts";

/** Few different lines, so that places are often alike. */
const line = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "c", "}", "", "  x", "@@", "*** End Patch", "+a", "-b") },
  { weight: 1, arbitrary: fc.string({ maxLength: 12 }).map((text) => text.replace(/[\r\n]/g, "")) },
);
const lines = fc.array(line, { maxLength: 30 });
const ending = fc.constantFrom("\n", "\r\n");

test("a patch made from any two texts gives the second", () => {
  fc.assert(
    fc.property(lines, lines, ending, (before, after, eol) => {
      fc.pre(before.length + after.length > 0);
      const patch = parsePatch(makePatch("f", before, after));
      const update = patch.hunks[0];
      if (update?.kind !== "update") throw new Error("an update was expected");
      const text = applyChunks(before.map((each) => each + eol).join(""), update.chunks, { path: "f", codex: false });
      // An empty file has no ending of its own to keep.
      const expected = before.length === 0 ? "\n" : eol;
      expect(text).toBe(after.map((each) => each + expected).join(""));
    }),
    { numRuns: 500 },
  );
});

test("the hunks of a unified diff, line numbers and all, give the second text", () => {
  fc.assert(
    fc.property(lines, lines, fc.nat(3), (before, after, context) => {
      const [old, now] = [before, after].map((each) => each.map((text) => `${text}\n`).join("")) as [string, string];
      fc.pre(old !== now);
      const { hunks } = structuredPatch("f", "f", old, now, "", "", { context });
      const body = hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines: rows }) => [
        `@@ -${oldLines === 0 ? oldStart - 1 : oldStart},${oldLines} +${newStart},${newLines} @@`,
        ...rows,
      ]);
      const update = parsePatch(["*** Begin Patch", "*** Update File: f", ...body, "*** End Patch"].join("\n"))
        .hunks[0];
      if (update?.kind !== "update") throw new Error("an update was expected");
      expect(applyChunks(old, update.chunks, { path: "f", codex: false })).toBe(now);
    }),
    { numRuns: 500 },
  );
});

/** Chunks that fit a text, or nearly: cut from it, some with a line that is not there, some with an anchor. */
const cut = fc.record({
  at: fc.nat(12),
  length: fc.nat(3),
  op: fc.constantFrom(" ", "-", "+"),
  stray: fc.option(line, { freq: 6 }),
  anchor: fc.option(fc.nat(12), { freq: 3 }),
  atEnd: fc.boolean(),
});

test("lines searched for in the text as it is give what lines searched for one by one give", () => {
  let exact = 0;
  fc.assert(
    fc.property(
      lines,
      fc.array(cut, { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      fc.boolean(),
      ending,
      (own, cuts, closed, codex, eol) => {
        const text = own.join(eol) + (closed ? eol : "");
        const body = cuts.flatMap(({ at, length, op, stray, anchor, atEnd }) => [
          anchor === null ? "@@" : `@@ ${own[anchor] ?? ""}`,
          ...own.slice(at, at + length).map((each, index) => (index === 0 ? op : " ") + each),
          ...(stray === null ? [] : [` ${stray}`]),
          "+new",
          ...(atEnd && length < 3 ? ["*** End of File"] : []),
        ]);
        const update = parsePatch(["*** Begin Patch", "*** Update File: f", ...body, "*** End Patch"].join("\n"))
          .hunks[0];
        if (update?.kind !== "update") throw new Error("an update was expected");
        const told = [applyChunks, applyByLine].map((apply) => {
          try {
            return apply(text, update.chunks, { path: "f", codex });
          } catch (error) {
            return error;
          }
        });
        if (typeof told[0] === "string") exact++;
        expect(told[0]).toEqual(told[1]);
      },
    ),
    { numRuns: 2_000 },
  );
  expect(exact).toBeGreaterThan(200);
});

test("a missing newline at the end stays missing", () => {
  fc.assert(
    fc.property(
      fc.array(line, { minLength: 1, maxLength: 10 }),
      fc.array(line, { minLength: 1, maxLength: 10 }),
      (before, after) => {
        fc.pre(before.at(-1) !== "" && after.at(-1) !== "");
        const update = parsePatch(makePatch("f", before, after)).hunks[0];
        if (update?.kind !== "update") throw new Error("an update was expected");
        expect(applyChunks(before.join("\n"), update.chunks, { path: "f", codex: false })).toBe(after.join("\n"));
      },
    ),
  );
});

test("any text split into lines and joined is the same text", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("a", "\n", "\r", " ", "é") }), (text) => {
      const { texts, endings, ending: own } = splitLines(text);
      const kept = texts.map((each, index) => ({ text: each, ending: endings[index]! }));
      expect(joinLines(kept, own, text === "" || /[\r\n]$/.test(text))).toBe(text);
    }),
  );
});

test("a patch that fails anywhere leaves every byte as it was", async () => {
  const dir = newWorkspace();
  const names = ["one", "two", "three", "sub/four"];
  await fc.assert(
    fc.asyncProperty(fc.array(lines, { minLength: 4, maxLength: 4 }), lines, fc.nat(4), async (contents, after, at) => {
      rmSync(dir, { recursive: true });
      mkdirSync(join(dir, "sub"), { recursive: true });
      for (const [index, name] of names.entries()) writeFileSync(join(dir, name), contents[index]!.join("\n"));
      const before = tree(dir);
      const hunks = names.map((name, index) =>
        makePatch(name, contents[index]!, after).split("\n").slice(1, -1).join("\n"),
      );
      const broken = [
        "*** Update File: missing",
        "*** Delete File: missing",
        "*** Update File: one\n@@\n-no such line\n+x",
        "*** Add File: ../out\n+x",
        "*** Update File: sub/four\n@@ nowhere\n+x",
      ];
      hunks.splice(at % 5, 0, "*** Add File: new/file\n+x", broken[at]! + (at < 1 ? "\n@@\n-a\n+b" : ""));
      await expect(
        applyPatch(["*** Begin Patch", ...hunks.filter((hunk) => hunk !== ""), "*** End Patch"].join("\n"), {
          files: filesIn(dir),
          cwd: dir,
        }),
      ).rejects.toMatchObject({ name: "CallError" });
      expect(tree(dir)).toEqual(before);
    }),
    { numRuns: 60 },
  );
});

function tree(dir: string): Record<string, string> {
  const names = readdirSync(dir, { recursive: true, encoding: "utf8" });
  return Object.fromEntries(
    names.map((name) => [
      name,
      statSync(join(dir, name)).isFile() ? readFileSync(join(dir, name), "latin1") : "folder",
    ]),
  );
}
