/** Long lists of shell lines of our own: what must pass, what must not, and what a deny must hold against. */
import { readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
workspace.run("ln -s {OUT}/secret.txt link-out; ln -s {OUT} linkdir; ln -s {OUT}/secret.txt src/s");
afterAll(() => workspace.remove());

/** One line each; `⏎` stands for a line break. */
function load(name: string): readonly string[] {
  return readFileSync(new URL(`./lines/${name}.txt`, import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.replaceAll("⏎", "\n"));
}

describe("passes without a question under unless-trusted", () => {
  test.each(load("harmless"))("%s", (line) => {
    const { decision, reason } = workspace.decide(line);
    expect(`${decision}: ${reason}`).toMatch(/^allow/);
  });
});

describe("never runs without a question under unless-trusted", () => {
  test.each(load("hostile"))("%s", (line) => {
    const { decision, reason } = workspace.decide(line);
    expect(`${decision}: ${reason}`).not.toMatch(/^allow/);
  });
});

describe("is not covered by a rule that allows the program", () => {
  test.each(load("escapes").map((line) => line.split("\t") as [string, string]))("%s: %s", (allowed, line) => {
    const { decision, reason } = workspace.decide(line, { rules: [{ command: allowed, decision: "allow" }] });
    expect(`${decision}: ${reason}`).not.toMatch(/^allow/);
  });
});

describe("is covered by the rule", () => {
  test.each(load("covered").map((line) => line.split("\t") as [string, string]))("%s: %s", (allowed, line) => {
    const { decision, reason } = workspace.decide(line, { rules: [{ command: allowed, decision: "allow" }] });
    expect(`${decision}: ${reason}`).toMatch(/^allow/);
  });
});

describe("is denied where a rule denies", () => {
  test.each(load("denied").map((line) => line.split("\t") as [string, string]))("%s: %s", (denied, line) => {
    const { decision, reason } = workspace.decide(line, { rules: [{ command: denied, decision: "deny" }] });
    expect(`${decision}: ${reason}`).toMatch(/^deny/);
  });
});

describe("is denied where rm is", () => {
  test.each(load("denied-rm"))("%s", (line) => {
    const { decision, reason } = workspace.decide(line, { rules: [{ command: "rm", decision: "deny" }] });
    expect(`${decision}: ${reason}`).toMatch(/^deny/);
  });
});

describe("stays allowed although other commands are denied", () => {
  const rules = ["rm", "git push", "sudo"].map((command) => ({ command, decision: "deny" as const }));
  const settings = { approval: "on-request", sandbox: "workspace-write" } as const;
  test.each(load("ordinary"))("%s", (line) => {
    const { decision, reason } = workspace.decide(line, { rules, settings });
    expect(`${decision}: ${reason}`).toMatch(/^allow/);
  });
});

describe("is denied where it is handed on, fed, written and run, or spelled by a pattern", () => {
  const settings = { approval: "on-request", sandbox: "workspace-write" } as const;
  const lines = [
    ...load("handed-rm").map((line) => ["rm", line] as const),
    ...load("handed-push").map((line) => ["git push", line] as const),
  ];
  test.each(lines)("%s: %s", (denied, line) => {
    const { decision, reason } = workspace.decide(line, { rules: [{ command: denied, decision: "deny" }], settings });
    expect(`${decision}: ${reason}`).toMatch(/^deny/);
  });
});
