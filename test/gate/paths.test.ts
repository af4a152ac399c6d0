/** Where a path leads: the kernel is the judge, for trees of links that nobody would build by hand. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { createPolicy } from "../../src/gate/options.ts";
import {
  bareRepositoryFile,
  findProtected,
  isInside,
  isSecretName,
  nearestFolder,
  programName,
  resolveReal,
} from "../../src/gate/paths.ts";
import { decideAccess } from "../../src/gate/policy.ts";
import type { Rule } from "../../src/gate/rules.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "callgate-paths-")));
afterAll(() => rmSync(base, { recursive: true, force: true }));

describe("following links", () => {
  const step = fc.constantFrom("a", "b", "c", "..", ".", "");
  const path = fc.array(step, { minLength: 1, maxLength: 5 }).map((steps) => steps.join("/"));
  const target = fc.oneof(path, fc.constantFrom("a", "b/c", "../a", "/", "/usr/bin", "nowhere/at/all", "a/../../b"));
  const tree = fc.dictionary(fc.constantFrom("a", "b", "c", "a/b", "b/c", "c/a"), fc.option(target), { maxKeys: 5 });

  test("what exists is where the kernel finds it, and what does not is where its folder is", () => {
    let existing = 0;
    fc.assert(
      fc.property(tree, path, (links, asked) => {
        const root = mkdtempSync(join(base, "tree-"));
        for (const [name, to] of Object.entries(links).toSorted()) {
          const at = join(root, name);
          try {
            mkdirSync(dirname(at), { recursive: true });
            if (to === null) mkdirSync(at);
            else symlinkSync(to === "" ? "." : to, at);
          } catch {
            // The place is taken, or its folder is a link that leads nowhere: the rest of the tree is enough.
          }
        }
        let real: string | undefined;
        try {
          real = realpathSync.native(asked.startsWith("/") ? asked : `${root}/${asked}`);
        } catch {
          real = undefined;
        }
        const found = resolveReal(asked, root);
        if (real === undefined) {
          // The last link of all is followed too: the answer holds no link any more.
          if (found !== undefined) expect(resolveReal(found, "/")).toBe(found);
        } else {
          existing++;
          expect(found, asked).toBe(real);
        }
        rmSync(root, { recursive: true, force: true });
      }),
      { numRuns: 300 },
    );
    expect(existing).toBeGreaterThan(0);
  });

  test("links that lead in a circle, paths without end and a zero byte lead nowhere that anybody could name", () => {
    symlinkSync("two", join(base, "one"));
    symlinkSync("one", join(base, "two"));
    expect(resolveReal("one/x", base)).toBeUndefined();
    expect(resolveReal("a".repeat(4_097), base)).toBeUndefined();
    expect(resolveReal("a\0b", base)).toBeUndefined();
    expect(resolveReal("", base)).toBe(base);
  });

  test("a link is followed also behind a folder that is still to be made", () => {
    const root = mkdtempSync(join(base, "tree-"));
    mkdirSync(join(root, "there"));
    symlinkSync("there", join(root, "link"));
    symlinkSync("missing/../link", join(root, "other"));
    symlinkSync("/usr", join(root, "there", "out"));
    expect(resolveReal("missing/../link", root)).toBe(join(root, "there"));
    expect(resolveReal("missing/../link/out/x", root)).toBe("/usr/x");
    expect(resolveReal("missing/../there/out", root)).toBe("/usr");
    expect(resolveReal("other/out", root)).toBe("/usr");
    expect(resolveReal("missing/../loop", root)).toBe(join(root, "loop"));
    symlinkSync("missing/../loop", join(root, "loop"));
    expect(resolveReal("missing/../loop", root)).toBeUndefined();
  });

  test("so a tool that names one asks about what it leads to", () => {
    const root = mkdtempSync(join(base, "tree-"));
    mkdirSync(join(root, ".git/hooks"), { recursive: true });
    symlinkSync(".git/hooks/pre-commit", join(root, "link"));
    const policy = createPolicy({ workspace: root, confinement: { name: "test", available: true } });
    const write = (path: string) =>
      decideAccess({ tool: "write", access: { write: [path] }, mutates: true }, policy).decision;
    expect(["link", "missing/../link", "missing/../plain"].map(write)).toEqual(["ask", "ask", "allow"]);
  });

  test("a file in the place of a folder is no way further", () => {
    writeFileSync(join(base, "file"), "");
    expect(resolveReal("file/below", base)).toBe(join(base, "file/below"));
    expect(nearestFolder(join(base, "file/below"))).toBe(base);
    expect(nearestFolder(join(base, "x/y/z"))).toBe(base);
    expect(nearestFolder("/no/such/place")).toBe("/");
    expect(nearestFolder("relative")).toBe(".");
  });
});

test("inside is by whole names", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("a", "b", "ab", "."), { minLength: 1 }),
      fc.constantFrom("a", "ab"),
      (steps, more) => {
        const root = `/${steps.join("/")}`;
        expect(isInside(root, root)).toBe(true);
        expect(isInside(`${root}/${more}`, root)).toBe(true);
        expect(isInside(`${root}${more}`, root)).toBe(false);
        expect(isInside(root, `${root}/${more}`)).toBe(false);
        expect(isInside(root, "/")).toBe(true);
      },
    ),
  );
});

describe("protected names", () => {
  const names = [".git", ".config/fish", "/ws/tools", ".vscode"];
  test.each<[string, string | undefined]>([
    ["/ws/.git/config", ".git"],
    ["/ws/a/.GIT", ".git"],
    ["/ws/GIT~1/x", ".git"],
    ["/ws/.config/fish/config.fish", ".config/fish"],
    ["/ws/deep/.CONFIG/Fish/x", ".config/fish"],
    ["/ws/.config/other", undefined],
    ["/ws/tools/x.mjs", "/ws/tools"],
    ["/ws/toolsx/x.mjs", undefined],
    ["/ws/.gitx", undefined],
    ["/ws/src/a.ts", undefined],
    ["/elsewhere/.vscode/x", ".vscode"],
  ])("%s: %s", (path, name) => {
    expect(findProtected(path, ["/ws"], names)).toBe(name);
  });

  test("a root that is itself below a protected name is not protected by it", () => {
    expect(findProtected("/home/u/.vscode/project/a.ts", ["/home/u/.vscode/project"], names)).toBeUndefined();
    expect(findProtected("/ws/tools/a.mjs", ["/ws/tools"], names)).toBeUndefined();
    expect(findProtected("/ws/tools/.git/x", ["/ws/tools"], names)).toBe(".git");
  });

  test("the first of several is named", () => {
    expect(findProtected("/ws/.vscode/.git/x", ["/ws"], names)).toBe(".git");
    expect(findProtected("/ws/.vscode/.git/x", ["/ws"], names.toReversed())).toBe(".vscode");
  });
});

describe("a bare repository", () => {
  const repository = join(base, "bare");
  mkdirSync(join(repository, "hooks"), { recursive: true });
  mkdirSync(join(repository, "info"));
  writeFileSync(join(repository, "HEAD"), "ref: refs/heads/main\n");
  const plain = join(base, "plain");
  mkdirSync(join(plain, "hooks"), { recursive: true });

  test.each([
    ["config", "config beside HEAD"],
    ["config.worktree", "config.worktree beside HEAD"],
    ["commondir", "commondir beside HEAD"],
    ["hooks/post-receive", "post-receive beside HEAD"],
    ["HOOKS/x", "x beside HEAD"],
    ["HEAD", "HEAD"],
    ["head", "HEAD"],
    ["info/exclude", undefined],
    ["description", undefined],
    ["objects/x", undefined],
  ])("%s: %s", (name, said) => {
    expect(bareRepositoryFile(join(repository, name))).toBe(said);
  });

  test("without HEAD it is a folder like any other", () => {
    expect(bareRepositoryFile(join(plain, "config"))).toBeUndefined();
    expect(bareRepositoryFile(join(plain, "hooks/x"))).toBeUndefined();
  });

  test("a tool that writes its settings or hooks asks, and one that writes beside them does not", () => {
    const policy = createPolicy({
      workspace: base,
      confinement: { name: "test", available: true },
      settings: { approval: "on-request" },
    });
    const write = (path: string) =>
      decideAccess({ tool: "write", access: { write: [path] }, mutates: true }, policy).decision;
    expect(["bare/config", "bare/hooks/update", "bare/HEAD", "new/HEAD"].map(write)).toEqual([
      "ask",
      "ask",
      "ask",
      "ask",
    ]);
    expect(["bare/info/exclude", "plain/config", "plain/hooks/x"].map(write)).toEqual(["allow", "allow", "allow"]);
  });
});

test.each<[string, boolean]>([
  [".env", true],
  ["a/.ENV.local", true],
  [".env.example", false],
  ["id_ed25519", true],
  ["id_ed25519.pub", false],
  ["secrets.yaml", true],
  ["secret.json", true],
  ["secrets.schema", false],
  ["server.pem", true],
  ["keys.p12", true],
  ["credentials", true],
  ["credentials.json", true],
  ["service-account-7.json", true],
  [".npmrc", true],
  ["environment.ts", false],
  ["README.md", false],
])("%s looks like a file with secrets: %s", (path, secret) => {
  expect(isSecretName(path)).toBe(secret);
});

test("a program of a system folder is known by its name, one of another folder is not", () => {
  expect(programName("rm")).toEqual({ name: "rm", system: true });
  expect(programName("/bin/rm")).toEqual({ name: "rm", system: true });
  expect(programName("/usr/local/bin/../bin/rm")).toEqual({ name: "rm", system: true });
  expect(programName("./rm")).toEqual({ name: "rm", system: false });
  expect(programName("bin/rm")).toEqual({ name: "rm", system: false });
  expect(programName("/opt/bin/rm")).toEqual({ name: "rm", system: false });
});

test("a policy is made of rules that are rules, and of folders where they really are", () => {
  const confinement = { name: "test", available: true };
  const link = join(base, "link");
  symlinkSync(base, link);
  const policy = createPolicy({
    workspace: link,
    confinement,
    extraWritableRoots: ["link/extra"],
    protect: [".git", join(link, "tools")],
  });
  expect(policy.workspace).toBe(base);
  expect(policy.writable).toEqual([base, join(base, "extra")]);
  expect(policy.protect).toEqual([".git", join(base, "tools")]);
  const wrong = [
    { tool: "a", decision: "deny" },
    { tol: "b", decision: "deny" },
  ] as unknown as readonly Rule[];
  expect(() => createPolicy({ workspace: base, confinement, rules: wrong })).toThrow(
    new TypeError("rules[1]: unknown key 'tol'; did you mean 'tool'?"),
  );
});
