/** A rules file: what is written into it comes back as it was, in either form, or is not written at all. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { appendRule, failedExamples, loadRules, parseRules, RulesError } from "../../src/gate/rules-file.ts";
import type { Rule } from "../../src/gate/rules.ts";

const dir = mkdtempSync(join(tmpdir(), "callgate-rules-file-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
let count = 0;
const newFile = (ending: string) => join(dir, String(count++), `rules.${ending}`);

const words = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12 }),
  fc.string({ unit: "binary", minLength: 1, maxLength: 6 }),
  fc.constantFrom('"', "\\", "\n", "\t", "'''", "#", "]", "=", "\u007f", "\u0085", "ä", "-rf", "a.b", "\\u0041"),
);
const decision = fc.constantFrom("allow", "ask", "deny");
const rule: fc.Arbitrary<Rule> = fc.oneof(
  fc.record({ command: fc.array(words, { minLength: 1, maxLength: 3 }), decision }),
  fc.record({ command: fc.tuple(words, fc.array(words, { minLength: 2, maxLength: 3 })), decision }),
  fc.record({ path: words, access: fc.constantFrom("read", "write"), decision }),
  fc.record({ path: words, decision, reason: words }),
  fc.record({ host: words, decision }),
  fc.record({ mcp: words, decision, id: words }),
  fc.record({ tool: words, decision }),
  fc.record({
    effects: fc.record({ only: fc.array(words, { minLength: 1, maxLength: 2 }), more_than: fc.nat() }),
    decision,
  }),
  fc.record({ effects: fc.constantFrom({ removes: "tracked" }, { mode: true } as const), decision }),
);
const withoutSource = (rules: readonly Rule[]) => rules.map(({ source: _source, ...rest }) => rest);

describe.each(["toml", "json"])("a file of %s", (ending) => {
  test("gives back every rule that was added, whatever letters are in it, in the order they came", () =>
    fc.assert(
      fc.asyncProperty(fc.array(rule, { minLength: 1, maxLength: 3 }), async (rules) => {
        const file = newFile(ending);
        const added: Rule[] = [];
        for (const one of rules) {
          await appendRule(file, one);
          added.push(one);
        }
        const kept = withoutSource(await loadRules(file, { examples: false }));
        const texts = new Set(kept.map((one) => JSON.stringify(one)));
        for (const one of added) {
          const same = kept.some((other) => JSON.stringify(other) === JSON.stringify(one) || describes(other, one));
          expect(same, `${JSON.stringify(one)} among ${[...texts].join(" ")}`).toBe(true);
        }
        expect(JSON.stringify(kept[0])).toBe(JSON.stringify(added[0]));
      }),
      { numRuns: 60 },
    ));

  test("is readable by its owner alone, and no half of it is left beside it", async () => {
    const file = newFile(ending);
    await appendRule(file, { command: "npm test", decision: "allow" });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(file, "..")).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(file, ".."))).toEqual([`rules.${ending}`]);
  });

  test("keeps what stood in it", async () => {
    const file = newFile(ending);
    await appendRule(file, { tool: "a", decision: "deny" });
    await appendRule(file, { tool: "b", decision: "deny" });
    await appendRule(file, { tool: "a", decision: "deny" });
    expect(withoutSource(await loadRules(file))).toEqual([
      { tool: "a", decision: "deny" },
      { tool: "b", decision: "deny" },
    ]);
  });

  test("names itself as the source of its rules", async () => {
    const file = newFile(ending);
    await appendRule(file, { tool: "a", decision: "deny", source: "/elsewhere" });
    expect(readFileSync(file, "utf8")).not.toContain("elsewhere");
    expect(await loadRules(file)).toEqual([{ tool: "a", decision: "deny", source: file }]);
  });
});

/** Two rules that stand in a file as one: what is said besides (a reason, a name) does not make another rule. */
function describes(a: Rule, b: Rule): boolean {
  const core = ({ id: _id, reason: _reason, source: _source, ...rest }: Rule) => JSON.stringify(rest);
  return core(a) === core(b);
}

test("a file whose name says TOML and whose content is JSON stays one that can be read", async () => {
  for (const content of ['{"rules":[{"tool":"a","decision":"deny"}]}\n', '[{"tool":"a","decision":"deny"}]\n']) {
    const file = newFile("toml");
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, content);
    await appendRule(file, { tool: "b", decision: "allow" });
    expect(withoutSource(await loadRules(file))).toEqual([
      { tool: "a", decision: "deny" },
      { tool: "b", decision: "allow" },
    ]);
  }
});

test("a rule that cannot be written so that it can be read again is not written", async () => {
  const file = newFile("toml");
  await appendRule(file, { tool: "a", decision: "deny" });
  const before = readFileSync(file, "utf8");
  // TOML has no way to write half of a character.
  await expect(appendRule(file, { path: "/x/\ud800", decision: "allow" })).rejects.toBeInstanceOf(RulesError);
  expect(readFileSync(file, "utf8")).toBe(before);
});

test("comments, and a last line without its end, stay as they are", async () => {
  const file = newFile("toml");
  mkdirSync(join(file, ".."), { recursive: true });
  const before = '# mine\ndenied_prefixes = ["git push"]\n\n[[rule]]\ntool = "a" # why\ndecision = "deny"';
  writeFileSync(file, before);
  await appendRule(file, { tool: "b", decision: "allow" });
  expect(readFileSync(file, "utf8").startsWith(`${before}\n`)).toBe(true);
  expect(withoutSource(await loadRules(file))).toEqual([
    { tool: "a", decision: "deny" },
    { tool: "b", decision: "allow" },
    { command: "git push", decision: "deny" },
  ]);
});

describe("a file that cannot be used", () => {
  test("is an error where it cannot be read: it is not taken for an empty one", async () => {
    const folder = newFile("toml");
    mkdirSync(folder, { recursive: true });
    await expect(loadRules(folder)).rejects.toThrow(`${folder}: cannot be read (EISDIR)`);
    await expect(loadRules(folder)).rejects.toBeInstanceOf(RulesError);
  });

  test.each<[string, string, string | RegExp]>([
    ["a list of rules that is no list", '{"rules":{}}', "'rule' must be a list"],
    ["a word where a table is expected", '"deny"', "expected a table of rules"],
    ["nothing", "null", "expected a table of rules"],
    ["prefixes that are no list", '{"denied_prefixes":"rm"}', "prefixes must be a list of commands"],
    ["a prefix that is no command", '{"denied_prefixes":[5]}', "command must be text"],
    ["an empty prefix", '{"denied_prefixes":[""]}', "command must be text"],
    ["a key of code only", '{"rules":[{"mcp":"a","except":["a/b"],"decision":"deny"}]}', "unknown key 'except'"],
    ["JSON that is cut off", '{"rules":[\n\n{', /r\.json:3: /],
    ["a rule that is no table", "[1]", "a rule must be a table"],
  ])("%s", async (_what, text, message) => {
    await expect(parseRules(text, "r.json")).rejects.toThrow(message);
    await expect(parseRules(text, "r.json")).rejects.toBeInstanceOf(RulesError);
  });

  test("says the line of a rule whose example fails, also behind others", async () => {
    const text =
      '[[rule]]\ntool = "a"\ndecision = "deny"\n\n[[rule]]\nhost = "a.org"\ndecision = "deny"\nmatch = ["b.org"]\n';
    await expect(parseRules(text, "r.toml")).rejects.toMatchObject({ file: "r.toml", line: 5 });
  });
});

describe("examples", () => {
  test("are left to others on request, and then told one by one", async () => {
    const text = '[[rule]]\ntool = "a*"\ndecision = "deny"\nmatch = ["abc", "b"]\nnot_match = ["c", "ad"]\n';
    await expect(parseRules(text, "r.toml")).rejects.toThrow("does not match its example 'b'");
    const rules = await parseRules(text, "r.toml", { examples: false });
    expect(failedExamples(rules).map(({ example, message }) => [example, message])).toEqual([
      ["b", "deny tool a* does not match its example 'b'"],
      ["ad", "deny tool a* matches 'ad', which it says it does not"],
    ]);
  });

  test.each<[Rule, readonly string[], readonly string[]]>([
    [{ command: "git push", decision: "deny" }, ["git push -f", "env git push", "true && git push"], ["git pull"]],
    [{ command: "npm test", decision: "allow" }, ["npm test -w a"], ["npm run test", "bash -c 'x'"]],
    [{ path: "secrets/**", decision: "deny" }, ["secrets/a/b", "./secrets/x"], ["src/secrets", "/secrets/x"]],
    [{ path: ".env", decision: "deny" }, ["a/.env", ".ENV"], [".envrc"]],
    [{ host: "*.a.org", decision: "allow" }, ["x.a.org:443"], ["a.org", "xa.org"]],
    [{ mcp: "mail", decision: "allow" }, ["mail/send"], ["mailer/send", "mail"]],
    [{ effects: { removes: "tracked" }, decision: "deny" }, ["- a"], ["+ a"]],
    [{ effects: { protected: true }, decision: "deny" }, ["~ .git/config", "+ .vscode/x"], ["~ .git/index"]],
  ])("of %j are judged as calls are", (one, match, not_match) => {
    expect(failedExamples([{ ...one, match, not_match }])).toEqual([]);
    expect(failedExamples([{ ...one, match: not_match, not_match: match }])).toHaveLength(
      match.length + not_match.length,
    );
  });
});
