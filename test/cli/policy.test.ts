import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { openJournal, sessionPath } from "../../src/store/index.ts";
import { openAudit } from "../../src/store/audit.ts";
import { ensureBuilt, run, tempFolder } from "./run.ts";

beforeAll(() => ensureBuilt());

describe("policy check", () => {
  test("explains a decision without running anything", async () => {
    const { code, stdout } = await run([
      "policy",
      "check",
      "--approval",
      "unless-trusted",
      "--json",
      "--shell",
      "ls && curl x | sh",
    ]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      decision: "ask",
      commands: [["ls"], ["curl", "x"], ["sh"]],
      rule: null,
    });
  });

  test("takes words after --", async () => {
    const { stdout } = await run(["policy", "check", "--json", "--", "git", "--version"]);
    expect(JSON.parse(stdout)).toMatchObject({ decision: "allow", commands: [["git", "--version"]] });
  });

  test("a line in quotes after -- is no program's name: it says how to give a line", async () => {
    const { code, stderr } = await run(["policy", "check", "--", "curl x | sh"]);
    expect(code).toBe(2);
    expect(stderr).toContain("--shell 'curl x | sh'");
  });

  test("answers a batch line by line, and a bad line stops nothing", async () => {
    const lines = [
      { id: 1, shell: "ls -la", approval: "unless-trusted" },
      { id: 2, argv: ["rm", "-rf", "x"], approval: "never" },
      { id: 3, shell: "true | xargs rm", deny: ["rm"] },
      { id: 4 },
      { id: 5, shell: "npm test -- a", approval: "unless-trusted", allow: ["npm test"] },
      { id: 6, shell: "Get-ChildItem", dialect: "powershell", approval: "unless-trusted" },
      { id: 7, shell: "touch x", approval: "auto" },
    ];
    const { stdout, code } = await run(["policy", "check", "--batch"], {
      input: lines.map((line) => JSON.stringify(line)).join("\n"),
    });
    const answers = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { id: number; decision?: string; error?: string });
    expect(code).toBe(0);
    expect(answers.map(({ id, decision }) => [id, decision])).toEqual([
      [1, "allow"],
      [2, "deny"],
      [3, "deny"],
      [4, undefined],
      [5, "allow"],
      [6, "ask"],
      [7, "allow"],
    ]);
    expect(answers[3]?.error).toContain("shell");
  });

  test("a rules file with a mistake ends with 2 and says file and line", async () => {
    const file = join(tempFolder("rules"), "r.toml");
    writeFileSync(file, '[[rule]]\ncommand = "x"\ndecision = "perhaps"\n');
    const { code, stderr, stdout } = await run(["policy", "check", "--rules", file, "--shell", "ls"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(`${file}:1: decision must be`);
  });

  test.each([
    [["policy", "check"]],
    [["policy", "check", "--shell", "ls", "--", "ls"]],
    [["policy", "check", "--rules", "/nowhere.toml", "--shell", "ls"]],
  ])("%j is bad usage", async (args) => {
    expect((await run(args)).code).toBe(2);
  });
});

describe("policy test and suggest", () => {
  test("test runs the rules' examples", async () => {
    const file = join(tempFolder("rules"), "r.toml");
    writeFileSync(file, '[[rule]]\ncommand = "git push"\ndecision = "deny"\nmatch = ["git push", "git status"]\n');
    const { code, stdout } = await run(["policy", "test", "--rules", file]);
    expect(code).toBe(1);
    expect(stdout).toContain("does not match its example 'git status'");
    expect(stdout).toContain("1 rule, 2 examples, 1 failed");
  });

  test("no rule is suggested for a script of the workspace, whose content may change; what make reads is said", async () => {
    const cwd = tempFolder("suggest");
    writeFileSync(join(cwd, "build.sh"), "#!/bin/sh\n", { mode: 0o755 });
    writeFileSync(join(cwd, "Makefile"), "all:\n");
    const suggest = async (...words: readonly string[]) =>
      JSON.parse((await run(["policy", "suggest", "--json", "--", ...words], { cwd })).stdout) as Record<
        string,
        unknown
      >;
    expect(await suggest("./build.sh", "all")).toMatchObject({ decision: "ask", rule: null });
    expect(await suggest("make", "all")).toMatchObject({
      rule: { command: ["make", "all"] },
      alsoAllows: "this command, and the same with more words after it, whatever Makefile will say then",
    });
  });

  test("suggest gives the smallest rule and what else it allows", async () => {
    const { stdout } = await run(["policy", "suggest", "--json", "--", "npm", "run", "build", "--verbose"]);
    expect(JSON.parse(stdout)).toEqual({
      decision: "ask",
      rule: { command: ["npm", "run", "build"], decision: "allow" },
      alsoAllows: "every command that begins with npm run build",
    });
    expect((await run(["policy", "suggest", "--", "bash", "x.sh"])).stdout).toContain(
      "no rule short of allowing everything",
    );
  });
});

test("whoever is refused by a rule finds the rule and its file: in the log, in the session, in check and in suggest", async () => {
  const home = tempFolder("state");
  const file = join(home, "rules.toml");
  mkdirSync(home, { recursive: true });
  writeFileSync(file, '[[rule]]\ncommand = "git push"\ndecision = "deny"\nreason = "CI does that"\n');
  const env = { CALLGATE_HOME: home };
  const refused = await run(["exec", "run git push origin"], { env });
  expect(refused.code).toBe(3);
  expect(refused.stderr).toContain("'callgate policy check --shell LINE' says which rule or setting denies a command");
  expect((await run(["show", "last"], { env })).stdout).toContain(
    `deny by rule: CI does that (deny command git push, in ${file})`,
  );
  const checked = await run(["policy", "check", "--shell", "env git push"], { env });
  expect(checked.stdout).toContain(`rule     deny command git push, in ${file}`);
  const suggested = await run(["policy", "suggest", "--shell", "git push"], { env });
  expect(suggested.stdout).toContain(`take out or narrow 'deny command git push', in ${file}`);
  // Where nothing denies, the log says how to be asked.
  const asked = await run(["exec", "run rm -rf nowhere"], { env: { CALLGATE_HOME: tempFolder("state") } });
  expect(asked.stderr).toContain("In a terminal 'callgate' asks you");
});

test("replay shows what rules would have changed in recorded sessions", async () => {
  const state = tempFolder("state");
  const cwd = tempFolder("work");
  const journal = openJournal(sessionPath(state, "20261115-000000-abcdef"));
  journal.append({ type: "session.started", session_id: "20261115-000000-abcdef", cwd });
  const call = (id: string, shell: string) => ({
    id,
    tool: "shell",
    ok: true,
    access: { commands: [{ shell, cwd }] },
    ruling: { decision: "allow", by: "policy", reason: "x" },
  });
  journal.append({ type: "call.ended", call: call("1", "npm test") });
  journal.append({ type: "call.ended", call: call("2", "ls") });
  journal.close();
  const file = join(cwd, "r.toml");
  writeFileSync(file, '[[rule]]\ncommand = "npm"\ndecision = "deny"\nreason = "we use pnpm"\n');
  const { stdout } = await run(["policy", "replay", "--rules", file, "--json"], { env: { CALLGATE_HOME: state } });
  expect(JSON.parse(stdout)).toMatchObject({
    calls: 2,
    changed: 1,
    rows: [{ call: "1", before: "allow", after: "deny", reason: "we use pnpm" }],
  });
});

describe("trust and audit", () => {
  test("a project is trusted by its content, and never without a yes", async () => {
    const project = tempFolder("project");
    const env = { CALLGATE_HOME: tempFolder("state") };
    mkdirSync(join(project, ".callgate"));
    writeFileSync(join(project, ".callgate/rules.toml"), "");
    expect((await run(["trust", project], { env })).code).toBe(3);
    expect((await run(["trust", "--yes", project], { env })).code).toBe(0);
    expect((await run(["trust", project], { env })).code).toBe(0);
    writeFileSync(join(project, ".callgate/rules.toml"), "# changed\n");
    expect((await run(["trust", project], { env })).code).toBe(3);
  });

  test("audit verify tells a broken chain", async () => {
    const path = join(tempFolder("audit"), "a.jsonl");
    const audit = openAudit({ path });
    audit.append({ call: "1" });
    audit.append({ call: "2" });
    expect((await run(["audit", "verify", path])).code).toBe(0);
    writeFileSync(path, "{}\n");
    const { code, stderr } = await run(["audit", "verify", path]);
    expect(code).toBe(1);
    expect(stderr).toContain("line 1");
  });
});
