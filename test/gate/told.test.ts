/**
 * What a person is told about a line: its reason and the commands that were found in it. The list is long on purpose.
 * A change of the reader shows in it as the lines it changes, and `npx vitest run test/gate/told.test.ts -u` writes
 * them anew once somebody has looked at them.
 */
import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import type { PolicyOptions } from "../../src/gate/options.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
workspace.run("ln -s {OUT}/secret.txt link-out; ln -s {OUT} linkdir; ln -s {OUT}/secret.txt src/s");
afterAll(() => workspace.remove());

/** Lines that look at the machine's own folders would be told differently on another one. */
const ofThisMachine = /(^|[\s=:'"`(<>@])(\/(?!dev\/)|~)|\$HOME/;

function load(name: string): readonly string[] {
  const text = readFileSync(new URL(`./lines/${name}.txt`, import.meta.url), "utf8");
  return text.split("\n").filter((line) => line !== "" && !ofThisMachine.test(line));
}

function told(line: string, options: Partial<PolicyOptions>): { readonly about: string; readonly found: string } {
  const { decision, risk, reason, commands } = workspace.decide(line.replaceAll("⏎", "\n"), options);
  const found = commands.map((argv) => argv.map((word) => (word === "" ? "''" : word)).join(" ")).join(" ¦ ");
  return { about: workspace.plain(`${decision}, ${risk}: ${reason}`), found: workspace.plain(found) };
}

/** Grouped by what is said, so that a reader sees what is said alike. */
function page(lines: readonly string[], optionsOf: (line: string) => Partial<PolicyOptions>): string {
  const groups = new Map<string, string[]>();
  for (const line of new Set(lines)) {
    const { about, found } = told(line.split("\t").at(-1) ?? "", optionsOf(line));
    const rows = groups.get(about) ?? [];
    groups.set(about, [...rows, found === line ? `  ${line}` : `  ${line}  ⟹  ${found}`]);
  }
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([about, rows]) => [about, ...rows, ""])
    .join("\n");
}

const anyone = { approval: "unless-trusted", sandbox: "workspace-write" } as const;
const asked = { approval: "on-request", sandbox: "workspace-write" } as const;

/** Several at once: a rule must not hide another. */
const denying = ["rm", "git push", "docker run", "npm publish"].map((command) => ({
  command,
  decision: "deny" as const,
}));

test("which of several rules speaks about a line that one of them denies, and how sure it is", async () => {
  const lines = ["denied", "denied-rm", "handed-push", "escapes", "ordinary"].flatMap(load);
  const groups = new Map<string, string[]>();
  for (const line of new Set(lines.map((row) => row.split("\t").at(-1) ?? ""))) {
    const { about } = told(line, { settings: asked, rules: denying });
    if (about.startsWith("deny")) groups.set(about, [...(groups.get(about) ?? []), `  ${line}`]);
  }
  const page = [...groups].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([about, rows]) => [about, ...rows, ""]);
  await expect(page.join("\n")).toMatchFileSnapshot("./lines/told/denied.txt");
});

test.each([
  ["harmless", () => ({ settings: anyone })],
  ["hostile", () => ({ settings: anyone })],
  ["ordinary", () => ({ settings: asked })],
  ["escapes", (line: string) => ({ rules: [{ command: line.split("\t")[0] ?? "", decision: "allow" as const }] })],
  ["handed-rm", () => ({ settings: asked, rules: [{ command: "rm", decision: "deny" as const }] })],
])("what is said about %s lines", async (name, optionsOf) => {
  await expect(page(load(name), optionsOf)).toMatchFileSnapshot(`./lines/told/${name}.txt`);
});
