/** What a person reads before they keep or drop what a held command did. */
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { readSides } from "../../../src/runtime/effects/contents.ts";
import { besideLines, effectLines, effectsDiff, whyDirect } from "../../../src/runtime/effects/show.ts";
import type { Effect } from "../../../src/spec/effects.ts";

const effect = (path: string, kind: Effect["kind"], more: Partial<Effect> = {}): Effect => ({
  path,
  kind,
  type: "file",
  ...more,
});
const shown = (list: readonly Effect[]) => effectLines(list).map(({ mark, text }) => `${mark} ${text}`);

/** Both sides of a run on disk: the workspace, and what the run wrote. */
function sidesOf(before: Readonly<Record<string, string | Buffer>>, after: Readonly<Record<string, string | Buffer>>) {
  const place = mkdtempSync(join(tmpdir(), "callgate-show-"));
  const sides = { folder: join(place, "run"), roots: [join(place, "ws")] };
  const write = (folder: string, files: Readonly<Record<string, string | Buffer>>) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  };
  write(join(place, "ws"), before);
  write(join(place, "run", "u0"), after);
  return sides;
}

test("what goes is listed first, then what changes, then what comes", () => {
  const list = [effect("new", "added"), effect("mode", "mode"), effect("gone", "removed"), effect("other", "changed")];
  expect(shown(list)).toEqual(["- gone", "~ mode", "~ other", "+ new"]);
});

test("a file is told with its size, and with both where it changed", () => {
  expect(shown([effect("a", "added", { size: 999 })])).toEqual(["+ a (999 B)"]);
  expect(shown([effect("a", "added", { size: 1_000 })])).toEqual(["+ a (1.0 kB)"]);
  expect(shown([effect("a", "added", { size: 10_000 })])).toEqual(["+ a (10 kB)"]);
  expect(shown([effect("a", "added", { size: 999_000 })])).toEqual(["+ a (999 kB)"]);
  expect(shown([effect("a", "added", { size: 1_000_000 })])).toEqual(["+ a (1.0 MB)"]);
  expect(shown([effect("a", "added", { size: 5e15 })])).toEqual(["+ a (5000 TB)"]);
  expect(shown([effect("a", "removed", { sizeBefore: 7 })])).toEqual(["- a (7 B)"]);
  expect(shown([effect("a", "changed", { sizeBefore: 7, size: 8 })])).toEqual(["~ a (7 B → 8 B)"]);
  expect(shown([effect("a", "changed", { sizeBefore: 7, size: 7 })])).toEqual(["~ a"]);
  expect(shown([effect("a", "mode", { sizeBefore: 7, size: 7, touched: true })])).toEqual(["~ a (only its time)"]);
});

test("modes are told where they changed, and a program that will run as its owner always", () => {
  expect(shown([effect("a", "mode", { modeBefore: "644", mode: "755" })])).toEqual(["~ a (mode 644 → 755)"]);
  expect(shown([effect("a", "mode", { modeBefore: "644", mode: "644" })])).toEqual(["~ a"]);
  expect(shown([effect("a", "mode", { modeBefore: "755", mode: "4755" })])).toEqual([
    "~ a (mode 755 → 4755: runs as its owner)",
  ]);
  expect(shown([effect("a", "added", { mode: "2755" })])).toEqual(["+ a (mode 2755: runs as its owner)"]);
  expect(shown([effect("a", "added", { mode: "755" })])).toEqual(["+ a"]);
  expect(shown([effect("a", "removed", { modeBefore: "4755" })])).toEqual(["- a"]);
});

test("links say where they point, other kinds what they are, and what else a person must know", () => {
  expect(shown([effect("l", "added", { type: "link", target: "/etc" })])).toEqual(["+ l -> /etc"]);
  expect(shown([effect("d", "added", { type: "folder" })])).toEqual(["+ d/"]);
  expect(shown([effect(".", "mode", { type: "folder", modeBefore: "755", mode: "700" })])).toEqual([
    "~ . (mode 755 → 700)",
  ]);
  expect(shown([effect("p", "added", { type: "pipe" as Effect["type"] })])).toEqual(["+ p (pipe)"]);
  expect(shown([effect("d", "changed", { typeBefore: "folder" })])).toEqual(["~ d (was a folder)"]);
  expect(shown([effect("a", "mode", { attributes: true })])).toEqual(["~ a (its attributes)"]);
  expect(shown([effect("a", "changed", { otherNames: 1 })])).toEqual([
    "~ a (has 1 other name, which keep the old content)",
  ]);
  expect(shown([effect("a", "changed", { otherNames: 2 })])).toEqual([
    "~ a (has 2 other names, which keep the old content)",
  ]);
  expect(shown([effect("a", "changed", { conflict: true })])).toEqual(["~ a (CHANGED BY SOMEBODY ELSE MEANWHILE)"]);
});

test("a folder with all that is in it is one line, which chooses all of it", () => {
  const list = [
    effect("d", "removed", { type: "folder" }),
    effect("d/a", "removed", { sizeBefore: 600, inside: "d" }),
    effect("d/s", "removed", { type: "folder", inside: "d" }),
    effect("d/s/b", "removed", { sizeBefore: 600, inside: "d/s" }),
    effect("e", "added", { type: "folder" }),
    effect("e/a", "added", { size: 1, inside: "e" }),
  ];
  expect(effectLines(list)).toEqual([
    { mark: "-", text: "d/ (2 files, 1.2 kB)", paths: ["d", "d/a", "d/s", "d/s/b"] },
    { mark: "+", text: "e/ (1 file, 1 B)", paths: ["e", "e/a"] },
  ]);
});

test("what git runs or obeys stands before everything else, by itself", () => {
  const list = [
    effect("gone", "removed"),
    effect(".git/hooks", "added", { type: "folder" }),
    effect(".git/hooks/post-commit", "added"),
    effect(".git/config", "changed"),
    effect("sub/.git/info/attributes", "added"),
  ];
  expect(shown(list).slice(0, 4)).toEqual([
    "! .git/hooks/post-commit: git runs programs that are named there",
    "! .git/config: git runs programs that are named there",
    "! sub/.git/info/attributes: git runs programs that are named there",
    "- gone",
  ]);
});

test("the rest of a repository is told in git's words, every path once", () => {
  const list = [
    effect(".git/refs/heads/main", "added"),
    effect(".git/refs/tags/v1", "removed"),
    effect(".git/objects/12", "added", { type: "folder" }),
    effect(".git/objects/12/34", "added"),
    effect(".git/objects/ab/cd", "removed"),
    effect(".git/objects/ab/ce", "removed"),
    effect(".git/index", "changed"),
    effect(".git/logs/HEAD", "changed"),
    effect(".git/description", "changed"),
  ];
  const lines = effectLines(list);
  expect(lines.map(({ mark, text }) => `${mark} ${text}`)).toEqual([
    "git main: new, at ",
    "git tags/v1: removed",
    "git 1 new object",
    "git 2 objects packed or removed",
    "git index",
    "git .git/description changed",
  ]);
  expect(new Set(lines.flatMap(({ paths }) => paths))).toEqual(new Set(list.map(({ path }) => path)));
  expect(shown([effect(".git/logs/HEAD", "changed"), effect(".git/ORIG_HEAD", "added")])).toEqual(["git its own logs"]);
  expect(shown([effect(".git/packed-refs", "added")])).toEqual(["git references were packed"]);
});

test("a branch says where it came from, where it went, and how many commits the run made", () => {
  const [first, second, third] = ["1", "2", "3"].map((digit) => digit.repeat(40)) as [string, string, string];
  const commit = (...parents: readonly string[]) =>
    deflateSync(`commit 9\0tree x\n${parents.map((parent) => `parent ${parent}\n`).join("")}author a\n\nm\n`);
  const object = (id: string) => `.git/objects/${id.slice(0, 2)}/${id.slice(2)}`;
  const after = {
    ".git/refs/heads/main": `${third}\n`,
    ".git/HEAD": "ref: refs/heads/other\n",
    [object(third)]: commit(second),
    [object(second)]: commit(first),
    [object(first)]: commit(),
  };
  const sides = sidesOf({ ".git/refs/heads/main": `${first}\n`, ".git/HEAD": "ref: refs/heads/main\n" }, after);
  const said = (list: readonly Effect[]) => effectLines(list, sides).map(({ text }) => text);
  expect(said([effect(".git/refs/heads/main", "changed")])).toEqual(["main: 1111111 → 3333333, 2 commits"]);
  expect(said([effect(".git/refs/heads/main", "added")])).toEqual(["main: new, at 3333333, 3 commits"]);
  expect(said([effect(".git/HEAD", "changed")])).toEqual(["HEAD: main → other"]);
  // A commit that was there before, and what is no commit, count nothing.
  const other = sidesOf({ ".git/refs/heads/main": first }, { ".git/refs/heads/main": second, [object(second)]: "x" });
  expect(effectLines([effect(".git/refs/heads/main", "changed")], other)[0]?.text).toBe("main: 1111111 → 2222222");
});

test("the diff shows what changed, then what is new, and nothing of what went, was touched, or is git's", () => {
  const sides = sidesOf(
    { "a.txt": "one\n", "gone.txt": "x\n" },
    { "a.txt": "two\n", "b.txt": "new\n", "t.txt": "t\n", ".git/x": "g\n" },
  );
  const list = [
    effect("b.txt", "added"),
    effect("a.txt", "changed"),
    effect("gone.txt", "removed"),
    effect("t.txt", "mode", { touched: true }),
    effect(".git/x", "added"),
    effect("d/in.txt", "added", { inside: "d" }),
  ];
  const diff = effectsDiff(list, sides) ?? "";
  expect(diff.match(/^diff .*$/gm)).toEqual(["diff --git a/a.txt b/a.txt", "diff --git a/b.txt b/b.txt"]);
  expect(diff).toContain("-one\n+two\n");
  expect(diff).toContain("new file mode");
  expect(effectsDiff([effect("gone.txt", "removed")], sides)).toBeUndefined();
});

test("a diff that is too long or of too many files says that it is cut", () => {
  const names = Array.from({ length: 51 }, (_, n) => `f${n}`);
  const many = sidesOf({}, Object.fromEntries(names.map((name) => [name, "x\n"])));
  const added = names.map((name) => effect(name, "added"));
  const diff = effectsDiff(added, many) ?? "";
  expect(diff.match(/^diff /gm)).toHaveLength(50);
  expect(diff).toContain("(The rest of the diff is left out.)");
  expect(effectsDiff(added.slice(1), many)).not.toContain("left out");
  const long = sidesOf({}, { a: "line\n".repeat(100) });
  const cut = effectsDiff([effect("a", "added")], long, 200) ?? "";
  expect(cut).toMatch(/^diff [^]{195}\n\(The rest of the diff is left out\.\)\n$/);
});

test("contents are read from the root a path lies in, never through a link, and never more than a diff shows", () => {
  const place = mkdtempSync(join(tmpdir(), "callgate-show-"));
  const [ws, extra, folder] = [join(place, "ws"), join(place, "extra"), join(place, "run")];
  for (const path of [ws, extra, join(folder, "u0"), join(folder, "u1")]) mkdirSync(path, { recursive: true });
  writeFileSync(join(ws, "a"), "ws before");
  writeFileSync(join(folder, "u0", "a"), "ws after");
  writeFileSync(join(extra, "a"), "extra before");
  writeFileSync(join(folder, "u1", "a"), "extra after");
  writeFileSync(join(folder, "u0", "big"), Buffer.alloc(1024 * 1024 + 1));
  writeFileSync(join(folder, "u0", "full"), Buffer.alloc(1024 * 1024));
  symlinkSync(join(ws, "a"), join(folder, "u0", "link"));
  const sides = { folder, roots: [ws, extra] };
  const text = (one: Effect) => {
    const { before, after } = readSides(one, sides);
    return [before, after].map((side) => side && Buffer.from(side).toString());
  };
  expect(text(effect("a", "changed"))).toEqual(["ws before", "ws after"]);
  expect(text(effect(join(extra, "a"), "changed"))).toEqual(["extra before", "extra after"]);
  expect(text(effect("a", "added"))).toEqual([undefined, "ws after"]);
  expect(text(effect("a", "removed"))).toEqual(["ws before", undefined]);
  expect(text(effect("link", "added"))).toEqual([undefined, undefined]);
  expect(text(effect("big", "added"))).toEqual([undefined, undefined]);
  expect(readSides(effect("full", "added"), sides).after).toHaveLength(1024 * 1024);
  expect(readSides(effect("a", "changed"), undefined)).toEqual({});
});

test("what a command met beside its changes is told, requests counted by what became of them", () => {
  const request = (host: string, allowed: boolean) => ({ method: "GET", host, port: 443, allowed });
  const nothing = { denied: undefined, exitCode: 0, requests: [], direct: undefined };
  expect(besideLines(nothing)).toEqual([]);
  const said = besideLines({
    denied: { what: "write", target: "/etc/x", reason: "read-only" },
    exitCode: 1,
    requests: [request("a.test", true), request("a.test", true), request("a.test", false)],
    direct: undefined,
  });
  expect(said.map(({ mark, text }) => `${mark} ${text}`)).toEqual([
    "! it ended with exit code 1",
    "! refused: write /etc/x (read-only)",
    "net asked: GET a.test:443 (2 times)",
    "net refused: GET a.test:443",
  ]);
  expect(besideLines({ ...nothing, exitCode: null, direct: "it cannot be held" })[0]?.text).toBe(
    "it ended with exit code none; it cannot be held, so it may have to run directly",
  );
});

test("a failure is put down to being held only by the words of one, and only where it failed", () => {
  const ended = (exitCode: number, head: string, tail = "") => whyDirect({ exitCode, output: { head, tail } });
  expect(ended(1, "mv: Invalid cross-device link")).toContain("renaming a folder");
  expect(ended(1, "", "errno EXDEV")).toContain("renaming a folder");
  expect(ended(1, "cp: Value too large for defined data type")).toContain("another user or group");
  expect(ended(0, "mv: Invalid cross-device link")).toBeUndefined();
  expect(ended(1, "no such file")).toBeUndefined();
});
