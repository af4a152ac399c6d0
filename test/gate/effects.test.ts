import { describe, expect, test } from "vitest";
import { decideEffects, matchEffects, readExample, suggestEffectRule } from "../../src/gate/effect-rules.ts";
import type { EffectCondition } from "../../src/gate/effect-condition.ts";
import { ruleProblem } from "../../src/gate/rules.ts";
import { parseRules } from "../../src/gate/rules-file.ts";

const scene = {
  workspace: "/ws",
  protect: [".git", ".vscode", "/home/u/.callgate"],
  isTracked: (path: string) => path === "src/a.ts",
};
const matches = (example: string, condition: EffectCondition) => matchEffects(readExample(example), condition, scene);

describe("conditions on effects", () => {
  test.each<[string, EffectCondition, boolean]>([
    ["+ dist/a.js, ~ dist/b.js", { only: ["dist/**"] }, true],
    ["+ dist/, + dist/a.js", { only: ["dist/**"] }, true],
    ["+ dist/a.js, ~ src/b.ts", { only: ["dist/**"] }, false],
    ["+ dist/a.js, ~ out/b.ts", { only: ["dist/**", "out/**"] }, true],
    ["+ /ws/dist/a.js", { only: ["dist/**"] }, true],
    ["+ /elsewhere/dist/a.js", { only: ["dist/**"] }, false],
    ["- src/a.ts", { removes: "tracked" }, true],
    ["- src/b.ts, ~ src/a.ts", { removes: "tracked" }, false],
    ["- notes.txt", { removes: ["*.md", "*.txt"] }, true],
    ["+ a, + b, + c", { more_than: 2 }, true],
    ["+ a, + b", { more_than: 2 }, false],
    ["+ big 5000B", { bytes_over: 4999 }, true],
    ["- big 5000B", { bytes_over: 10 }, false],
    ["~ run.sh 0755", { mode: true }, true],
    ["~ run.sh 0755", { mode: "set-id" }, false],
    ["+ l -> /etc/passwd", { links_out: true }, true],
    ["+ d/l -> ../../x", { links_out: true }, true],
    ["+ d/l -> ../x", { links_out: true }, false],
    ["~ .git/config", { protected: true }, true],
    ["+ .git/hooks/pre-commit", { protected: true }, true],
    ["~ sub/.git/modules/m/config", { protected: true }, true],
    ["~ .git/index, + .git/refs/heads/x", { protected: true }, false],
    ["+ pkg/.vscode/tasks.json", { protected: true }, true],
    ["+ dist/a, - src/a.ts", { only: ["dist/**"], removes: "tracked" }, false],
    ["+ dist/, + dist/a.js, + other/", { only: ["dist/**"] }, false],
    ["- dist/", { only: ["dist/x"] }, false],
    ["- a.md", { removes: "*.txt" }, false],
    ["+ d/, + d/a", { more_than: 1 }, false],
    ["~ d/ 0755, + a", { more_than: 1 }, true],
    ["~ a 3000B, + b 3000B", { bytes_over: 5999 }, true],
    ["~ a 3000B, + b 3000B", { bytes_over: 6000 }, false],
    ["~ run.sh 0755", { mode: "executable" }, true],
    ["~ d/ 0755", { mode: true }, false],
    ["+ run.sh", { mode: true }, false],
    ["- l -> /etc/passwd", { links_out: true }, false],
    ["+ l -> ./a/../b", { links_out: true }, false],
    ["+ l -> /ws/b", { links_out: true }, false],
    ["+ /extra/d/l -> ../x", { links_out: true }, true],
    ["+ /extra/l -> /ws/b", { links_out: true }, false],
    ["~ /home/u/.callgate/rules.toml", { protected: true }, true],
    ["~ /home/u/.vscode/tasks.json", { protected: true }, false],
    ["+ .git/", { protected: true }, true],
    ["~ .git/ 0755", { protected: true }, false],
    ["+ new/.git/", { protected: true }, true],
  ])("%s under %j: %s", (example, condition, expected) => {
    expect(matches(example, condition)).toBe(expected);
  });

  test("what becomes something else counts as removed, and a set-id bit is told from an executable one", () => {
    const was = { path: "notes.txt", kind: "changed", type: "link", typeBefore: "file" } as const;
    expect(matchEffects([was], { removes: "*.txt" }, scene)).toBe(true);
    const mode = (now: string, before: string, which: true | "executable" | "set-id") =>
      matchEffects([{ path: "x", kind: "mode", type: "file", mode: now, modeBefore: before }], { mode: which }, scene);
    expect([mode("4755", "0755", "set-id"), mode("4755", "0755", "executable"), mode("4755", "0755", true)]).toEqual([
      true,
      false,
      true,
    ]);
    expect(mode("0755", "0755", true)).toBe(false);
    expect(matchEffects([], { only: ["**"] }, scene)).toBe(false);
  });

  test("a condition that nobody could mean is told with its name", () => {
    const problem = (effects: unknown) => ruleProblem({ effects, decision: "ask" });
    for (const [effects, name] of [
      ["dist", "a table"],
      [{ only: [] }, "only"],
      [{ only: ["a", ""] }, "only"],
      [{ only: "dist" }, "only"],
      [{ removes: [] }, "removes"],
      [{ removes: "" }, "removes"],
      [{ removes: 3 }, "removes"],
      [{ more_than: "2" }, "more_than"],
      [{ bytes_over: 1.5 }, "bytes_over"],
      [{ mode: "x" }, "mode"],
      [{ links_out: false }, "links_out"],
      [{ protected: 1 }, "protected"],
      [{ wholly_unlike: 1 }, "unknown key 'wholly_unlike'"],
    ] as const)
      expect(problem(effects), JSON.stringify(effects)).toContain(name);
    for (const effects of [
      { only: ["dist/**"] },
      { removes: "tracked" },
      { removes: ["*.md"] },
      { more_than: 0, bytes_over: 0 },
      { mode: true },
      { mode: "executable" },
      { mode: "set-id" },
      { links_out: true, protected: true },
    ])
      expect(problem(effects), JSON.stringify(effects)).toBeUndefined();
  });

  test("the strictest rule wins, and what is protected is asked about whatever a rule allows", () => {
    const allow = { effects: { only: ["**"] }, decision: "allow" } as const;
    const deny = { effects: { removes: "tracked" }, decision: "deny" } as const;
    expect(decideEffects(readExample("- src/a.ts"), [allow, deny], scene)?.decision).toBe("deny");
    expect(decideEffects(readExample("+ x"), [allow, deny], scene)?.decision).toBe("allow");
    expect(decideEffects(readExample("~ .git/config"), [allow], scene)?.decision).toBe("ask");
    expect(decideEffects(readExample("+ x"), [], scene)).toBeUndefined();
    expect(decideEffects(readExample("~ .git/config, - src/a.ts"), [allow, deny], scene)?.decision).toBe("deny");
    expect(decideEffects(readExample("- src/a.ts"), [{ ...deny, reason: "git knows it" }], scene)).toMatchObject({
      reason: "git knows it",
      rule: expect.stringContaining("effects"),
    });
  });

  test("a typo is an error with the nearest right word; an example that does not hold stops the start", async () => {
    expect(ruleProblem({ effects: { onyl: ["x"] }, decision: "allow" })).toContain("did you mean 'only'?");
    expect(ruleProblem({ effects: {}, decision: "allow" })).toContain("must name a condition");
    expect(ruleProblem({ effects: { more_than: -1 }, decision: "ask" })).toContain("whole number");
    const wrong = '[[rule]]\neffects = { only = ["dist/**"] }\ndecision = "allow"\nmatch = ["+ src/a"]\n';
    await expect(parseRules(wrong, "rules.toml")).rejects.toThrow("does not match its example");
  });

  test("the rule that is offered covers the folders that were written to, and nothing protected or at the top", () => {
    expect(suggestEffectRule(readExample("+ dist/, + dist/a, ~ out/b"), scene)).toEqual({
      effects: { only: ["dist/**", "out/**"] },
      decision: "allow",
    });
    expect(suggestEffectRule(readExample("~ README.md"), scene)).toBeUndefined();
    for (const example of [
      "~ .git/config",
      "+ a/1, + b/1, + c/1, + d/1",
      "~ /etc/hosts",
      "~ .git/index",
      "~ dist/ 0755",
    ])
      expect(suggestEffectRule(readExample(example), scene), example).toBeUndefined();
    expect(suggestEffectRule(readExample("+ c/1, + a/1, + b/1, ~ ./ 0755"), scene)?.effects).toEqual({
      only: ["a/**", "b/**", "c/**"],
    });
  });
});
