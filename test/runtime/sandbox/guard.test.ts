import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
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
  expect(watch.undo()).toMatchObject([{ what: "write", target: path }]);
  expect(existsSync(path)).toBe(false);
  const [kept] = readdirSync(quarantine);
  expect(readFileSync(join(quarantine, kept!, "config"), "utf8")).toBe("evil");
});

/** A quarantine on another file system, as where the state lies in a home folder and the workspace on a disk of its own. */
function guardedElsewhere() {
  const folder = mkdtempSync("/dev/shm/callgate-guard-");
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, ".git");
  const quarantine = join(freshFolder(), "quarantine");
  expect(statSync(folder).dev).not.toBe(statSync(join(quarantine, "..")).dev);
  const watch = guardNames([path], { quarantine, isOnlySuspect: () => true });
  mkdirSync(path);
  writeFileSync(join(path, "config"), "evil");
  return { folder, path, quarantine, watch };
}

test.skipIf(!existsSync("/dev/shm"))(
  "what was made is copied to a quarantine on another file system, with a pipe in it too (needs /dev/shm)",
  () => {
    const { folder, path, quarantine, watch } = guardedElsewhere();
    execFileSync("mkfifo", [join(path, "pipe")]);
    symlinkSync("/etc/passwd", join(path, "link"));
    const [denial] = watch.undo();
    expect(readdirSync(folder)).toEqual([]);
    const [kept] = readdirSync(quarantine);
    expect(readdirSync(join(quarantine, kept!)).toSorted()).toEqual(["config", "link"]);
    expect(readlinkSync(join(quarantine, kept!, "link"))).toBe("/etc/passwd");
    expect(denial?.reason).toContain(join(quarantine, kept!));
  },
);

test.skipIf(!existsSync("/dev/shm"))(
  "what is too large to be copied there loses its name all the same (needs /dev/shm)",
  () => {
    const { folder, path, quarantine, watch } = guardedElsewhere();
    truncateSync(join(path, "config"), 1024 ** 3); // with a hole: it takes no room here, but would there
    const [denial] = watch.undo();
    const [left, ...others] = readdirSync(folder);
    expect([left, others]).toEqual([expect.stringMatching(/^\.git-moved-\w+$/), []]);
    expect(denial?.reason).toContain(join(folder, left!));
    expect(readdirSync(quarantine)).toEqual([]);
  },
);

test("nothing made, nothing said, no folder for it", () => {
  const { quarantine, guard } = guarded();
  expect(guard().undo()).toEqual([]);
  expect(existsSync(quarantine)).toBe(false);
});

test("a name that something unconfined may have made is reported and left", () => {
  const { path, guard } = guarded(false);
  const watch = guard();
  mkdirSync(path);
  expect(watch.undo()).toMatchObject([{ what: "write", target: path }]);
  expect(existsSync(path)).toBe(true);
});

test("a protected link that was replaced is a link again", () => {
  const { folder, path, guard } = guarded();
  mkdirSync(join(folder, "real"));
  symlinkSync("real", path);
  const watch = guard();
  rmSync(path);
  mkdirSync(path);
  expect(watch.undo()).toMatchObject([{ target: path }]);
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

test("two things of one name that were made at the same moment are both moved aside, and neither covers the other", () => {
  const folder = freshFolder();
  const quarantine = join(folder, "quarantine");
  const paths = ["a", "b", "c"].map((name) => join(folder, name, ".git"));
  for (const path of paths) mkdirSync(join(path, ".."));
  const watch = guardNames(paths, { quarantine, isOnlySuspect: () => true, now: () => 1 });
  for (const path of paths) {
    mkdirSync(path);
    writeFileSync(join(path, "config"), path);
  }
  const denials = watch.undo();
  expect(denials.map(({ target }) => target)).toEqual(paths);
  const kept = readdirSync(quarantine).map((name) => readFileSync(join(quarantine, name, "config"), "utf8"));
  expect(kept.toSorted()).toEqual(paths);
  for (const [index, { reason }] of denials.entries()) {
    const place = /moved to (.+)$/.exec(reason)?.[1] ?? "";
    expect(readFileSync(join(place, "config"), "utf8")).toBe(paths[index]);
  }
});

test("a folder that was closed by whoever made it is moved aside all the same", () => {
  const { path, quarantine, guard } = guarded();
  const watch = guard();
  mkdirSync(join(path, "inner"), { recursive: true });
  writeFileSync(join(path, "inner", "file"), "evil");
  chmodSync(join(path, "inner"), 0o000);
  chmodSync(path, 0o000);
  expect(watch.undo()).toMatchObject([{ what: "write", target: path }]);
  expect([existsSync(path), readdirSync(quarantine).length]).toEqual([false, 1]);
});
