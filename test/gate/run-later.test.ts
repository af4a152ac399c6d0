/** Files that run later: asked about by the file tools, read-only in the sandbox, or marked in the turn's diff. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { foldName } from "../../src/base/names.ts";
import { toBaseGrant } from "../../src/gate/grant.ts";
import { decideAccess } from "../../src/gate/policy.ts";
import { findProtected, resolveReal } from "../../src/gate/paths.ts";
import { matchName } from "../../src/gate/rules.ts";
import { findName, joinRunLater, kindOf, runLater } from "../../src/gate/run-later.ts";
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

describe("the first name of a list that a path meets is found", () => {
  const name = fc
    .array(fc.constantFrom("a", "A.b", ".git", "*.b", "a*", "git~1", ".Rc"), { minLength: 1, maxLength: 3 })
    .map((steps) => steps.join("/"));
  const below = fc.array(fc.constantFrom("a", "a.B", ".GIT", "git~1", ".rc", "x.b", "x"), { maxLength: 4 });
  const lists = fc.array(name, { maxLength: 6 });

  test("among files that run later", () => {
    const meets = (steps: readonly string[], wanted: readonly string[]) =>
      steps.some((_, at) => wanted.every((step, index) => matchName(steps[at + index] ?? "", step.toLowerCase())));
    fc.assert(
      fc.property(below, lists, (steps, list) => {
        const folded = steps.map(foldName);
        const expected = list.find((each) => meets(folded, each.split("/")));
        expect(findName(steps.join("/"), list)).toBe(expected);
      }),
      { numRuns: 1_000 },
    );
  });

  test("among protected names", () => {
    fc.assert(
      fc.property(below, lists, (steps, list) => {
        const folded = `/${steps.map(foldName).join("/")}/`;
        const expected = list.find(
          (each) => folded.includes(`/${each.toLowerCase()}/`) || (each === ".git" && folded.includes("/git~1/")),
        );
        expect(findProtected(`/w/${steps.join("/")}`, ["/w"], list)).toBe(expected);
      }),
      { numRuns: 1_000 },
    );
  });
});

test("where files lead is the same for one of them and for many that share what is known of their folders", () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "callgate-test-")));
  try {
    for (const folder of ["d/e", "other"]) mkdirSync(join(root, folder), { recursive: true });
    for (const file of ["d/f", "d/e/f", "other/f"]) writeFileSync(join(root, file), "");
    const links = [
      ["to-d", "d"],
      ["d/out", "../other"],
      ["d/g", "../other/f"],
      ["d/nowhere", "../missing/x"],
    ] as const;
    for (const [at, target] of links) symlinkSync(target, join(root, at));
    const seen = new Map<string, string>();
    const steps = ["d", "e", "f", "g", "to-d", "out", "nowhere", "missing", "..", "."];
    const paths = steps.flatMap((one) => steps.flatMap((two) => steps.map((three) => `${one}/${two}/${three}`)));
    for (const path of [...steps, ...paths]) {
      const alone = resolveReal(path, root);
      expect(`${path}: ${resolveReal(path, root, seen)}`).toBe(`${path}: ${alone}`);
      expect(`${path}: ${exists(join(root), path) ?? alone}`).toBe(`${path}: ${alone}`);
    }
  } finally {
    rmSync(root, { recursive: true });
  }
});

function exists(root: string, path: string): string | undefined {
  try {
    return realpathSync.native(`${root}/${path}`);
  } catch {
    return undefined;
  }
}
