import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { explainEnding, limitDenial } from "../../../src/runtime/sandbox/denial.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { freshFolder } from "./folder.ts";

function scene(network: Grant["network"] = "off") {
  const folder = freshFolder();
  const [workspace, outside] = [join(folder, "ws"), join(folder, "out")];
  for (const path of [workspace, outside, join(workspace, ".git")]) mkdirSync(path);
  writeFileSync(join(outside, "victim"), "");
  const grant: Grant = {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [".git"],
    mask: [],
    network,
  };
  const ended = (argv: readonly string[], exitCode: number | null = 1, signal: string | null = null) =>
    explainEnding({ argv, cwd: workspace, grant, writable: [workspace] }, { exitCode, signal });
  return { workspace, outside, ended, shell: (line: string, exitCode = 1) => ended(["bash", "-lc", line], exitCode) };
}

test("a command that succeeded was not stopped", () => {
  const { outside, shell } = scene();
  expect(shell(`touch ${outside}/x`, 0)).toBeUndefined();
});

test("a forbidden system call is known by its signal", () => {
  const { ended } = scene();
  expect(ended(["prog"], null, "SIGSYS")).toMatchObject({ what: "command" });
  expect(ended(["prog"], 159)).toMatchObject({ what: "command" });
  expect(ended(["prog"], null, "SIGKILL")).toBeUndefined();
});

test.each([
  ["a redirect", (out: string) => `echo hi > ${out}/new`, "new"],
  ["an appending redirect after other commands", (out: string) => `cd . && ls; echo hi >> '${out}/victim'`, "victim"],
  ["an operand of a program that writes", (out: string) => `mkdir -p ${out}/folder`, "folder"],
  ["dd's of=", (out: string) => `dd if=/dev/zero of=${out}/disk`, "disk"],
  ["a pipe into tee", (out: string) => `echo x | tee ${out}/log`, "log"],
])("%s outside the roots is the refused write", (_name, line, name) => {
  const { outside, shell } = scene();
  expect(shell(line(outside))).toMatchObject({ what: "write", target: join(outside, name) });
});

test("all of it is told, as concluded and not as seen", () => {
  const { outside, shell } = scene();
  expect(shell(`echo a > ${outside}/a; echo b > ${outside}/b; curl https://example.com/`)).toEqual({
    what: "network",
    target: "example.com",
    reason: "curl needs the network, which is off",
    inferred: true,
    more: ["a", "b"].map((name) => ({
      what: "write",
      target: join(outside, name),
      reason: `${join(outside, name)} may not be changed under workspace-write`,
      inferred: true,
    })),
  });
});

test("what git only looks at is no refused write", () => {
  const { shell } = scene();
  for (const line of ["git config --get a.b", "git config user.name", "git branch -a", "git stash list", "git tag -l"])
    expect([line, shell(line)]).toEqual([line, undefined]);
});

test("a protected name inside the root is the refused write", () => {
  const { workspace, shell, ended } = scene();
  expect(shell("echo x > .git/config")).toMatchObject({ what: "write", target: join(workspace, ".git", "config") });
  expect(ended(["git", "commit", "-m", "x"])).toMatchObject({ what: "write", target: join(workspace, ".git") });
});

test("what is copied from is no refused write, what is moved away is", () => {
  const { outside, shell } = scene();
  expect(shell(`cp ${outside}/victim missing/folder/x`)).toBeUndefined();
  expect(shell(`mv ${outside}/victim here`)).toMatchObject({ what: "write", target: join(outside, "victim") });
});

test("failures that have nothing to do with the sandbox are not put down to it", () => {
  const { outside, shell } = scene();
  for (const line of [
    `grep nothing ${outside}/victim`,
    `diff ${outside}/victim /etc/passwd`,
    "false",
    "echo x > inside/missing/file",
    "npm test",
    "ls 2>/dev/null",
    `rm ${outside}/not-there`,
    `cp ${outside}/not-there here`,
    `cp not-there ${outside}/new`,
    `mv not-there ${outside}/new`,
  ]) {
    expect([line, shell(line)]).toEqual([line, undefined]);
  }
});

test("a program that needs the network names its host; loopback is never the reason", () => {
  const { shell } = scene();
  expect(shell("curl -s https://example.com/a", 6)).toMatchObject({ what: "network", target: "example.com" });
  expect(shell("git clone git@example.com:a/b", 128)).toMatchObject({ what: "network", target: "example.com" });
  expect(shell("npm install left-pad")).toMatchObject({ what: "network" });
  expect(shell("curl http://127.0.0.1:3000", 7)).toBeUndefined();
  expect(shell("npm test")).toBeUndefined();
});

test("a hidden file that was named is the refused read", () => {
  const folder = freshFolder();
  writeFileSync(join(folder, "id_rsa"), "");
  const grant: Grant = { policy: "read-only", confined: true, write: [], protect: [], mask: [folder], network: "off" };
  const ended = (line: string) =>
    explainEnding({ argv: ["sh", "-c", line], cwd: "/", grant, writable: [] }, { exitCode: 1, signal: null });
  expect(ended(`cat ${folder}/id_rsa`)).toMatchObject({ what: "read", target: join(folder, "id_rsa") });
  expect(ended(`cat ${folder}/nothing`)).toBeUndefined();
});

test("a protected name is known also where the workspace lies in a folder that the sandbox made writable", () => {
  const folder = freshFolder();
  const workspace = join(folder, "ws");
  mkdirSync(join(workspace, ".git"), { recursive: true });
  const grant: Grant = {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [".git"],
    mask: [],
    network: "off",
  };
  const ended = (line: string) =>
    explainEnding(
      { argv: ["sh", "-c", line], cwd: workspace, grant, writable: [folder, workspace] },
      { exitCode: 128, signal: null },
    );
  expect(ended("git commit -m x")).toMatchObject({ what: "write", target: join(workspace, ".git") });
  expect(ended("touch src/x")).toBeUndefined();
});

test("with allowed hosts it is the proxy that knows", () => {
  expect(scene(["example.org"]).shell("curl https://example.com", 56)).toBeUndefined();
});

test("a limit that ended it is named, and no yes could widen it", () => {
  const ended = { exitCode: null, signal: null };
  expect(limitDenial({ ...ended, exitCode: 1 })).toBeUndefined();
  expect(limitDenial({ ...ended, signal: "SIGKILL" })).toBeUndefined();
  expect(limitDenial({ ...ended, limit: "memoryBytes" }, { memoryBytes: 9 })).toMatchObject({
    rule: "limit memoryBytes",
    reason: expect.stringContaining("limit of 9"),
  });
  const tooLarge = expect.objectContaining({ rule: "limit fileBytes", reason: expect.stringContaining("8 bytes") });
  expect(limitDenial({ ...ended, signal: "SIGXFSZ" }, { fileBytes: 8 })).toEqual(tooLarge);
  expect(limitDenial({ ...ended, exitCode: 153 }, { fileBytes: 8 })).toEqual(tooLarge);
});
