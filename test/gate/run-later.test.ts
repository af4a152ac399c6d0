/** Files that run later: asked about by the file tools, read-only in the sandbox, or marked in the turn's diff. */
import { afterAll, describe, expect, test } from "vitest";
import { toBaseGrant } from "../../src/gate/grant.ts";
import { decideAccess } from "../../src/gate/policy.ts";
import { joinRunLater, kindOf, runLater } from "../../src/gate/run-later.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());
const settings = { approval: "on-request", sandbox: "workspace-write" } as const;
const write = (path: string, more = {}) =>
  decideAccess({ tool: "t", access: { write: [path] }, mutates: true }, workspace.policy({ settings, ...more }));

const concrete = (name: string) => (name.includes("*") ? name.replace("*", "x") : name);

describe("a tool that writes it asks", () => {
  test.each([...runLater.protected, ...runLater.asked].map(concrete))("%s", (name) => {
    for (const path of [name, `${name}/x`, `sub/dir/${name}`, name.toUpperCase()])
      expect(`${path}: ${write(path).decision}`).toBe(`${path}: ask`);
  });
});

test("ordinary code of the project is written without a question and known to run later", () => {
  for (const name of runLater.flagged.map(concrete)) {
    expect(write(name).decision).toBe("allow");
    expect(kindOf(`sub/${name}`)).toBe("flagged");
  }
});

test("names that only look alike are ordinary", () => {
  for (const path of [
    ".gitignore",
    ".github.md",
    "src/vscode/a.ts",
    "npmrc",
    "docs/husky.md",
    "envrc.txt",
    ".env.example",
  ])
    expect(`${path}: ${write(path).decision}`).toBe(`${path}: allow`);
});

test("what runs by itself is read-only in the sandbox, and a redirect to it asks", () => {
  const policy = workspace.policy({ settings });
  expect(toBaseGrant(policy).protect).toEqual(runLater.protected);
  for (const line of [
    "echo x > .envrc",
    "echo x >> .vscode/tasks.json",
    "echo x > .npmrc",
    "cat > .github/workflows/a.yml",
  ])
    expect(`${line}: ${workspace.decide(line, { settings }).decision}`).toBe(`${line}: ask`);
});

test("settings add names", () => {
  const table = joinRunLater({ asked: ["deploy.yml"], protected: [".mytool"] });
  const more = { protect: table.protected, asked: table.asked };
  expect(write("deploy.yml").decision).toBe("allow");
  expect(write("deploy.yml", more).decision).toBe("ask");
  expect(write(".mytool/x", more).decision).toBe("ask");
});
