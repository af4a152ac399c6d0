import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCommandUndo } from "../../src/workspace/command-undo.ts";
import { createUndoLog, filesToUndo, reverseTurn } from "../../src/workspace/undo.ts";
import { newWorkspace } from "../tools/workspace.ts";

function scene(limits?: Parameters<typeof createCommandUndo>[2]) {
  const folder = newWorkspace();
  const log = createUndoLog(join(newWorkspace(), "undo.jsonl"));
  for (const name of ["a", "b", "c"]) writeFileSync(join(folder, name), `${name}\n`);
  chmodSync(join(folder, "b"), 0o755);
  const read = (name: string) =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8") : undefined;
  return { folder, log, read, commands: createCommandUndo(folder, log, limits) };
}

test("what a command changed, removed and added is found by looking before and after, and taken back", async () => {
  const { folder, log, read, commands } = scene();
  writeFileSync(join(folder, "mine"), "changed before the command\n");
  expect(commands.before()).toBeUndefined();
  writeFileSync(join(folder, "a"), "changed\n");
  rmSync(join(folder, "b"));
  mkdirSync(join(folder, "d"));
  writeFileSync(join(folder, "d/new"), "new\n");
  const found = commands.after(["make"], "session:3", 9);
  expect(found).toEqual({ run: expect.stringMatching(/^s9-[0-9a-f]{6}$/), paths: ["a", "b", "d/new"], leftOut: [] });
  writeFileSync(join(folder, "mine"), "and after it\n");

  const [record] = log.all();
  expect(record).toMatchObject({ turn: found!.run, at: 9, snapshot: { of: "session:3", command: ["make"] } });
  log.replace(record!, (await reverseTurn(record!, filesToUndo(folder))).inverse);
  expect([read("a"), read("b"), read("d/new"), read("mine")]).toEqual(["a\n", "b\n", undefined, "and after it\n"]);
  expect(statSync(join(folder, "b")).mode & 0o777).toBe(0o755);
  await reverseTurn(log.all()[0]!, filesToUndo(folder));
  expect([read("a"), read("b"), read("d/new")]).toEqual(["changed\n", undefined, "new\n"]);
});

test("a file that changed since stops it; a command that changed nothing leaves no trace", async () => {
  const { folder, log, read, commands } = scene();
  commands.before();
  expect(commands.after(["true"], "s:1", 1)).toBeUndefined();
  commands.before();
  writeFileSync(join(folder, "a"), "changed\n");
  writeFileSync(join(folder, "c"), "changed\n");
  commands.after(["make"], "s:1", 2);
  writeFileSync(join(folder, "c"), "saved in an editor\n");
  await expect(reverseTurn(log.all()[0]!, filesToUndo(folder))).rejects.toMatchObject({
    data: { conflicts: [join(folder, "c")] },
  });
  expect([read("a"), read("c")]).toEqual(["changed\n", "saved in an editor\n"]);
});

test("what is too large is named, and a folder of too many files is said before", () => {
  const { folder, log, commands } = scene({ maxFiles: 5, maxFileBytes: 100, maxTotalBytes: 200 });
  writeFileSync(join(folder, "big"), "x".repeat(101));
  symlinkSync("a", join(folder, "link"));
  expect(commands.before()).toBeUndefined();
  writeFileSync(join(folder, "big"), "y".repeat(101));
  writeFileSync(join(folder, "a"), "changed\n");
  expect(commands.after(["make"], "s:1", 1)).toMatchObject({ paths: ["a"], leftOut: ["big"] });
  commands.before();
  rmSync(join(folder, "big"));
  expect(commands.after(["rm"], "s:1", 2)).toEqual({ paths: [], leftOut: ["big"] });
  expect(log.all()).toHaveLength(1);
  for (const name of ["e", "f", "g"]) writeFileSync(join(folder, name), "");
  expect(commands.before()).toContain("more than 5 files");
  writeFileSync(join(folder, "a"), "again\n");
  expect(commands.after(["make"], "s:1", 3)).toBeUndefined();
});
