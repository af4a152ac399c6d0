/**
 * The real git as the judge of our reading: random command lines, and each one that counts as harmless is run in a
 * repository whose settings would run a program wherever git lets them. None may change a file, a branch or a
 * setting, start a program, or show what lies outside.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { judge } from "../../src/gate/command/harmless.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "callgate-git-")));
const folder = join(root, "ws");
const ran = join(root, "ran");
const env = {
  PATH: "/usr/bin:/bin",
  HOME: root,
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_OPTIONAL_LOCKS: "0", // else status rewrites its cache of file times
  LC_ALL: "C",
};
const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: folder, env, stdio: "pipe" });

mkdirSync(folder);
writeFileSync(join(root, "secret"), "S3CRET\n");
const program = join(root, "program.sh");
writeFileSync(program, `#!/bin/sh\necho ran >> ${ran}\nexit 1\n`);
chmodSync(program, 0o755);
git("init", "-q", "-b", "main");
git("config", "user.name", "a");
git("config", "user.email", "a@b.c");
for (const [at, text] of ["one\n", "one\ntwo\n", "one\nthree\n"].entries()) {
  writeFileSync(join(folder, "a"), text);
  writeFileSync(join(folder, `b${at}`), text);
  git("add", "-A");
  git("commit", "-qm", `change ${at}`);
}
git("tag", "v1");
git("branch", "other");
writeFileSync(join(folder, "b0"), "stashed\n");
git("stash");
writeFileSync(join(folder, "b1"), "dirty\n");
writeFileSync(join(folder, "list"), "a\n");
// What our judge of settings would object to is set here on purpose: these run only when an option asks for them.
for (const key of ["difftool.x.cmd", "gpg.program", "core.editor", "sequence.editor", "remote.origin.uploadpack"])
  git("config", key, program);
git("config", "diff.x.textconv", program);
git("config", "remote.origin.url", folder);

afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Everything in the folder by its name and content, but for what git writes down about file times. */
function fingerprint(): string {
  const hash = createHash("sha256");
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" }).toSorted()) {
    if (name === "ws/.git/index") continue;
    const path = join(root, name);
    hash.update(`${name}\0`);
    if (lstatSync(path).isFile()) hash.update(readFileSync(path));
  }
  return hash.digest("hex");
}

// prettier-ignore
const subcommands = [
  "status", "log", "shortlog", "show", "diff", "diff-tree", "diff-index", "diff-files", "rev-parse", "rev-list", "merge-base", "name-rev",
  "describe", "blame", "annotate", "grep", "ls-files", "ls-tree", "cat-file", "for-each-ref", "show-ref", "count-objects", "check-ignore",
  "check-attr", "whatchanged", "cherry", "range-diff", "branch", "tag", "version", "remote", "stash", "worktree", "reflog", "symbolic-ref", "config",
];
// prettier-ignore
const pieces = [
  "HEAD", "HEAD~1", "main", "other", "new", "v1", "a", "b0", "list", "show", "add", "delete", "expire", "drop", "pop", "apply", "get-url", "origin", "set-url",
  "prune", "HEAD:a", "HEAD@{0}", "main..other", "HEAD~2..HEAD~1", "refs/heads/x", "user.name", "core.pager", "../secret", "x", "--", "-", "-1", "-2", "-5",
  "-p", "-u", "-s", "-v", "-vv", "-q", "-a", "-r", "-l", "-n", "-d", "-D", "-m", "-M", "-c", "-C", "-f", "-F", "-i", "-e", "-E", "-o", "-O", "-Olist", "-S", "-G", "-L", "-L1,2:a",
  "-t", "-w", "-W", "-x", "-X", "-z", "-U3", "-U", "-B", "-R", "-b", "-h", "-H", "-P", "-g", "-k", "-A", "-lnew", "-Sone", "-nO", "-pO", "-iOx",
  "--all", "--oneline", "--graph", "--stat", "--patch", "--name-only", "--cached", "--staged", "--list", "--contains", "--merged", "--no-merged", "--points-at", "--sort", "--sort=refname",
  "--format", "--format=%H", "--format=%GG", "--format=%(refname)", "--pretty=%G?", "--show-current", "--output", "--output=made", "--outp=made", "--out", "--ext-diff", "--textconv", "--no-index", "--no-inde",
  "--show-signature", "--edit-description", "--set-upstream-to=main", "--unset-upstream", "--delete", "--del", "--move", "--copy", "--force", "--create-reflog", "--track", "--recurse-submodules",
  "--contents=../secret", "--contents", "--ignore-revs-file=list", "--stdin", "--pathspec-from-file=list", "--exclude-from=list", "--sign", "--local-user=a", "--file=list", "--message=x", "--annotate",
  "--orphan", "--upload-pack=x", "--open-files-in-pager=x", "--open", "--exec=x", "--batch", "--batch-check", "--filters", "--remerge-diff", "--bisect", "--follow", "--reverse", "--since", "--since=2000",
  "--author", "--grep=x", "--max-count=1", "--verify", "--abbrev-ref", "--git-dir", "--short", "--show-toplevel", "--dirty", "--always", "--tags", "--porcelain", "--no-list", "--no-contains", "--column",
  "--add", "--unset", "--get", "--global", "--replace-all", "--null", "--path-format=absolute", "--no-walk", "--word-diff", "--submodule", "--submodule=log", "--ignored", "--untracked-files=all",
];

const runs = Number(process.env["CALLGATE_ORACLE_RUNS"] ?? 250);

test(
  "random git command lines that count as harmless leave everything as it was",
  () => {
    const before = fingerprint();
    let allowed = 0;
    const words = fc.array(fc.constantFrom(...pieces), { maxLength: 5 });
    fc.assert(
      fc.property(fc.constantFrom(...subcommands), words, (name, more) => {
        const args = [name, ...more];
        const judged = judge("git", args);
        if ("why" in judged || judged.reads.some((path) => path.startsWith("/") || path.includes(".."))) return;
        allowed++;
        const { stdout, stderr } = spawnSync("git", args, {
          cwd: folder,
          env,
          input: "a\n",
          encoding: "utf8",
          timeout: 10_000,
        });
        expect(`${stdout}${stderr}`, args.join(" ")).not.toContain("S3CRET");
        expect(existsSync(ran), `${args.join(" ")} started a program`).toBe(false);
        expect(fingerprint(), args.join(" ")).toBe(before);
      }),
      { numRuns: runs * 4 },
    );
    expect(allowed).toBeGreaterThan(runs / 4);
  },
  30_000 + runs * 100,
);

// Abbreviations, glued and swallowed options, names that create, formats that check signatures, files that git would read.
test.each([
  "log --outp=x",
  "diff --output x",
  "diff --no-inde a /etc/passwd",
  "log --since --output=x",
  "log -n --output=x",
  "branch new",
  "branch -v new",
  "branch --sort=x new",
  "branch -lD main",
  "branch --no-list new",
  "tag new",
  "tag -n new",
  "tag -lf new",
  "reflog --oneline delete HEAD@{0}",
  "reflog expire --all",
  "symbolic-ref HEAD refs/heads/x",
  "symbolic-ref -m why HEAD",
  "stash",
  "stash pop",
  "worktree add x",
  "worktree prune",
  "remote add x y",
  "remote get-url --push x y",
  "grep -Oless x",
  "grep -iOless x",
  "grep --open-files-in-pager=x y",
  "grep -f list x",
  "grep --no-index x",
  "log --format=%G?",
  "for-each-ref --format=%(signature)",
  "show --show-signature",
  "diff --ext-diff",
  "log --textconv",
  "blame --contents /etc/passwd a",
  "blame -S list a",
  "ls-files -X list",
  "cat-file --batch",
  "cat-file --textconv HEAD:a",
  "rev-list --stdin",
  "status --pathspec-from-file=x",
  "config user.name b",
  "config --get-regexp .",
  "config -e",
  "log -L1,2:.env",
  "show HEAD:.env",
  "grep -e x -- .env",
  "diff-tree --stdin",
  "check-ignore --stdin",
  "shortlog --output=x",
  "--exec-path=x status",
  "-c core.pager=x log",
  "-c alias.x=!y x",
  "--git-dir=x status",
  "log -Olist",
  "diff -pOlist",
  "log --remerge-diff -1",
  "bisect log",
  "fetch",
  "describe --contains --stdin",
])("git %s is not taken for harmless", (line) => {
  expect(judge("git", line.split(" "))).toHaveProperty("why");
});

test("what shows the content of files is told, and what only names them is not", () => {
  const contents = (line: string) => {
    const judged = judge("git", line.split(" "));
    return "why" in judged ? judged.why : judged.contents === true;
  };
  for (const line of [
    "log -p",
    "log -1 -U5",
    "log -L1,2:a",
    "log --cc",
    "show",
    "diff",
    "stash show",
    "grep x",
    "reflog -p",
    "stash list --patch",
    "log --word-diff",
  ])
    expect(contents(line), line).toBe(true);
  for (const line of [
    "log",
    "log --oneline -5 --stat",
    "log --name-only --all",
    "branch -vv",
    "status -sb",
    "reflog -5",
  ])
    expect(contents(line), line).toBe(false);
});
