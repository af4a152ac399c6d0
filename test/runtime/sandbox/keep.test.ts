/**
 * Protected folders where nothing can hold them during a command: whatever it did to them, they are as
 * they were when it has ended, and what had to be done is said.
 */
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
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { keepTree, putBack } from "../../../src/runtime/sandbox/keep.ts";
import { freshFolder } from "./folder.ts";

/** Everything below a place: its kind, its mode, and what is in it. */
function state(root: string): Record<string, string> {
  const found: Record<string, string> = {};
  const look = (path: string, name: string) => {
    const stat = unlessClosed(() => lstatSync(path, { throwIfNoEntry: false }));
    if (stat === undefined) return void (found[name] = "nothing");
    const mode = (stat.mode & 0o7777).toString(8);
    if (stat.isSymbolicLink()) found[name] = `link ${readlinkSync(path)}`;
    else if (stat.isFile()) found[name] = `file ${mode} ${unlessClosed(() => readFileSync(path, "utf8")) ?? ""}`;
    else {
      found[name] = `folder ${mode}`;
      for (const one of unlessClosed(() => readdirSync(path)) ?? []) look(join(path, one), `${name}/${one}`);
    }
  };
  look(root, ".");
  return found;
}

/** Root may look everywhere, others not into what a command has closed. */
function unlessClosed<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EACCES") return undefined;
    throw error;
  }
}

const names = ["a", "b", "hooks", "hooks/pre-commit", "hooks/sub", "hooks/sub/deep", "config"];

function plant(workspace: string): string {
  const place = join(workspace, ".protected");
  mkdirSync(join(place, "hooks", "sub"), { recursive: true });
  writeFileSync(join(place, "config"), "[core]\n");
  writeFileSync(join(place, "hooks", "pre-commit"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(place, "hooks", "sub", "deep"), "deep\n", { mode: 0o600 });
  symlinkSync("config", join(place, "a"));
  return place;
}

/** What links lead to. The deeds go through links, so it must be a folder of the test's own. */
const elsewhere = mkdtempSync("/var/tmp/callgate-test-");
afterAll(() => rmSync(elsewhere, { recursive: true, force: true }));

/** What a command may do to a path, whether it succeeds or not. */
const deeds = {
  write: (path: string) => writeFileSync(path, "changed\n"),
  append: (path: string) => writeFileSync(path, "more\n", { flag: "a" }),
  empty: (path: string) => truncateSync(path, 0),
  remove: (path: string) => rmSync(path, { recursive: true }),
  open: (path: string) => chmodSync(path, 0o777),
  close: (path: string) => chmodSync(path, 0o500),
  folder: (path: string) => mkdirSync(path),
  link: (path: string) => symlinkSync(elsewhere, path),
  replace: (path: string) => {
    rmSync(path, { recursive: true });
    symlinkSync(elsewhere, path);
  },
  swap: (path: string) => {
    const data = readFileSync(path);
    rmSync(path);
    writeFileSync(path, data);
  },
  away: (path: string) => renameSync(path, join(dirname(path), "..", "moved-away")),
  aside: (path: string) => renameSync(path, `${path}-aside`),
  shut: (path: string) => {
    mkdirSync(join(path, "shut"));
    writeFileSync(join(path, "shut", "file"), "");
    chmodSync(join(path, "shut"), 0o000);
    chmodSync(path, 0o500);
  },
  touch: (path: string) => utimesSync(path, 1, 1),
} as const;

const deed = fc.tuple(
  fc.constantFrom(...(Object.keys(deeds) as (keyof typeof deeds)[])),
  fc.constantFrom(...names, ".", "new", "hooks/new", "b/new"),
);

test("whatever a command did, everything is as it was: content, modes, links, and nothing is added", () => {
  fc.assert(
    fc.property(fc.array(deed, { minLength: 1, maxLength: 6 }), (done) => {
      const workspace = freshFolder("/var/tmp");
      const place = plant(workspace);
      const before = state(place);
      const kept = keepTree(place);
      for (const [name, path] of done) {
        try {
          deeds[name](join(place, path));
        } catch {
          // It was not there, or could not be done.
        }
      }
      const changed = JSON.stringify(state(place)) !== JSON.stringify(before);
      const denials = putBack([kept], [workspace]);
      expect(state(place)).toEqual(before);
      if (changed) expect(denials.length).toBe(1);
      for (const { what, target, reason } of denials)
        expect([what, target?.startsWith(place), reason]).toEqual(["write", true, expect.stringContaining("undone")]);
      rmSync(workspace, { recursive: true, force: true });
    }),
    { numRuns: 150 },
  );
});

test("a folder that is moved away and closed comes back as open as it was", () => {
  const workspace = freshFolder("/var/tmp");
  const place = plant(workspace);
  const before = state(place);
  const kept = keepTree(place);
  chmodSync(join(place, "hooks", "sub"), 0o500);
  chmodSync(join(place, "hooks"), 0o500);
  renameSync(place, join(workspace, "away"));
  chmodSync(join(workspace, "away"), 0o000);
  expect(putBack([kept], [workspace])).toHaveLength(1);
  expect(state(place)).toEqual(before);
});

test("what nobody touched needs nothing, and is not told", () => {
  const workspace = freshFolder("/var/tmp");
  const place = plant(workspace);
  const kept = keepTree(place);
  readFileSync(join(place, "config"));
  utimesSync(join(place, "config"), 1, 1);
  expect(putBack([kept], [workspace])).toEqual([]);
});

test("a place that was not there is none to restore; that it appeared is another's to judge", () => {
  const workspace = freshFolder("/var/tmp");
  const kept = keepTree(join(workspace, ".protected"));
  expect(kept.entries.size).toBe(0);
  plant(workspace);
  expect(putBack([kept], [workspace])).toEqual([]);
  expect(existsSync(join(workspace, ".protected", "config"))).toBe(true);
});

test("a single file is kept like a folder of one", () => {
  const workspace = freshFolder("/var/tmp");
  const file = join(workspace, ".npmrc");
  writeFileSync(file, "a=1\n", { mode: 0o640 });
  const kept = keepTree(file);
  rmSync(file);
  mkdirSync(file);
  writeFileSync(join(file, "inside"), "");
  expect(putBack([kept], [workspace])).toMatchObject([{ target: file }]);
  expect(state(file)).toEqual({ ".": "file 640 a=1\n" });
});

test("a folder that was moved away comes back with what it holds, also from inside what took its place", () => {
  const workspace = freshFolder("/var/tmp");
  const place = plant(workspace);
  const [before, number] = [state(place), statSync(join(place, "hooks")).ino];
  for (const away of ["elsewhere/kept", ".protected-2", ".protected/config-2/x"]) {
    const kept = keepTree(place);
    mkdirSync(dirname(join(workspace, away)), { recursive: true });
    renameSync(join(place, "hooks"), join(workspace, away));
    expect(putBack([kept], [workspace])).toHaveLength(1);
    expect(state(place)).toEqual(before);
    expect(statSync(join(place, "hooks")).ino).toBe(number);
  }
  const kept = keepTree(place);
  renameSync(place, join(workspace, "aside"));
  mkdirSync(place);
  renameSync(join(workspace, "aside"), join(place, "inside"));
  expect(putBack([kept], [workspace])).toHaveLength(1);
  expect(state(place)).toEqual(before);
});

test("the bulk of a repository is not read: its objects may change, its settings and hooks not", () => {
  const workspace = freshFolder("/var/tmp");
  const git = join(workspace, ".git");
  for (const name of ["objects/ab", "refs/heads", "hooks"]) mkdirSync(join(git, name), { recursive: true });
  for (const name of ["HEAD", "config", "index", "refs/heads/main", "objects/ab/cd"])
    writeFileSync(join(git, name), `${name}\n`);
  const kept = keepTree(git);
  expect([...kept.entries.keys()]).not.toContain(join(git, "objects", "ab"));
  for (const name of ["index", "refs/heads/main", "objects/ab/cd", "objects/new"])
    writeFileSync(join(git, name), "new\n");
  expect(putBack([kept], [workspace])).toEqual([]);
  expect(readFileSync(join(git, "objects", "new"), "utf8")).toBe("new\n");
  writeFileSync(join(git, "HEAD"), "ref: elsewhere\n");
  writeFileSync(join(git, "hooks", "pre-commit"), "evil\n");
  expect(putBack([kept], [workspace])).toHaveLength(1);
  expect([readFileSync(join(git, "HEAD"), "utf8"), readdirSync(join(git, "hooks"))]).toEqual(["HEAD\n", []]);
});

test("what is called like the bulk of a repository, and lies in none, is kept", () => {
  const workspace = freshFolder("/var/tmp");
  const place = join(workspace, ".protected");
  mkdirSync(join(place, "refs"), { recursive: true });
  writeFileSync(join(place, "refs", "file"), "before\n");
  const kept = keepTree(place);
  writeFileSync(join(place, "refs", "file"), "after\n");
  expect(putBack([kept], [workspace])).toHaveLength(1);
  expect(readFileSync(join(place, "refs", "file"), "utf8")).toBe("before\n");
});

test("what is too much to be recorded is not protected, so the command does not run", () => {
  const workspace = freshFolder("/var/tmp");
  const place = join(workspace, ".protected");
  mkdirSync(place);
  writeFileSync(join(place, "large"), "");
  truncateSync(join(place, "large"), 33 * 1024 ** 2);
  expect(() => keepTree(place)).toThrow(expect.objectContaining({ code: "no_sandbox" }));
  truncateSync(join(place, "large"), 31 * 1024 ** 2);
  writeFileSync(join(place, "more"), "");
  truncateSync(join(place, "more"), 2 * 1024 ** 2);
  expect(() => keepTree(place)).toThrow(/too much lies in it/);
});

test("a record that is still true is used again, and one that is not is not", () => {
  const workspace = freshFolder("/var/tmp");
  const place = plant(workspace);
  const first = keepTree(place);
  writeFileSync(join(place, "config"), "[user]\n");
  const second = keepTree(place, first);
  expect(second.entries.get(join(place, "config"))?.data?.toString()).toBe("[user]\n");
  writeFileSync(join(place, "config"), "evil\n");
  putBack([second], [workspace]);
  expect(readFileSync(join(place, "config"), "utf8")).toBe("[user]\n");
});
