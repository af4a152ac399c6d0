/** `callgate patch` and `callgate undo` as a person and a program use them. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createUndoLog, undoFile } from "../../src/workspace/undo.ts";
import { filesIn, newWorkspace } from "../tools/workspace.ts";
import { ensureBuilt, lines, run, tempFolder } from "./run.ts";

beforeAll(ensureBuilt, 60_000);

const patch = (...body: readonly string[]) => ["*** Begin Patch", ...body, "*** End Patch", ""].join("\n");

test("a patch from a file or stdin is applied here, and a dry run changes nothing", async () => {
  const cwd = newWorkspace();
  writeFileSync(join(cwd, "p"), patch("*** Add File: a/b.txt", "+x"));
  const dry = await run(["patch", "--dry-run", "p"], { cwd });
  expect([dry.code, existsSync(join(cwd, "a"))]).toEqual([0, false]);
  expect(dry.stdout).toContain("It would update the following files:\nA a/b.txt");
  expect(await run(["patch", "p"], { cwd })).toMatchObject({
    code: 0,
    stdout: "Success. Updated the following files:\nA a/b.txt\n",
  });
  expect(await run(["patch", "-", "--json"], { cwd, input: patch("*** Delete File: a/b.txt") })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('"delete"'),
  });
  expect(existsSync(join(cwd, "a/b.txt"))).toBe(false);
});

test("exit codes tell a patch that does not fit, one that reaches outside, and no patch at all", async () => {
  const cwd = newWorkspace();
  const fails = await run(["patch"], { cwd, input: patch("*** Delete File: none") });
  expect(fails).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("no such file") });
  expect(await run(["patch"], { cwd, input: patch("*** Add File: ../x", "+x") })).toMatchObject({ code: 3 });
  expect(await run(["patch"], { cwd, input: "nonsense" })).toMatchObject({ code: 1 });
  expect(await run(["patch"], { cwd })).toMatchObject({ code: 2 });
  expect(await run(["patch", "no-such-file"], { cwd })).toMatchObject({ code: 2 });
});

test("many patches in one process, one line out per line in, in order", async () => {
  const [one, two] = [newWorkspace(), newWorkspace()];
  const input = [
    { id: "a", dir: one, patch: patch("*** Add File: f", "+1") },
    { id: "b", dir: one, patch: patch("*** Update File: f", "@@", "-2", "+3") },
    { id: "c", dir: two, patch: patch("*** Add File: g", "+1", "*** Delete File: none") },
    { id: "d", dir: two, patch: patch("*** Add File: g", "+1", "*** Delete File: none"), codex: true },
    { id: "e" },
  ];
  const { code, stdout } = await run(["patch", "--batch"], {
    input: input.map((line) => JSON.stringify(line)).join("\n"),
  });
  expect(code).toBe(0);
  expect(lines(stdout)).toMatchObject([
    { id: "a", ok: true, files: [{ path: "f", action: "add" }] },
    { id: "b", ok: false, error: expect.stringContaining("does not fit f"), files: [] },
    { id: "c", ok: false },
    { id: "d", ok: false },
    { id: "e", ok: false },
  ]);
  expect(existsSync(join(two, "g"))).toBe(true);
});

test("undo takes the last turn back, or says why not", async () => {
  const cwd = newWorkspace();
  const env = { CALLGATE_HOME: tempFolder("state") };
  writeFileSync(join(cwd, "a"), "old");
  const log = createUndoLog(undoFile(cwd, env));
  await filesIn(cwd, { onChange: log.record }).write("a", "new");
  log.close("turn", 1);
  writeFileSync(join(cwd, "a"), "by hand");
  expect(await run(["undo"], { cwd, env })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("changed since"),
  });
  writeFileSync(join(cwd, "a"), "new");
  expect(await run(["undo", "--dry-run"], { cwd, env })).toMatchObject({ code: 0, stdout: "would be restored a\n" });
  expect(await run(["undo"], { cwd, env })).toMatchObject({ code: 0, stdout: "restored a\n" });
  expect(readFileSync(join(cwd, "a"), "utf8")).toBe("old");
  expect(await run(["undo"], { cwd, env })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("nothing to take back"),
  });
});
