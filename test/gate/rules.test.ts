import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { appendRule, failedExamples, loadRules, parseRules, RulesError } from "../../src/gate/rules-file.ts";
import { matchHost, matchMcp, matchName, matchPath, ruleName, ruleProblem } from "../../src/gate/rules.ts";
import { cpuMs } from "../work.ts";
import { createWorkspace } from "./workspace.ts";

const dir = mkdtempSync(join(tmpdir(), "callgate-rules-"));
const workspace = createWorkspace();
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
  workspace.remove();
});

const good = `
[[rule]]
command = ["git", ["push", "pull"]]
decision = "ask"
reason = "others see it"
match = ["git push origin main", "cd src && git -C .. pull"]
not_match = ["git status", "echo git push"]

[[rule]]
path = "secrets/**"
access = "read"
decision = "deny"
match = ["secrets/key.txt"]
not_match = ["src/secrets.ts"]

[[rule]]
mcp = "github/*"
decision = "allow"
match = ["github/list_issues"]
not_match = ["gitlab/list_issues"]

[[rule]]
host = "*.example.org"
decision = "allow"
match = ["api.example.org:443"]
not_match = ["example.org.evil.invalid"]

[[rule]]
tool = "web_*"
decision = "deny"
match = ["web_search"]
`;

describe("a rules file", () => {
  test("is read as TOML, with its examples checked", async () => {
    const rules = await parseRules(good, "rules.toml");
    expect(rules.map((rule) => rule.decision)).toEqual(["ask", "deny", "allow", "allow", "deny"]);
    expect(failedExamples(rules)).toEqual([]);
  });

  test("is read as JSON too", async () => {
    expect(await parseRules('{"rules":[{"command":"npm","decision":"deny"}]}', "r.json")).toMatchObject([
      { command: "npm", decision: "deny" },
    ]);
  });

  test("that is not there is empty", async () => {
    expect(await loadRules(join(dir, "none.toml"))).toEqual([]);
  });

  test.each([
    ["a syntax error", '[[rule]]\ncommand = "x\n', /r\.toml:2: /],
    [
      "an unknown key",
      '[[rule]]\ncommand = "x"\ndecison = "deny"\n',
      /r\.toml:1: unknown key 'decison'; did you mean 'decision'/,
    ],
    ["a key named like a method", '[[rule]]\ntoString = "x"\ndecision = "deny"\n', /unknown key 'toString'/],
    [
      "a second rule's mistake",
      '[[rule]]\ncommand = "x"\ndecision = "deny"\n\n[[rule]]\ncommand = "y"\ndecision = "maybe"\n',
      /r\.toml:5: decision must be/,
    ],
    ["no subject", '[[rule]]\ndecision = "deny"\n', /exactly one of/],
    ["two subjects", '[[rule]]\ncommand = "x"\npath = "y"\ndecision = "deny"\n', /names command and path/],
    ["an empty command", '[[rule]]\ncommand = []\ndecision = "deny"\n', /command must be/],
    ["a table that is no rule", "rules = 1\n", /must be a list/],
    ["a foreign table", "[rulez]\nx = 1\n", /unknown key 'rulez'/],
    [
      "an example that does not match",
      '[[rule]]\ncommand = "git push"\ndecision = "deny"\nmatch = ["git status"]\n',
      /r\.toml:1: deny command git push does not match its example/,
    ],
    [
      "an example that should not match",
      '[[rule]]\ncommand = "git"\ndecision = "deny"\nnot_match = ["git status"]\n',
      /which it says it does not/,
    ],
  ])("with %s stops, and says where", async (_what, text, message) => {
    await expect(parseRules(text, "r.toml")).rejects.toThrow(message);
    await expect(parseRules(text, "r.toml")).rejects.toBeInstanceOf(RulesError);
  });

  test("broken JSON says the line", async () => {
    await expect(parseRules('{"rules":[\n{"command":"x",]}', "r.json")).rejects.toThrow(/r\.json:2: /);
  });

  test("takes one more rule at its end, once", async () => {
    const file = join(dir, "deep", "rules.toml");
    await appendRule(file, { command: ["npm", "run", "build"], decision: "allow" });
    await appendRule(file, { command: ["npm", "run", "build"], decision: "allow" });
    await appendRule(file, { path: './it\'s "x"', access: "write", decision: "allow" });
    expect(await loadRules(file)).toMatchObject([{ command: ["npm", "run", "build"] }, { path: './it\'s "x"' }]);
    const json = join(dir, "rules.json");
    await appendRule(json, { mcp: "a/b", decision: "allow" });
    expect(JSON.parse(readFileSync(json, "utf8"))).toEqual({ rules: [{ mcp: "a/b", decision: "allow" }] });
  });

  test("that is broken is not appended to", async () => {
    const file = join(dir, "broken.toml");
    writeFileSync(file, "[[rule\n");
    await expect(appendRule(file, { command: "x", decision: "allow" })).rejects.toBeInstanceOf(RulesError);
    expect(readFileSync(file, "utf8")).toBe("[[rule\n");
  });
});

describe("a rule", () => {
  test.each<[unknown, string]>([
    ["deny rm", "must be a table"],
    [[{ tool: "x", decision: "deny" }], "must be a table"],
    [{ tool: "x" }, "decision must be"],
    [{ tool: "x", decision: "dney" }, "did you mean 'deny'?"],
    [{ tool: "x", decision: 1 }, "decision must be"],
    [{ path: "x", access: "raed", decision: "deny" }, "did you mean 'read'?"],
    [{ decision: "deny" }, "names none"],
    [{ tool: "x", host: "y", decision: "deny" }, "names tool and host"],
    [{ tool: "", decision: "deny" }, "tool must be text"],
    [{ tool: 7, decision: "deny" }, "tool must be text"],
    [{ tool: "x", reason: 7, decision: "deny" }, "reason must be text"],
    [{ command: "", decision: "deny" }, "command must be"],
    [{ command: "  ", decision: "deny" }, "command must be"],
    [{ command: [], decision: "deny" }, "command must be"],
    [{ command: ["git", ""], decision: "deny" }, "command must be"],
    [{ command: ["git", []], decision: "deny" }, "command must be"],
    [{ command: ["git", ["push", 1]], decision: "deny" }, "command must be"],
    [{ command: ["git", 1], decision: "deny" }, "command must be"],
    [{ tool: "x", match: "x", decision: "deny" }, "match must be a list of texts"],
    [{ tool: "x", match: ["x", 1], decision: "deny" }, "match must be a list of texts"],
    [{ tool: "x", not_match: [1], decision: "deny" }, "not_match must be a list of texts"],
    [{ tool: "x", zzz: 1, decision: "deny" }, "unknown key 'zzz'"],
  ])("%j is told what is wrong with it", (rule, problem) => {
    expect(ruleProblem(rule)).toContain(problem);
  });

  test.each<[Parameters<typeof ruleName>[0], string]>([
    [{ command: ["git", ["push", "pull"]], decision: "deny" }, "deny command git push|pull"],
    [{ command: " git   push ", decision: "ask" }, "ask command git push"],
    [{ path: "a", decision: "allow" }, "allow access a"],
    [{ path: "a", access: "read", decision: "allow" }, "allow read a"],
    [{ effects: { more_than: 3 }, decision: "ask" }, "ask effects { more_than = 3 }"],
    [{ mcp: "s/t", decision: "deny" }, "deny mcp s/t"],
    [{ tool: "t", decision: "deny" }, "deny tool t"],
    [{ host: "h", decision: "deny" }, "deny host h"],
    [{ id: "mine", host: "h", decision: "deny" }, "mine"],
  ])("%j is right, and has a name", (rule, name) => {
    expect(ruleProblem({ ...rule, id: undefined })).toBeUndefined();
    expect(ruleName(rule)).toBe(name);
  });
});

describe("matching", () => {
  test("names, servers and hosts", () => {
    expect(matchName("read_file", "read_*")).toBe(true);
    expect(matchName("aXbXc", "a*b*c")).toBe(true);
    expect(matchName("ab", "ab*b")).toBe(false);
    expect(matchMcp("mail/send", "mail")).toBe(true);
    expect(matchMcp("mailer/send", "mail")).toBe(false);
    expect(matchHost("a.org:443", "a.org")).toBe(true);
    expect(matchHost("a.org:80", "a.org:443")).toBe(false);
    expect(matchHost("a.org.", "a.org")).toBe(true);
    expect(matchHost("xa.org", "*.a.org")).toBe(false);
    expect(matchHost("a.org\0.evil", "a.org")).toBe(false);
    expect(matchHost("a.org", "*")).toBe(true);
    expect(matchHost("b.a.org", "*.a.org")).toBe(true);
    expect(matchHost("a.org", "*.a.org")).toBe(false);
    expect(matchHost("A.ORG", "a.org")).toBe(true);
    expect(matchHost("a.org:443", "a.org:443")).toBe(true);
    expect(matchHost("a.org", "a.org:443")).toBe(false);
    expect(matchHost("[::1]:80", "[::1]")).toBe(true);
    expect(matchHost("a.org", "a b")).toBe(false);
    expect(matchMcp("mail/send", "mail/s*")).toBe(true);
    expect(matchName("abc", "a*c*")).toBe(true);
    expect(matchName("abc", "b*")).toBe(false);
    expect(matchName("a", "a*a")).toBe(false);
  });
  test("paths: names anywhere, places in the workspace, patterns", () => {
    const at = (path: string, pattern: string) => matchPath(path, pattern, "/w");
    expect(at("/w/a/.env", ".env")).toBe(true);
    expect(at("/w/a/.ENV", ".env")).toBe(true);
    expect(at("/w/a/x.pem", "*.pem")).toBe(true);
    expect(at("/w/secrets/deep/x", "./secrets")).toBe(true);
    expect(at("/w/my/secrets/x", "./secrets")).toBe(false);
    expect(at("/w/a/b/c.ts", "a/**/c.ts")).toBe(true);
    expect(at("/etc/passwd", "/etc")).toBe(true);
    expect(at("/etcetera", "/etc")).toBe(false);
    expect(at("/w/a/c.ts", "a/**/c.ts")).toBe(true);
    expect(at("/w/a/b/d.ts", "a/**/c.ts")).toBe(false);
    expect(at("/w/a", "a/b")).toBe(false);
    expect(at("/w/a/b", "a/*")).toBe(true);
    expect(at("/w/x/b", "a/*")).toBe(false);
    expect(at("/w/a/./b", "./a/b")).toBe(true);
  });
  test("a pattern of many stars takes no time", () => {
    const match = () => {
      matchName("a".repeat(20_000), "a*".repeat(2_000) + "b");
      matchPath(`/w/${"a/".repeat(500)}`, `**/${"*/**/".repeat(50)}b`, "/w");
    };
    expect(cpuMs(match)).toBeLessThan(2_000);
  });
});

describe("command rules", () => {
  const decide = (line: string, command: string | (string | string[])[], decision: "deny" | "ask" | "allow") =>
    workspace.decide(line, { rules: [{ command, decision }] }).decision;
  test("a deny of a subcommand sees through options before it", () => {
    for (const line of [
      "git push",
      "git -C src push",
      "git --no-pager push x",
      "git -c a=b push",
      "git $X",
      "git $X push",
    ])
      expect(decide(line, "git push", "deny"), line).toBe("deny");
    for (const line of ["git status", "git log", "git show push"])
      expect(decide(line, "git push", "deny"), line).not.toBe("deny");
  });
  test("a deny of options holds in any order and spelling", () => {
    for (const line of [
      "rm -rf x",
      "rm -fr x",
      "rm -r -f x",
      "rm x -rf",
      "rm --recursive --force x",
      "rm -R --forc x",
      "rm -vrf x",
    ])
      expect(decide(line, "rm -rf", "deny"), line).toBe("deny");
    for (const line of ["rm -r x", "rm x", "rm -i x"]) expect(decide(line, "rm -rf", "deny"), line).not.toBe("deny");
  });
  test("alternatives stand for each of them", () => {
    expect(decide("git pull", ["git", ["push", "pull"]], "deny")).toBe("deny");
    expect(decide("git fetch", ["git", ["push", "pull"]], "deny")).toBe("ask");
  });
  test("an allow covers its prefix, and only as a whole line", () => {
    expect(decide("npm test", "npm test", "allow")).toBe("allow");
    expect(decide("npm test --watch", "npm test", "allow")).toBe("allow");
    expect(decide("npm test && ls | head", "npm test", "allow")).toBe("allow");
    expect(decide("npm test && npm publish", "npm test", "allow")).toBe("ask");
    expect(decide("npm testing", "npm test", "allow")).toBe("ask");
    expect(decide("./npm test", "npm test", "allow")).toBe("ask");
    expect(decide("npm test $X", "npm test", "allow")).toBe("ask");
  });
  test("an allow of a program by its path is for the file there; of several programs, for each of them", () => {
    const tool = "/opt/none/bin/tool";
    expect(decide(`${tool} build`, tool, "allow")).toBe("allow");
    expect(decide("tool build", tool, "allow")).toBe("ask");
    expect(decide("/opt/other/bin/tool build", tool, "allow")).toBe("ask");
    expect(decide(`${tool} build`, "tool", "allow")).toBe("ask");
    for (const line of ["npm test", "pnpm test -x"])
      expect(decide(line, [["npm", "pnpm"], "test"], "allow")).toBe("allow");
    for (const line of ["yarn test", "npm run", "npm"])
      expect(decide(line, [["npm", "pnpm"], "test"], "allow")).toBe("ask");
  });
  test("an allow does not reach what is dangerous in itself, unless it says so; other spellings are only ever denied", () => {
    expect(decide("rm x.txt", "rm", "allow")).toBe("allow");
    expect(decide("rm -rf src", "rm", "allow")).toBe("ask");
    expect(decide("rm -rf src", "rm -rf", "allow")).toBe("allow");
    expect(decide("NPM test", "npm test", "allow")).toBe("ask");
    for (const line of ["NPM test", "=npm test", "npm.exe test", "ｎｐｍ test"])
      expect(decide(line, "npm test", "deny"), line).toBe("deny");
    expect(decide("docker container run x", "docker run", "deny")).toBe("deny");
    expect(decide("docker image run x", "docker run", "allow")).toBe("ask");
  });
  test("an allow ends where the line sets what steers the program", () => {
    expect(decide("CI=1 npm test", "npm test", "allow")).toBe("allow");
    for (const line of ["PATH=. npm test", "LD_PRELOAD=./x.so npm test", "NODE_OPTIONS=-r./x npm test"])
      expect(decide(line, "npm test", "allow"), line).toBe("ask");
  });
  test("an allow of git ends where the repository runs something of its own", () => {
    const other = createWorkspace();
    const commit = () =>
      other.decide("git commit -m x", { rules: [{ command: "git commit", decision: "allow" }] }).decision;
    expect(commit()).toBe("allow");
    other.run("printf '#!/bin/sh\\n' > .git/hooks/pre-commit");
    expect(commit()).toBe("ask");
    other.run("rm .git/hooks/pre-commit; git config core.hooksPath ./evil");
    expect(commit()).toBe("ask");
    other.remove();
  });
});

test("that a command needs a network it does not have is said, and only then", () => {
  const reason = (options: Parameters<typeof workspace.decide>[1] = {}) =>
    workspace.decide("npm install left-pad", options).reason;
  expect(reason()).toContain("which is off");
  expect(reason({ network: "on" })).not.toContain("which is off");
  expect(reason({ confinement: { name: "none", available: false } })).not.toContain("which is off");
  const open = { approval: "unless-trusted", sandbox: "full-access" } as const;
  expect(reason({ settings: open })).not.toContain("which is off");
  expect(workspace.decide("npm test").reason).not.toContain("which is off");
});

describe("git, where the repository brings its own settings", () => {
  test.each([
    "git config core.fsmonitor ./p.sh",
    "git config diff.external ./p.sh",
    "git config diff.x.textconv ./p.sh",
    "git config filter.x.clean ./p.sh",
    "git config core.pager ./p.sh",
    "git config include.path ../evil",
    "git config core.worktree {OUT}",
    "git config alias.status '!id'",
    "git config gpg.program ./p.sh",
    "git config core.hooksPath ./evil",
    "git config remote.origin.promisor true",
    "printf '[core] fsmonitor = ./p.sh\\n' >> .git/config",
    "printf '[core]\\n\\tfsmoni\\\\\\ntor = ./p.sh\\n' >> .git/config",
    "printf '[CORE]\\nFSMONITOR=./p.sh\\n' >> .git/config",
    "printf 'garbage\\n' >> .git/config",
    "git config extensions.worktreeConfig true; printf '[core]\\nfsmonitor=./p.sh\\n' > .git/config.worktree",
    "printf '#!/bin/sh\\n' > .git/hooks/post-index-change",
    "mkdir -p .git/modules/x",
    "git init -q sub && git -C sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git add sub",
    "mv .git gitdir && echo 'gitdir: gitdir' > .git && git config core.fsmonitor ./p.sh",
    "rm -rf .git && git init -q --bare . ",
    "rm .git/config && mkdir .git/config",
    "rm -rf .git",
  ])("%s: status asks", (setup) => {
    const other = createWorkspace();
    expect(other.decide("git status").decision).toBe("allow");
    other.run(setup);
    for (const line of ["git status", "git diff", "cd src && git log -p"])
      expect(other.decide(line).decision, line).toBe("ask");
    other.remove();
  });

  test.each([
    "git config user.name x",
    "git remote add origin https://example.org/x.git",
    "git config branch.main.remote origin",
    "git worktree add -q wt && true",
    "git config advice.detachedHead false",
  ])("%s: status does not", (setup) => {
    const other = createWorkspace();
    other.run(setup);
    expect(other.decide("git status")).toMatchObject({ decision: "allow" });
    other.remove();
  });
});

test("lists of prefixes are the short form of rules about commands", async () => {
  const lists = 'allowed_prefixes = ["npm test"]\ndenied_prefixes = ["git push"]\n';
  expect(await parseRules(lists, "rules.toml")).toEqual([
    { command: "npm test", decision: "allow", source: "rules.toml" },
    { command: "git push", decision: "deny", source: "rules.toml" },
  ]);
  await expect(parseRules("denied_prefixes = 5\n", "rules.toml")).rejects.toThrow("must be a list of commands");
  await expect(parseRules("denied_prefixes = [5]\n", "rules.toml")).rejects.toThrow("command must be text");
});
