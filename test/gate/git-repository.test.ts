/** Which paths git tracks, as we read its index: the real git is the judge, in every version of the format. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { readIndex, trackedPaths } from "../../src/gate/git-repository.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "callgate-index-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const env = { PATH: process.env["PATH"] ?? "", HOME: root, GIT_CONFIG_NOSYSTEM: "1" };

function createRepository(how: readonly string[] = []) {
  const folder = mkdtempSync(join(root, "repository-"));
  const git = (args: readonly string[], input = "") =>
    execFileSync("git", args, { cwd: folder, env, input, encoding: "utf8", stdio: "pipe" });
  git(["init", "-q", ...how]);
  const empty = git(["hash-object", "-w", "--stdin"]).trim();
  return {
    folder,
    git,
    /** The index holds these paths afterwards, and they need not exist. */
    track(version: number, paths: readonly string[]) {
      rmSync(join(folder, ".git", "index"), { force: true });
      const lines = paths.map((path) => `100644 ${empty}\t${path}\0`).join("");
      git(["update-index", "--index-version", String(version), "-z", "--index-info"], lines);
    },
    listed: () => new Set(git(["ls-files", "-z"]).split("\0").filter(Boolean)),
  };
}

const versions = [2, 4] as const;

describe.each(versions)("version %i of the format", (version) => {
  const repository = createRepository();

  test("random trees are read as git reads them", () => {
    const name = fc.string({
      unit: fc.constantFrom("a", "b", "ä", "中", "𝒳", " ", "-", "é"),
      minLength: 1,
      maxLength: 5,
    });
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));
    fc.assert(
      fc.property(fc.uniqueArray(path, { minLength: 1, maxLength: 12 }), (drawn) => {
        // A file cannot have the name of a folder.
        const paths = drawn.filter((one) => !drawn.some((other) => other.startsWith(`${one}/`)));
        repository.track(version, paths);
        const isTracked = trackedPaths(repository.folder);
        const listed = repository.listed();
        expect([...listed].filter((one) => !isTracked(one))).toEqual([]);
        expect(listed.size).toBe(paths.length);
        for (const one of paths) expect(isTracked(`${one}x`) && !listed.has(`${one}x`), one).toBe(false);
      }),
      { numRuns: 12 },
    );
  });

  test("a name after a longer one with letters of several bytes is not lost", () => {
    repository.track(version, ["a中中中中.txt", "b.txt", "ä/ö/ü.txt", "ä/secret.pem"]);
    const isTracked = trackedPaths(repository.folder);
    expect(["a中中中中.txt", "b.txt", "ä/ö/ü.txt", "ä/secret.pem", "c.txt"].map(isTracked)).toEqual([
      true,
      true,
      true,
      true,
      false,
    ]);
  });

  test("a name of more than 127 bytes, and what comes after it, are read", () => {
    const long = `${"x".repeat(200)}/${"y".repeat(200)}.txt`;
    repository.track(version, [long, "z.txt", "w".repeat(300)]);
    const isTracked = trackedPaths(repository.folder);
    expect([long, "z.txt", "w".repeat(300)].map(isTracked)).toEqual([true, true, true]);
  });
});

test("an entry with more flags (version 3) is two bytes longer, and the next one is still found", () => {
  const repository = createRepository();
  for (const name of ["a.txt", "b.txt", "c.txt"]) writeFileSync(join(repository.folder, name), "x\n");
  repository.git(["add", "a.txt", "c.txt"]);
  repository.git(["add", "--intent-to-add", "b.txt"]);
  const isTracked = trackedPaths(repository.folder);
  expect(["a.txt", "b.txt", "c.txt", "d.txt"].map(isTracked)).toEqual([true, true, true, false]);
});

test("where there is no repository, or nothing was ever added, nothing is tracked", () => {
  const folder = mkdtempSync(join(root, "none-"));
  expect(trackedPaths(folder)("a.txt")).toBe(false);
  expect(trackedPaths(createRepository().folder)("a.txt")).toBe(false);
});

test.each(["", "DIRC", "not an index at all", "DIRC\0\0\0\u0002\0\0\0\u0009cut"])(
  "where the index is no index (%j), everything counts as tracked",
  (bytes) => {
    const { folder } = createRepository();
    writeFileSync(join(folder, ".git", "index"), bytes, "latin1");
    expect(trackedPaths(folder)("a.txt")).toBe(true);
    expect(() => readIndex(Buffer.from(bytes, "latin1"))).toThrow();
  },
);

test("one changed byte, or a part that lies in another file, and everything counts as tracked", () => {
  const { folder, git, track } = createRepository();
  track(2, ["a.txt"]);
  const index = join(folder, ".git", "index");
  const bytes = readFileSync(index);
  bytes[80]! ^= 1;
  writeFileSync(index, bytes);
  expect(trackedPaths(folder)("b.txt")).toBe(true);
  track(2, ["a.txt"]);
  expect(trackedPaths(folder)("b.txt")).toBe(false);
  git(["update-index", "--split-index"]);
  expect(trackedPaths(folder)("b.txt")).toBe(true);
});

test("an index without a hash at its end is read, and one with longer hashes", () => {
  const plain = createRepository();
  plain.git(["config", "index.skipHash", "true"]);
  plain.track(2, ["a.txt", "b/c.txt"]);
  const long = createRepository(["--object-format=sha256"]);
  long.track(4, ["a.txt", "b/c.txt"]);
  for (const { folder } of [plain, long])
    expect(["a.txt", "b/c.txt", "b", "d.txt"].map(trackedPaths(folder))).toEqual([true, true, false, false]);
});

describe("the repository of a path", () => {
  const { folder, git } = createRepository();
  mkdirSync(join(folder, "packages", "one"), { recursive: true });
  writeFileSync(join(folder, "packages", "one", "a.txt"), "x\n");
  git(["add", "."]);
  git(["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m"]);

  test("may begin above the workspace", () => {
    const isTracked = trackedPaths(join(folder, "packages"));
    expect(["one/a.txt", "one/b.txt", "one"].map(isTracked)).toEqual([true, false, false]);
  });

  test("may be a linked work tree, whose .git is a file", () => {
    const linked = join(root, "linked");
    git(["worktree", "add", "-q", "--detach", linked]);
    expect(["packages/one/a.txt", "b.txt"].map(trackedPaths(linked))).toEqual([true, false]);
  });

  test("may be another one than the workspace's", () => {
    const inner = join(folder, "inner");
    mkdirSync(inner);
    const inside = (args: readonly string[]) => execFileSync("git", args, { cwd: inner, env, stdio: "pipe" });
    inside(["init", "-q"]);
    writeFileSync(join(inner, "own.txt"), "x\n");
    inside(["add", "own.txt"]);
    const elsewhere = createRepository();
    elsewhere.track(2, ["far.txt"]);
    const isTracked = trackedPaths(folder);
    expect(["inner/own.txt", "own.txt", join(elsewhere.folder, "far.txt")].map(isTracked)).toEqual([true, false, true]);
  });
});

test("the index is looked at once for a list, when the first path is asked for", () => {
  const repository = createRepository();
  const isTracked = trackedPaths(repository.folder);
  repository.track(2, ["a.txt"]);
  expect(isTracked("a.txt")).toBe(true);
  repository.track(2, ["b.txt"]);
  expect([isTracked("a.txt"), isTracked("b.txt")]).toEqual([true, false]);
});
