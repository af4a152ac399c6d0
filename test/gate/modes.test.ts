/** The tables of docs/policy.md are what the code does. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { approvalNames, asksNobody, byMode, sandboxNames, toSettings, type Risk } from "../../src/gate/modes.ts";
import type { ApprovalMode } from "../../src/spec/stages.ts";

const doc = readFileSync(new URL("../../docs/policy.md", import.meta.url), "utf8");
const modes: readonly ApprovalMode[] = ["never", "on-request", "on-failure", "unless-trusted", "auto", "disabled"];
const word = { allow: "run", ask: "ask", deny: "refuse" } as const;

function cells(line: string): readonly string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

const table = doc
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .map(cells);
const row = (name: string) => table.find(([first]) => first === name)?.slice(1);

test("the columns of the table are the modes", () => {
  expect(row("")).toEqual(modes.map((mode) => (mode === "on-request" ? "on-request (default)" : mode)));
});

test.each<readonly [string, Risk, boolean, "workspace-write" | "full-access"]>([
  ["known harmless (looks, inside the workspace)", "harmless", true, "workspace-write"],
  ["other, a sandbox confines it", "other", true, "workspace-write"],
  ["other, nothing confines it", "other", false, "workspace-write"],
  ["other, under full-access", "other", false, "full-access"],
  ["dangerous or not understood, a sandbox confines it", "dangerous", true, "workspace-write"],
  ["dangerous or not understood, under full-access", "dangerous", false, "full-access"],
  ["needs more than the sandbox gives", "escalation", true, "workspace-write"],
])("the row '%s' is what the code does", (name, risk, confines, sandbox) => {
  expect(row(name)).toEqual(modes.map((approval) => word[byMode(risk, { approval, sandbox }, confines)]));
});

test("every name is documented with what it stands for, and taken", () => {
  for (const approval of approvalNames) expect(doc).toContain(`\`${approval}\``);
  for (const sandbox of sandboxNames) expect(doc).toContain(`\`${sandbox}\``);
  expect(toSettings()).toEqual({ approval: "on-request", sandbox: "workspace-write" });
  expect(toSettings("interactive", "restricted")).toEqual({ approval: "on-request", sandbox: "workspace-write" });
  expect(toSettings("auto")).toEqual({ approval: "auto", sandbox: "full-access" });
  expect(toSettings("auto", "restricted")).toEqual({ approval: "auto", sandbox: "workspace-write" });
  expect(toSettings("never", "none")).toEqual({ approval: "never", sandbox: "full-access" });
  expect(() => toSettings("nevr" as never)).toThrow("did you mean 'never'?");
  expect(() => toSettings("never", "readonly" as never)).toThrow("did you mean 'read-only'?");
});

test("nobody is asked under never, auto and disabled", () => {
  expect(modes.filter(asksNobody)).toEqual(["never", "auto", "disabled"]);
});
