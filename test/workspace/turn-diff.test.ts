import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { beforeEach, expect, test } from "vitest";
import { createTurnDiffer } from "../../src/workspace/turn-diff.ts";
import { filesIn, newWorkspace } from "../tools/workspace.ts";

let ws: string;
beforeEach(() => {
  ws = newWorkspace();
});

const put = (name: string, text: string | Buffer) => {
  mkdirSync(join(ws, name, ".."), { recursive: true });
  writeFileSync(join(ws, name), text);
};

test("what is written into a folder that is left out is no change of the turn", () => {
  put("state/journal", "1\n");
  const turn = createTurnDiffer({ workspace: ws, limits: { except: [join(ws, "state")] } });
  turn.begin();
  put("state/journal", "1\n2\n");
  put("other/state", "x\n");
  expect(turn.end().files).toEqual([{ path: "other/state", action: "add" }]);
});

test("whoever changes a file, the diff shows it", async () => {
  put("a.txt", "1\n2\n3\n");
  put("gone.txt", "x\n");
  const turn = createTurnDiffer({ workspace: ws });
  turn.begin();
  await filesIn(ws).write("a.txt", "1\ntwo\n3\n");
  execFileSync("sh", ["-c", "echo new > b.txt; rm gone.txt"], { cwd: ws });
  const { diff, files } = turn.end();
  expect(files).toEqual([
    { path: "a.txt", action: "update" },
    { path: "b.txt", action: "add" },
    { path: "gone.txt", action: "delete" },
  ]);
  expect(diff).toContain("--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n");
  expect(diff).toContain("--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1,1 @@\n+new\n");
  expect(diff).toContain("+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n");
});

test("a renamed file is one line, a renamed and changed one shows the change", () => {
  const text = Array.from({ length: 20 }, (_, index) => `line ${index}\n`).join("");
  put("same.txt", text);
  put("edited.txt", text.replaceAll("line", "row"));
  const turn = createTurnDiffer({ workspace: ws });
  turn.begin();
  renameSync(join(ws, "same.txt"), join(ws, "moved.txt"));
  unlinkSync(join(ws, "edited.txt"));
  put("lib/edited.txt", text.replaceAll("line", "row").replace("row 3", "changed"));
  const { diff, files } = turn.end();
  expect(files).toEqual([
    { path: "lib/edited.txt", action: "rename", from: "edited.txt" },
    { path: "moved.txt", action: "rename", from: "same.txt" },
  ]);
  expect(diff).toContain("rename from same.txt\nrename to moved.txt\n");
  expect(diff).toContain("-row 3\n+changed\n");
});

test("nothing changed, or only touched, is no diff; each turn begins afresh", async () => {
  put("a", "1\n");
  const turn = createTurnDiffer({ workspace: ws });
  turn.begin();
  put("a", "1\n");
  expect(turn.end()).toEqual({ diff: "", files: [], notes: [] });
  turn.begin();
  put("a", "2\n");
  expect(turn.end().files).toHaveLength(1);
  turn.begin();
  expect(turn.end().files).toEqual([]);
});

test("ignored folders, links and version control are not looked at", () => {
  put(".gitignore", "build/\n");
  const turn = createTurnDiffer({ workspace: ws });
  turn.begin();
  put("build/x", "x");
  put(".git/x", "x");
  put("node_modules/x/y", "x");
  symlinkSync("/etc", join(ws, "link"));
  expect(turn.end().files).toEqual([]);
});

test("what is too large or not text is named, and exact where our own tools changed it", async () => {
  put("big", "x".repeat(2_000));
  put("bin", Buffer.from([0, 1, 2]));
  const turn = createTurnDiffer({ workspace: ws, limits: { maxFileBytes: 1_000 } });
  turn.begin();
  put("bin", Buffer.from([0, 1, 2, 3]));
  const files = filesIn(ws, { onChange: turn.note });
  await files.write("big", "small\n");
  const { diff } = turn.end();
  expect(diff).toContain("Files differ (3 bytes before, 4 bytes after)");
  expect(diff).toContain("+small\n");
});

test("the diff stays within its size, and says what it leaves out", () => {
  const turn = createTurnDiffer({ workspace: ws, maxDiffBytes: 200 });
  turn.begin();
  for (let index = 0; index < 10; index++) put(`f${index}`, "some text\n".repeat(5));
  const { diff, files, notes } = turn.end();
  expect(diff.length).toBeLessThanOrEqual(200);
  expect(files).toHaveLength(10);
  expect(notes[0]).toMatch(/left out/);
});

test("git applies the diff of any two trees of texts", () => {
  const name = fc.constantFrom("a", "b", "d/c");
  const text = fc
    .array(fc.constantFrom("1", "2", "", "x y"), { maxLength: 8 })
    .map((lines) => lines.map((line) => `${line}\n`).join(""));
  const tree = fc.dictionary(name, text);
  fc.assert(
    fc.property(tree, tree, (before, after) => {
      ws = newWorkspace();
      for (const [path, content] of Object.entries(before)) put(path, content);
      const copy = newWorkspace();
      execFileSync("cp", ["-r", `${ws}/.`, copy]);
      const turn = createTurnDiffer({ workspace: ws });
      turn.begin();
      for (const path of Object.keys(before)) rmSync(join(ws, path));
      for (const [path, content] of Object.entries(after)) put(path, content);
      const { diff, files } = turn.end();
      // Empty files have no lines for a diff to carry.
      fc.pre(diff !== "" && [...Object.values(before), ...Object.values(after)].every((content) => content !== ""));
      execFileSync("git", ["apply", "-"], { cwd: copy, input: diff });
      for (const { path, action } of files)
        if (action !== "delete") expect(readFileSync(join(copy, path), "utf8")).toBe(after[path]);
    }),
    { numRuns: 25 },
  );
});
