/** The diff a person is shown is one that git takes. */
import { applyPatch } from "diff";
import fc from "fast-check";
import { expect, test } from "vitest";
import { changeWords, unifiedDiff } from "../../src/runtime/diff-text.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

test("what was added, removed, renamed and changed is said in git's words", () => {
  const [before, after] = [bytes("a\n"), bytes("b\n")];
  expect(unifiedDiff({ path: "f", before: undefined, after })).toBe(
    "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1,1 @@\n+b\n",
  );
  expect(unifiedDiff({ path: "f", before, after: undefined })).toBe(
    "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n",
  );
  expect(unifiedDiff({ path: "g", from: "f", before, after: before })).toBe(
    "diff --git a/f b/g\nrename from f\nrename to g\n",
  );
  expect(unifiedDiff({ path: "f", before, after })).toBe(
    "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n+b\n",
  );
  const words = [
    changeWords({ path: "f", before: undefined, after }),
    changeWords({ path: "f", before, after: undefined }),
    changeWords({ path: "f", before, after }),
    changeWords({ path: "g", from: "f", before, after }),
  ];
  expect(words).toEqual(["add", "delete", "update", "rename"]);
});

test("what is no text, too large, or was not kept is told by its size", () => {
  const differ = (before: Uint8Array | null | undefined, after: Uint8Array | null | undefined) =>
    unifiedDiff({ path: "f", before, after }).split("\n").at(-2);
  expect(differ(bytes("a\0"), undefined)).toBe("Files differ (2 bytes before, none after)");
  expect(differ(null, bytes("a"))).toBe("Files differ (not kept before, 1 bytes after)");
  expect(differ(bytes("a".repeat(1024 * 1024 + 1)), bytes("a"))).toContain("1048577 bytes before");
  expect(differ(bytes("a".repeat(1024 * 1024)), bytes("a"))).toContain("No newline");
  const many = (word: string) => bytes(Array.from({ length: 6_000 }, (_, n) => `${word}${n}\n`).join(""));
  expect(differ(many("a"), many("b"))).toBe("Files differ in too many lines to show");
});

test("applied to what was, a diff gives what is", () => {
  const text = fc
    .array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 40 })
    .map((lines) => lines.map((line) => `${line}\n`).join(""));
  fc.assert(
    fc.property(text, text, (before, after) => {
      fc.pre(before !== after && before !== "" && after !== "");
      const diff = unifiedDiff({ path: "f", before: bytes(before), after: bytes(after) });
      expect(applyPatch(before, diff)).toBe(after);
    }),
  );
});
