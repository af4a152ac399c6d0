import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { engineIn, newWorkspace } from "../workspace.ts";

let ws: string;
let ask: ReturnType<typeof engineIn>["ask"];
beforeEach(() => {
  ws = newWorkspace();
  mkdirSync(join(ws, "src"));
  writeFileSync(join(ws, "src/a.txt"), "one\ntwo\nthree\n");
  ({ ask } = engineIn(ws));
});

const get = (name: string) => readFileSync(join(ws, name), "utf8");

test("read gives the text as it is, or some lines of it", async () => {
  expect(await ask("internal_file_read", { path: "src/a.txt" })).toBe("one\ntwo\nthree\n");
  expect(await ask("internal_file_read", { path: "src/a.txt", offset: 2, limit: 1 })).toBe("two");
  writeFileSync(join(ws, "bin"), Buffer.from([0, 1]));
  await expect(ask("internal_file_read", { path: "bin" })).rejects.toThrow(/not text/);
});

test("write makes the folders, adds at the end if asked, and tells a file that changed meanwhile", async () => {
  await ask("internal_file_write", { path: "x/y.txt", content: "1\n" });
  await ask("internal_file_write", { path: "x/y.txt", content: "2\n", append: true });
  expect(get("x/y.txt")).toBe("1\n2\n");
  await ask("internal_file_read", { path: "src/a.txt" });
  writeFileSync(join(ws, "src/a.txt"), "by a person\n");
  await expect(ask("internal_file_write", { path: "src/a.txt", content: "x" })).rejects.toThrow(/stale/);
  await ask("internal_file_write", { path: "src/a.txt", content: "x", overwrite_changed: true });
  expect(get("src/a.txt")).toBe("x");
});

test("list gives name, path, type, size and time, the whole tree if asked", async () => {
  const flat = JSON.parse(await ask("internal_file_list", {})) as { entries: Record<string, unknown>[] };
  expect(flat.entries).toMatchObject([{ name: "src", path: "src", type: "directory" }]);
  const deep = JSON.parse(await ask("internal_file_list", { recursive: true })) as {
    entries: Record<string, unknown>[];
  };
  expect(deep.entries[1]).toMatchObject({
    name: "a.txt",
    path: "src/a.txt",
    type: "file",
    size: 14,
    modified: expect.stringMatching(/^\d{4}-/),
  });
});

test("delete takes a folder only with everything in it when asked", async () => {
  await expect(ask("internal_file_delete", { path: "src" })).rejects.toThrow(/not empty/);
  await ask("internal_file_delete", { path: "src", recursive: true });
  expect(existsSync(join(ws, "src"))).toBe(false);
  await expect(ask("internal_file_delete", { path: "src" })).rejects.toThrow(/does not exist/);
});

test("mkdir makes the folders above unless told not to", async () => {
  await ask("internal_file_mkdir", { path: "a/b/c" });
  expect(existsSync(join(ws, "a/b/c"))).toBe(true);
  await expect(ask("internal_file_mkdir", { path: "q/r", recursive: false })).rejects.toThrow(/ q does not exist/);
});

test("move and copy make the folder they go to and write over nothing", async () => {
  await ask("internal_file_copy", { source: "src", destination: "backup/src" });
  await ask("internal_file_move", { source: "src/a.txt", destination: "new/b.txt" });
  expect(get("backup/src/a.txt")).toBe(get("new/b.txt"));
  expect(existsSync(join(ws, "src/a.txt"))).toBe(false);
  await expect(ask("internal_file_move", { source: "new/b.txt", destination: "backup/src/a.txt" })).rejects.toThrow(
    /exists already/,
  );
  await expect(ask("internal_file_copy", { source: "none", destination: "x" })).rejects.toThrow(/does not exist/);
  await expect(ask("internal_file_move", { source: "new/b.txt", destination: "../out.txt" })).rejects.toThrow();
});
