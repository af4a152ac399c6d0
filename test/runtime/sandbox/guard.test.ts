import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { guardNames } from "../../../src/runtime/sandbox/guard.ts";
import { keepTree, putBack } from "../../../src/runtime/sandbox/keep.ts";
import { freshFolder } from "./folder.ts";

function guarded(isOnlySuspect = true) {
  const folder = freshFolder();
  const path = join(folder, ".git");
  const quarantine = join(folder, "state", "quarantine");
  return {
    folder,
    path,
    quarantine,
    guard: () => guardNames([path], { quarantine, isOnlySuspect: () => isOnlySuspect }),
  };
}

test("a name that was made is moved aside whole, and said so", () => {
  const { path, quarantine, guard } = guarded();
  const watch = guard();
  mkdirSync(path);
  writeFileSync(join(path, "config"), "evil");
  expect(watch.settle()).toMatchObject([{ what: "write", target: path }]);
  expect(existsSync(path)).toBe(false);
  const [kept] = readdirSync(quarantine);
  expect(readFileSync(join(quarantine, kept!, "config"), "utf8")).toBe("evil");
});

test("nothing made, nothing said, no folder for it", () => {
  const { quarantine, guard } = guarded();
  expect(guard().settle()).toEqual([]);
  expect(existsSync(quarantine)).toBe(false);
});

test("a name that something unconfined may have made is reported and left", () => {
  const { path, guard } = guarded(false);
  const watch = guard();
  mkdirSync(path);
  expect(watch.settle()).toMatchObject([{ what: "write", target: path }]);
  expect(existsSync(path)).toBe(true);
});

test("a protected link that was replaced is a link again", () => {
  const { folder, path, guard } = guarded();
  mkdirSync(join(folder, "real"));
  symlinkSync("real", path);
  const watch = guard();
  rmSync(path);
  mkdirSync(path);
  expect(watch.settle()).toMatchObject([{ target: path }]);
  expect(readlinkSync(path)).toBe("real");
});

test("where nothing could hold them, changed files come back and added ones go", () => {
  const git = join(freshFolder(), ".git");
  mkdirSync(join(git, "hooks"), { recursive: true });
  writeFileSync(join(git, "config"), "[core]");
  const kept = keepTree(git);
  writeFileSync(join(git, "config"), "[core] fsmonitor = evil");
  writeFileSync(join(git, "hooks", "pre-commit"), "evil", { mode: 0o755 });
  expect(putBack([kept], [])).toMatchObject([{ what: "write", target: join(git, "config") }]);
  expect(readFileSync(join(git, "config"), "utf8")).toBe("[core]");
  expect(readdirSync(join(git, "hooks"))).toEqual([]);
  expect(putBack([kept], [])).toEqual([]);
});

test("a folder that was put inside what took its place comes back with everything in it", () => {
  const folder = freshFolder();
  const git = join(folder, ".git");
  mkdirSync(join(git, "objects"), { recursive: true });
  writeFileSync(join(git, "HEAD"), "ref: refs/heads/main");
  writeFileSync(join(git, "objects", "a"), "bulk");
  const kept = keepTree(git);
  renameSync(git, join(folder, "away"));
  mkdirSync(git);
  renameSync(join(folder, "away"), join(git, "inside"));
  putBack([kept], [folder]);
  expect(readFileSync(join(git, "objects", "a"), "utf8")).toBe("bulk");
  expect(readdirSync(folder)).toEqual([".git"]);
});

test("a link put in place of the folder leads the restored files nowhere else", () => {
  const folder = freshFolder();
  const git = join(folder, ".git");
  const outside = join(folder, "outside");
  mkdirSync(git);
  mkdirSync(outside);
  writeFileSync(join(git, "config"), "[core]");
  const kept = keepTree(git);
  rmSync(git, { recursive: true });
  symlinkSync(outside, git);
  putBack([kept], []);
  expect(readdirSync(outside)).toEqual([]);
  expect(lstatSync(git).isDirectory()).toBe(true);
  expect(readFileSync(join(git, "config"), "utf8")).toBe("[core]");
});
