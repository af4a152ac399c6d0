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
  ])("%s under %j: %s", (example, condition, expected) => {
    expect(matches(example, condition)).toBe(expected);
  });

  test("the strictest rule wins, and what is protected is asked about whatever a rule allows", () => {
    const allow = { effects: { only: ["**"] }, decision: "allow" } as const;
    const deny = { effects: { removes: "tracked" }, decision: "deny" } as const;
    expect(decideEffects(readExample("- src/a.ts"), [allow, deny], scene)?.decision).toBe("deny");
    expect(decideEffects(readExample("+ x"), [allow, deny], scene)?.decision).toBe("allow");
    expect(decideEffects(readExample("~ .git/config"), [allow], scene)?.decision).toBe("ask");
    expect(decideEffects(readExample("+ x"), [], scene)).toBeUndefined();
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
    expect(suggestEffectRule(readExample("~ .git/config"), scene)).toBeUndefined();
  });
});
