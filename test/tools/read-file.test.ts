import { closeSync, ftruncateSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { bytesRead } from "../work.ts";
import { engineIn, newWorkspace } from "./workspace.ts";

let ws: string;
let ask: ReturnType<typeof engineIn>["ask"];
beforeEach(() => {
  ws = newWorkspace();
  ({ ask } = engineIn(ws));
});

const put = (name: string, text: string | Buffer) => writeFileSync(join(ws, name), text);
const read = (input: object) => ask("read_file", { file_path: "f", ...input });

test("lines come with their numbers, CR dropped", async () => {
  put("f", "a\r\nb\nc");
  expect(await read({})).toBe("L1: a\nL2: b\nL3: c");
});

test("a slice says that there is more, and where it goes on", async () => {
  put("f", "a\nb\nc\nd\n");
  expect(await read({ offset: 2, limit: 2 })).toBe("L2: b\nL3: c\n(More lines follow; the next is offset 4.)");
  expect(await read({ offset: 3, limit: 2 })).toBe("L3: c\nL4: d");
});

test("a negative offset counts from the end", async () => {
  put("f", "a\nb\nc\n");
  expect(await read({ offset: -2 })).toBe("L-2: b\nL-1: c");
});

test("a long line is cut at 500 bytes between characters", async () => {
  put("f", "é".repeat(400));
  expect(await read({})).toBe(`L1: ${"é".repeat(250)}`);
});

test("the end of a file of five gigabytes costs no more than its lines", async () => {
  const fd = openSync(join(ws, "f"), "w");
  ftruncateSync(fd, 5 * 1024 ** 3);
  writeSync(fd, `first\nsecond\n${"text ".repeat(200)}\n`, 0);
  writeSync(fd, "\nlast but one\nlast\n", 5 * 1024 ** 3);
  closeSync(fd);
  const before = bytesRead();
  expect(await read({ offset: 1, limit: 2 })).toContain("L2: second");
  expect(await read({ offset: -2, limit: 2 })).toBe("L-2: last but one\nL-1: last");
  expect(bytesRead() - before).toBeLessThan(10_000_000);
});

test("what is not text is told by what it is", async () => {
  put("f", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0]));
  await expect(read({})).rejects.toThrow(/image\/png[\s\S]*view_image/);
  put("f", Buffer.from([1, 2, 0, 3]));
  await expect(read({})).rejects.toThrow(/binary data/);
  put("f", "%PDF-1.7 …");
  await expect(read({})).rejects.toThrow(/PDF/);
});

test("UTF-16 is read as text, broken UTF-8 with its errors shown", async () => {
  put("f", Buffer.from("\ufeffhé\nz\n", "utf16le"));
  expect(await read({})).toContain("L1: hé");
  put("f", Buffer.from([0x61, 0xff, 0x62]));
  expect(await read({})).toBe("L1: a\ufffdb");
});

test("an empty file, a missing one and an offset past the end are told apart", async () => {
  put("f", "");
  expect(await read({})).toBe("(The file is empty.)");
  put("f", "a\n");
  await expect(read({ offset: 5 })).rejects.toThrow(/fewer than 5 lines/);
  await expect(read({ offset: 0 })).rejects.toThrow(/counts from 1/);
  await expect(ask("read_file", { file_path: "none" })).rejects.toThrow(/does not exist/);
});

const code = [
  "import x",
  "",
  "# about A",
  "class A:",
  "    def one(self):",
  "        if x:",
  "            return 1",
  "        return 2",
  "",
  "    def two(self):",
  "        return 3",
  "",
  "class B:",
  "    pass",
].join("\n");

test("indentation mode gives the block around a line, level by level", async () => {
  put("f", code);
  const block = (indentation: object) => read({ mode: "indentation", offset: 7, indentation });
  expect(await block({ max_levels: 1 })).toBe("L6:         if x:\nL7:             return 1\nL8:         return 2");
  expect(await block({ max_levels: 2 })).toMatch(/^L5: {5}def one\(self\):\n[\s\S]*\nL11: {9}return 3$/);
  expect(await block({})).toMatch(/^L3: # about A\n[\s\S]*\nL14:/);
  expect(await block({ include_siblings: true })).toBe(await read({}));
  expect(await block({ max_lines: 1 })).toBe("L7:             return 1");
  await expect(block({ anchor_line: 99 })).rejects.toThrow(/no line 99/);
});
