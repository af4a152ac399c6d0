/** What an archive may unpack to: real archives, made by tar, against small limits. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { unpackArchive } from "../../src/cli/serve/archive.ts";
import { tempFolder } from "./run.ts";

const pack = (fill: (folder: string) => readonly string[], ...options: readonly string[]) => {
  const folder = tempFolder("packed");
  const names = fill(folder);
  const file = join(tempFolder("archive"), "a.tar.gz");
  execFileSync("tar", ["-czf", file, ...options, "-C", folder, ...names]);
  return file;
};
const zeros = (bytes: number) => (folder: string) => {
  writeFileSync(join(folder, "zeros"), "");
  truncateSync(join(folder, "zeros"), bytes);
  return ["zeros"];
};
/** a/b with four files, odd names and links among them: six entries. */
const tree = (folder: string) => {
  mkdirSync(join(folder, "a/b"), { recursive: true });
  writeFileSync(join(folder, "a/b/one two\nthree"), "12345");
  writeFileSync(join(folder, "a/b/four -> x"), "12345");
  symlinkSync("../../../some/place/far/away", join(folder, "a/b/link"));
  execFileSync("ln", [join(folder, "a/b/four -> x"), join(folder, "a/b/same")]);
  return ["a"];
};
/** One entry, that makes forty folders. */
const deep = (folder: string) => {
  const path = Array.from({ length: 40 }, () => "d").join("/");
  mkdirSync(join(folder, path), { recursive: true });
  writeFileSync(join(folder, path, "f"), "");
  return [`${path}/f`];
};

const foreignName = "äöü\nжжжжжж\\t";
const foreign = (folder: string) => {
  writeFileSync(join(folder, foreignName), "");
  return ["."];
};

test.each([
  [
    "zeros, well packed",
    pack(zeros(3_000_000)),
    { bytes: 2_999_999, entries: 9, pathBytes: 2048 },
    "more than 2999999 bytes",
  ],
  ["a hole", pack(zeros(3_000_000_000), "-S"), { bytes: 2 * 1024 ** 3, entries: 9, pathBytes: 2048 }, "more than 2 GB"],
  ["many", pack(tree), { bytes: 99, entries: 5, pathBytes: 2048 }, "more than 5 files and folders"],
  [
    "folders that only a path names",
    pack(deep),
    { bytes: 99, entries: 40, pathBytes: 2048 },
    "more than 40 files and folders",
  ],
  ["a long path", pack(deep), { bytes: 99, entries: 99, pathBytes: 80 }, "a path of more than 80 bytes"],
])("an archive beyond a limit is refused before anything is unpacked: %s", async (_name, file, limits, words) => {
  const folder = tempFolder("unpacked");
  await expect(unpackArchive(file, folder, limits)).rejects.toThrow(words);
  expect(readdirSync(folder)).toEqual([]);
});

test.each([
  ["zeros, well packed", pack(zeros(3_000_000)), { bytes: 3_000_000, entries: 1, pathBytes: 2048 }, ["zeros"]],
  ["a tree, each entry counted once", pack(tree), { bytes: 10, entries: 6, pathBytes: 2048 }, ["a"]],
  ["folders that only a path names", pack(deep), { bytes: 0, entries: 41, pathBytes: 81 }, ["d"]],
  [
    "a path with letters that are escaped in the list",
    pack(foreign),
    { bytes: 0, entries: 2, pathBytes: 23 },
    [foreignName],
  ],
])("an archive within its limits is unpacked: %s", async (_name, file, limits, names) => {
  const folder = tempFolder("unpacked");
  await unpackArchive(file, folder, limits);
  expect(readdirSync(folder)).toEqual(names);
});
