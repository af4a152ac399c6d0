/** Which repositories are found below the writable folders, within which bounds, and what is remembered of them. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createRepositories, gitFolders } from "../../../src/runtime/sandbox/repositories.ts";
import { freshFolder } from "./folder.ts";

const make = (root: string, ...names: readonly string[]) => {
  for (const name of names) mkdirSync(join(root, name), { recursive: true });
};
const bare = (folder: string) => {
  make(folder, "objects", "refs");
  writeFileSync(join(folder, "HEAD"), "ref: refs/heads/main\n");
};
const found = (root: string, repositories = createRepositories()) =>
  repositories
    .find([root])
    .map((path) => path.slice(root.length + 1))
    .toSorted();

test("a repository below is found by its .git, folder or file; the one at the top is protected elsewhere", () => {
  const root = freshFolder();
  make(root, ".git", "a/.git", "b/c/.git", "d");
  writeFileSync(join(root, "d", ".git"), "gitdir: ../a/.git\n");
  expect(found(root)).toEqual(["a/.git", "b/c/.git", "d/.git"]);
});

test("of a bare repository, what makes git run something is found, at the top as well", () => {
  const root = freshFolder();
  bare(join(root, "mirror.git"));
  make(root, "mirror.git/inside/.git");
  expect(found(root)).toEqual(["mirror.git/commondir", "mirror.git/config", "mirror.git/hooks"]);
  bare(root);
  expect(found(root)).toEqual(["commondir", "config", "hooks"]);
});

test("what only looks like a bare repository is none", () => {
  for (const missing of ["HEAD", "objects", "refs"]) {
    const root = freshFolder();
    bare(join(root, "almost"));
    rmSync(join(root, "almost", missing), { recursive: true });
    expect([missing, found(root)]).toEqual([missing, []]);
  }
});

test("links are not followed, and folders full of other people's files are not searched", () => {
  const [root, outside] = [freshFolder(), freshFolder()];
  make(outside, "far/.git");
  symlinkSync(outside, join(root, "link"));
  for (const skipped of ["node_modules", ".venv", "__pycache__", ".cache", ".git/modules"])
    make(root, `${skipped}/a/.git`);
  make(root, "node_modules_not/.git");
  expect(found(root)).toEqual(["node_modules_not/.git"]);
});

test("the search ends eight folders down", () => {
  const root = freshFolder();
  const down = (depth: number) => Array.from({ length: depth }, (_, n) => `d${n}`).join("/");
  make(root, `${down(8)}/.git`);
  make(root, `${down(8)}/x/.git`);
  expect(found(root)).toEqual([`${down(8)}/.git`]);
});

test("of very many folders the shallow ones are looked at, and of very many repositories two hundred", () => {
  const root = freshFolder();
  for (let n = 0; n < 230; n++) make(root, `r${n}/.git`);
  expect(found(root).length).toBe(200);
  const wide = freshFolder();
  for (let n = 0; n < 2_100; n++) mkdirSync(join(wide, `f${n}`));
  make(wide, "f0/deep/.git");
  expect(found(wide)).toEqual([]);
});

test("the whole disk is not searched, and what is gone or no folder is no reason to fail", () => {
  const root = freshFolder();
  writeFileSync(join(root, "file"), "");
  const repositories = createRepositories();
  expect(repositories.find(["/"])).toEqual([]);
  expect(repositories.find([join(root, "gone"), join(root, "file"), join(root, "file", "below")])).toEqual([]);
});

test("a repository that is made, moved or removed is seen the next time, whatever was remembered", () => {
  const root = freshFolder();
  // As if everything had been quiet for an hour: what was read may be remembered.
  const repositories = createRepositories(() => Date.now() + 3_600_000);
  make(root, "a/b");
  expect(found(root, repositories)).toEqual([]);
  make(root, "a/b/.git");
  expect(found(root, repositories)).toEqual(["a/b/.git"]);
  expect(found(root, repositories)).toEqual(["a/b/.git"]);
  renameSync(join(root, "a"), join(root, "z"));
  expect(found(root, repositories)).toEqual(["z/b/.git"]);
  rmSync(join(root, "z", "b", ".git"), { recursive: true });
  expect(found(root, repositories)).toEqual([]);
});

test("any tree gives every repository that is not inside a bare one, each once", () => {
  const name = fc.constantFrom("a", "b", "c");
  const place = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join("/"));
  fc.assert(
    fc.property(fc.uniqueArray(place, { maxLength: 8 }), (places) => {
      const root = freshFolderFor(places);
      const expected = places.map((one) => `${one}/.git`).toSorted();
      expect(found(root)).toEqual(expected);
      rmSync(root, { recursive: true });
    }),
    { numRuns: 40 },
  );
});

function freshFolderFor(places: readonly string[]): string {
  const root = freshFolder();
  for (const place of places) make(root, `${place}/.git`);
  return root;
}

test("a .git file leads to its folder, and a worktree's to the common one as well", () => {
  const root = freshFolder();
  make(root, "main/.git/worktrees/w", "w", "sub");
  writeFileSync(join(root, "w", ".git"), "gitdir: ../main/.git/worktrees/w\n");
  writeFileSync(join(root, "main/.git/worktrees/w/commondir"), "../..\n");
  expect(gitFolders(join(root, "w", ".git"))).toEqual([join(root, "main/.git/worktrees/w"), join(root, "main/.git")]);
  writeFileSync(join(root, "sub", ".git"), `gitdir: ${join(root, "main/.git")}\n`);
  expect(gitFolders(join(root, "sub", ".git"))).toEqual([join(root, "main/.git")]);
});

test("a .git file that leads nowhere, says nothing or is very long leads to nothing", () => {
  const root = freshFolder();
  for (const text of ["", "gitdir:", "gitdir: gone\n", "not a pointer\n", `gitdir: .\n${" ".repeat(5_000)}`]) {
    writeFileSync(join(root, ".git"), text);
    expect([text.slice(0, 20), gitFolders(join(root, ".git"))]).toEqual([text.slice(0, 20), []]);
  }
  expect(gitFolders(join(dirname(root), "nothing-there"))).toEqual([]);
});
