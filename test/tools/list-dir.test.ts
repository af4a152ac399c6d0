import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { engineIn, newWorkspace } from "./workspace.ts";

let ws: string;
let ask: ReturnType<typeof engineIn>["ask"];
beforeEach(() => {
  ws = newWorkspace();
  mkdirSync(join(ws, "b/c/d"), { recursive: true });
  writeFileSync(join(ws, "a.txt"), "12345");
  writeFileSync(join(ws, "b/big"), Buffer.alloc(3 * 1024 * 1024));
  symlinkSync("a.txt", join(ws, "l"));
  ({ ask } = engineIn(ws));
});

test("entries come with sizes, kinds and where links lead, two levels deep", async () => {
  expect(await ask("list_dir", { dir_path: "." })).toBe(
    [`Absolute path: ${ws}`, "a.txt (5 B)", "b/", "  big (3.0 MB)", "  c/", "l@ -> a.txt"].join("\n"),
  );
});

test("a name with a line break in it is one entry", async () => {
  writeFileSync(join(ws, "b/c/d/one\ntwo"), "");
  symlinkSync("one\ntwo", join(ws, "b/c/d/x"));
  expect(await ask("list_dir", { dir_path: "b/c/d" })).toBe(
    [`Absolute path: ${ws}/b/c/d`, '"one\\ntwo" (0 B)', 'x@ -> "one\\ntwo"'].join("\n"),
  );
});

test("depth and pages are as asked", async () => {
  expect(await ask("list_dir", { dir_path: ".", depth: 3 })).toContain("    d/");
  expect(await ask("list_dir", { dir_path: ".", depth: 1, limit: 2 })).toBe(
    [`Absolute path: ${ws}`, "a.txt (5 B)", "b/", "More than 2 entries found"].join("\n"),
  );
  expect(await ask("list_dir", { dir_path: ".", depth: 1, offset: 3 })).toBe(`Absolute path: ${ws}\nl@ -> a.txt`);
  await expect(ask("list_dir", { dir_path: ".", offset: 99 })).rejects.toThrow(/past the end/);
});

test("an empty folder is its path alone; a file is not a folder", async () => {
  expect(await ask("list_dir", { dir_path: "b/c/d" })).toBe(`Absolute path: ${ws}/b/c/d`);
  await expect(ask("list_dir", { dir_path: "a.txt" })).rejects.toThrow(/not a folder/);
});

test("version control and packages are named, and listed only when asked for", async () => {
  mkdirSync(join(ws, ".git/objects"), { recursive: true });
  mkdirSync(join(ws, "node_modules/x"), { recursive: true });
  const listed = await ask("list_dir", { dir_path: ".", depth: 3 });
  expect(listed).toContain(".git/\n");
  expect(listed).not.toContain("objects");
  expect(await ask("list_dir", { dir_path: "node_modules" })).toContain("x/");
});
