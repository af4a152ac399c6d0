import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { engineIn, newWorkspace } from "./workspace.ts";

let ws: string;
let ask: ReturnType<typeof engineIn>["ask"];
beforeEach(() => {
  ws = newWorkspace();
  writeFileSync(join(ws, "f"), "one\ntwo\ntwo\nthree\n");
  ({ ask } = engineIn(ws));
});

const edit = (input: object) => ask("str_replace_editor", { command: "str_replace", path: "f", ...input });
const text = () => readFileSync(join(ws, "f"), "utf8");

test("the one occurrence is replaced, with its line told", async () => {
  expect(await edit({ old_str: "three", new_str: "3 $& $1" })).toBe("Replaced in f, at line 4.");
  expect(text()).toBe("one\ntwo\ntwo\n3 $& $1\n");
});

test("none and several are refused with where they are", async () => {
  await expect(edit({ old_str: "two", new_str: "x" })).rejects.toThrow(/lines 2 and 3/);
  await expect(edit({ old_str: "on e", new_str: "x" })).rejects.toThrow(/not in f/);
  await expect(edit({ new_str: "x" })).rejects.toThrow(/needs old_str/);
  expect(text()).toBe("one\ntwo\ntwo\nthree\n");
});

test("a CRLF file is matched by LF text and stays CRLF", async () => {
  writeFileSync(join(ws, "f"), "a\r\nb\r\nc\r\n");
  await edit({ old_str: "a\nb", new_str: "x\ny\nz" });
  expect(text()).toBe("x\r\ny\r\nz\r\nc\r\n");
});

test("a file is created, inserted into and viewed", async () => {
  await ask("str_replace_editor", { command: "create", path: "d/new", file_text: "1\n3\n" });
  await ask("str_replace_editor", { command: "insert", path: "d/new", insert_line: 1, new_str: "2" });
  expect(await ask("str_replace_editor", { command: "view", path: "d/new" })).toBe("1\t1\n2\t2\n3\t3");
  expect(await ask("str_replace_editor", { command: "view", path: "d/new", view_range: [2, 2] })).toBe("2\t2");
  await expect(ask("str_replace_editor", { command: "create", path: "d/new", file_text: "" })).rejects.toThrow(
    /exists already/,
  );
  await expect(
    ask("str_replace_editor", { command: "insert", path: "d/new", insert_line: 9, new_str: "" }),
  ).rejects.toThrow(/3 lines/);
});

test("a view that does not reach the end of the file says so, and one from behind its end is an error", async () => {
  writeFileSync(join(ws, "f"), "x\n".repeat(2_001));
  const view = (range?: readonly number[]) =>
    ask("str_replace_editor", { command: "view", path: "f", ...(range ? { view_range: range } : {}) });
  const whole = String(await view()).split("\n");
  expect(whole.slice(-2)).toEqual(["2000\tx", "(More lines follow; the next is line 2001.)"]);
  expect(await view([2_000, -1])).toBe("2000\tx\n2001\tx");
  expect(await view([1, 2])).toBe("1\tx\n2\tx");
  await expect(view([2_002, -1])).rejects.toThrow(/fewer than 2002 lines/);
  await expect(view([-3, -1])).rejects.toThrow(/line 1 or later/);
});

test("of edits made at the same time none is lost", async () => {
  writeFileSync(join(ws, "f"), Array.from({ length: 10 }, (_, index) => `<${index}>`).join("\n"));
  await Promise.all(Array.from({ length: 10 }, (_, index) => edit({ old_str: `<${index}>`, new_str: `(${index})` })));
  expect(text()).toBe(Array.from({ length: 10 }, (_, index) => `(${index})`).join("\n"));
});
