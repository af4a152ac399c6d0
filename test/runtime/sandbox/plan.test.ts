import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { contains, planMounts } from "../../../src/runtime/sandbox/plan.ts";
import type { Plan } from "../../../src/runtime/sandbox/plan.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { freshFolder } from "./folder.ts";

const elsewhere = "/var/tmp";

function plan(
  workspace: string,
  more: Partial<Grant> = {},
  options: { readonly sockets?: string[]; readonly tempDir?: string; readonly cwd?: string } = {},
): Plan {
  const grant: Grant = {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [".git"],
    mask: [],
    network: "off",
    ...more,
  };
  return planMounts(grant, { cwd: workspace, tempDir: "/tmp", sockets: [], ...options });
}

const uses = ({ entries }: Plan) => Object.fromEntries(entries.map(({ path, use }) => [path, use]));

test("a protected folder that exists is read-only inside its writable root", () => {
  const workspace = freshFolder(elsewhere);
  mkdirSync(join(workspace, ".git"));
  expect(uses(plan(workspace))).toMatchObject({ [workspace]: "write", [join(workspace, ".git")]: "read" });
  expect(plan(workspace).watched).toEqual([]);
});

test("a protected name that is not there is watched, not mounted, so nothing is left on the host", () => {
  const workspace = freshFolder(elsewhere);
  const made = plan(workspace);
  expect(made.watched).toEqual([join(workspace, ".git")]);
  expect(made.entries.map(({ path }) => path)).not.toContain(join(workspace, ".git"));
});

test("the folder a .git file points to is protected too, and the common folder behind a worktree", () => {
  const workspace = freshFolder(elsewhere);
  const real = join(workspace, "main", ".git");
  mkdirSync(join(real, "worktrees", "w"), { recursive: true });
  mkdirSync(join(workspace, "w"));
  writeFileSync(join(real, "worktrees", "w", "commondir"), "../..\n");
  writeFileSync(join(workspace, "w", ".git"), `gitdir: ${join(real, "worktrees", "w")}\n`);
  const made = plan(workspace, { protect: ["w/.git"] });
  expect(uses(made)).toMatchObject({
    [join(workspace, "w", ".git")]: "read",
    [real]: "read",
    [join(real, "worktrees", "w")]: "read",
  });
});

test("each folder on the way to a protected name is a mount point, so that it cannot be renamed away", () => {
  const workspace = freshFolder(elsewhere);
  mkdirSync(join(workspace, ".git", "hooks"), { recursive: true });
  expect(uses(plan(workspace, { protect: [".git/hooks"] }))).toMatchObject({
    [join(workspace, ".git")]: "write",
    [join(workspace, ".git", "hooks")]: "read",
  });
});

test("a protected link protects what it points to and is watched itself", () => {
  const workspace = freshFolder(elsewhere);
  mkdirSync(join(workspace, "real"));
  symlinkSync("real", join(workspace, ".git"));
  const made = plan(workspace);
  expect(uses(made)).toMatchObject({ [join(workspace, "real")]: "read" });
  expect(made.watched).toEqual([join(workspace, ".git")]);
});

test("what a person granted by its own name inside a protected folder opens", () => {
  const workspace = freshFolder(elsewhere);
  mkdirSync(join(workspace, ".git"));
  const config = join(workspace, ".git", "config");
  writeFileSync(config, "");
  expect(uses(plan(workspace, { write: [workspace, config] }))).toMatchObject({
    [join(workspace, ".git")]: "read",
    [config]: "write",
  });
  expect(
    uses(plan(workspace, { write: [workspace, join(workspace, ".git")] }))[join(workspace, ".git")],
  ).toBeUndefined();
});

test("to make one granted file its folder opens, and everything already in it stays read-only", () => {
  const workspace = freshFolder(elsewhere);
  const other = freshFolder(elsewhere);
  writeFileSync(join(other, "old"), "");
  expect(uses(plan(workspace, { write: [workspace, join(other, "new")] }))).toMatchObject({
    [other]: "write",
    [join(other, "old")]: "read",
  });
});

test("masked folders and files are hidden, the deeper path wins, and what does not exist is left alone", () => {
  const home = freshFolder(elsewhere);
  mkdirSync(join(home, ".ssh"));
  writeFileSync(join(home, ".npmrc"), "");
  const made = plan(home, { mask: [join(home, ".ssh"), join(home, ".npmrc"), join(home, ".aws")] });
  expect(uses(made)).toMatchObject({ [home]: "write", [join(home, ".ssh")]: "hide", [join(home, ".npmrc")]: "hide" });
  expect(uses(made)).not.toHaveProperty(join(home, ".aws"));
});

test("a masked link hides what it points to", () => {
  const home = freshFolder(elsewhere);
  mkdirSync(join(home, "keys"));
  symlinkSync("keys", join(home, ".ssh"));
  expect(uses(plan(home, { mask: [join(home, ".ssh")] }))).toMatchObject({ [join(home, "keys")]: "hide" });
});

test("sockets of the host are hidden, one in the workspace stays", () => {
  const workspace = freshFolder(elsewhere);
  const other = freshFolder(elsewhere);
  const sockets = [join(workspace, "app.sock"), join(other, "agent.sock")];
  for (const path of sockets) writeFileSync(path, "");
  const made = uses(plan(workspace, {}, { sockets }));
  expect(made[sockets[0]!]).toBeUndefined();
  expect(made[sockets[1]!]).toBe("hide");
});

test("the temp folder and the run folder become the sandbox's own", () => {
  expect(uses(plan(freshFolder(elsewhere)))).toMatchObject({ "/tmp": "temp", "/run": "hide" });
});

test("a workspace inside the temp folder is put back, read-only or writable as granted", () => {
  const workspace = freshFolder("/tmp");
  expect(uses(plan(workspace))).toMatchObject({ "/tmp": "temp", [workspace]: "write" });
  expect(uses(plan(workspace, { policy: "read-only", write: [] }))).toMatchObject({
    "/tmp": "temp",
    [workspace]: "read",
  });
});

test("full access leaves the disk as it is, but for what is masked", () => {
  const home = freshFolder(elsewhere);
  mkdirSync(join(home, ".ssh"));
  const made = plan(home, { policy: "full-access", write: ["/"], mask: [join(home, ".ssh")] });
  expect(made.everything).toBe(true);
  expect(uses(made)).toEqual({ [join(home, ".ssh")]: "hide" });
});

test("a root inside another root, twice the same, or missing changes nothing", () => {
  const workspace = freshFolder(elsewhere);
  mkdirSync(join(workspace, "sub"));
  const made = plan(workspace, {
    write: [join(workspace, "sub"), workspace, workspace, join(workspace, "gone", "deep")],
  });
  expect(made.roots).toEqual([workspace]);
});

test("containment is by whole names, never by a prefix of the text", () => {
  const name = fc.stringMatching(/^[a-z.]{1,6}$/).filter((text) => text !== "." && text !== "..");
  fc.assert(
    fc.property(
      fc.array(name, { minLength: 1, maxLength: 4 }),
      fc.array(name, { maxLength: 3 }),
      name,
      (base, rest, more) => {
        const folder = `/${base.join("/")}`;
        expect(contains(folder, [folder, ...rest].join("/"))).toBe(true);
        expect(contains(folder, `${folder}${more}`)).toBe(false);
        expect(contains(`${folder}/${more}`, folder)).toBe(false);
      },
    ),
  );
  expect(contains("/ws", "/ws/../etc")).toBe(false);
  expect(contains("/", "/anything")).toBe(true);
});
