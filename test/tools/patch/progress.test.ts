import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createPatchProgress, type PatchProgress } from "../../../src/tools/patch/progress.ts";

const patch = [
  "*** Begin Patch",
  "*** Update File: a.ts",
  "@@ f",
  '-old "text"',
  "+new \\ text",
  "+more é",
  "*** Add File: b",
  "+1",
  "*** Delete File: c",
  "*** End Patch",
  "",
].join("\n");

function feed(text: string, cuts: readonly number[], json: boolean): PatchProgress | undefined {
  const reader = createPatchProgress({ json });
  let last: PatchProgress | undefined;
  let from = 0;
  for (const cut of [...cuts.map((each) => each % text.length).toSorted((a, b) => a - b), text.length]) {
    last = reader.push(text.slice(from, cut)) ?? last;
    from = cut;
  }
  return last;
}

const whole = {
  done: true,
  files: [
    { path: "a.ts", action: "update", added: 2, removed: 1 },
    { path: "b", action: "add", added: 1, removed: 0 },
    { path: "c", action: "delete", added: 0, removed: 0 },
  ],
};

test("cutting the stream anywhere changes nothing, as text and as JSON arguments", () => {
  fc.assert(
    fc.property(fc.array(fc.nat()), fc.boolean(), (cuts, json) => {
      expect(feed(json ? JSON.stringify({ input: patch }) : patch, cuts, json)).toEqual(whole);
    }),
  );
});

test("what has come so far is told line by line", () => {
  const reader = createPatchProgress();
  expect(reader.push("*** Begin Patch\n*** Add Fi")).toEqual({ files: [], done: false });
  expect(reader.push("le: a\n+one\n+tw")).toEqual({
    files: [{ path: "a", action: "add", added: 1, removed: 0 }],
    done: false,
  });
  expect(reader.push("o")).toBeUndefined();
});

test("a patch that goes wrong says so while it is still arriving", () => {
  const reader = createPatchProgress();
  expect(reader.push("*** Begin Patch\nnonsense\n")).toMatchObject({
    done: false,
    error: expect.stringContaining("line 2"),
  });
});
