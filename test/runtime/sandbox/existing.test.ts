import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { thatMayExist } from "../../../src/runtime/sandbox/existing.ts";

const base = mkdtempSync(join(tmpdir(), "callgate-there-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

const names = Array.from({ length: 20 }, (_, index) => `.name${index}`);

function folder(name: string): string {
  const path = join(base, name);
  mkdirSync(path);
  return path;
}

test("files, folders and links that lead nowhere may exist; names that are missing do not", () => {
  const root = folder("plain");
  writeFileSync(join(root, ".name1"), "");
  mkdirSync(join(root, ".name2"));
  symlinkSync("nowhere", join(root, ".name3"));
  const found = thatMayExist(names.map((name) => join(root, name)));
  expect([...found].toSorted()).toEqual([1, 2, 3].map((index) => join(root, `.name${index}`)));
});

test("another spelling of a name may be that name, as on file systems without cases", () => {
  const root = folder("spelling");
  writeFileSync(join(root, ".NAME7"), "");
  expect([...thatMayExist(names.map((name) => join(root, name)))]).toEqual([join(root, ".name7")]);
});

test("in a folder that is missing, too large or not to be listed, every name may exist", () => {
  const crowded = folder("crowded");
  for (let index = 0; index < 1_200; index++) writeFileSync(join(crowded, `${index}-${"x".repeat(40)}`), "");
  const closed = folder("closed");
  chmodSync(closed, 0o300);
  // An ordinary user cannot list the closed folder; root can, and sees that it is empty.
  for (const root of [crowded, join(base, "missing"), ...(process.getuid?.() === 0 ? [] : [closed])]) {
    const paths = names.map((name) => join(root, name));
    expect([...thatMayExist(paths)]).toEqual(paths);
  }
});

test("a few names are looked at one by one", () => {
  const root = folder("few");
  expect([...thatMayExist([join(root, "a"), join(root, "b")])]).toEqual([join(root, "a"), join(root, "b")]);
});
