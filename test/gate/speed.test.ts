import { afterAll, expect, test } from "vitest";
import { decideCommand } from "../../src/gate/policy.ts";
import type { Rule } from "../../src/gate/rules.ts";
import { cpuMs } from "../work.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());
const deny: Rule[] = [{ command: "rm", decision: "deny" }];
const mega = 1_000_000;

const long: readonly (readonly [string, string])[] = [
  ["one long word", `echo ${"a".repeat(mega)}`],
  ["many words", `echo ${"a ".repeat(mega / 2)}`],
  ["many commands", "true;".repeat(mega / 5)],
  ["many pipes", `ls${"|cat".repeat(mega / 4)}`],
  ["open parentheses", "(".repeat(mega)],
  ["open substitutions", "$(".repeat(mega / 2)],
  ["backticks", "`".repeat(mega)],
  ["open braces", "{a,".repeat(mega / 3)],
  ["quotes", `echo ${"'\"".repeat(mega / 2)}`],
  ["backslashes", "\\".repeat(mega)],
  ["stars", `ls ${"*".repeat(mega)}`],
  ["wrappers", `${"env ".repeat(mega / 4)}rm x`],
  ["here-documents", "cat <<E\n".repeat(mega / 8)],
];
const shorter: readonly (readonly [string, string])[] = [
  ["many words that fit", `echo ${"a ".repeat(49_000)}`],
  ["many paths", `cat ${"README.md ".repeat(9_900)}`],
  ["many missing paths", `cat ${Array.from({ length: 9_000 }, (_, i) => `f${i}`).join(" ")}`],
  ["many commands that fit", "true;".repeat(19_000)],
  ["nested parentheses", `${"(".repeat(5_000)}ls${")".repeat(5_000)}`],
  ["nested substitutions", `echo ${"$(echo ".repeat(5_000)}${")".repeat(5_000)}`],
  ["nested wrappers", `${"env ".repeat(20_000)}rm x`],
  ["nested shells", nest(12)],
  ["stars that fit", `ls ${"*a".repeat(40_000)}`],
  ["brackets", `ls ${"[a".repeat(40_000)}`],
  ["sed", `sed '${"s/a/b/;".repeat(10_000)}' x`],
  ["globs", `ls ${"*/".repeat(1_000)}`],
];

function nest(depth: number): string {
  return depth === 0
    ? "rm x"
    : `bash -c '${nest(depth - 1)
        .replaceAll("'", `'\\''`)
        .slice(0, 20_000)}'`;
}

/** `bench/gate.ts` measures; here is only told what would never end from what does. */
test.each([...long, ...shorter])("%s: decided at once, and never allowed past a deny", (_name, line) => {
  const policy = workspace.policy({ rules: deny });
  const decide = () => decideCommand({ shell: line, cwd: workspace.ws }, policy).decision;
  expect(cpuMs(decide)).toBeLessThan(2_000);
  if (line.includes("rm x") || line.length > 100_000) expect(decide()).toBe("deny");
});

test.each(long)("%s: asked about where nothing is denied", (_name, line) => {
  expect(workspace.decide(line).decision).toBe("ask");
});
