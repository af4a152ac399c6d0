/** What is offered to a person who says 'always': the narrowest rule that helps, and in words what else it opens. */
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { readExample, suggestEffectRule } from "../../src/gate/effect-rules.ts";
import { decideAccess } from "../../src/gate/policy.ts";
import type { Rule } from "../../src/gate/rules.ts";
import { describeRule, suggestRule } from "../../src/gate/suggest.ts";
import type { Access } from "../../src/spec/access.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());

const suggest = (access: Access) =>
  suggestRule({ tool: "some_tool", access, mutates: access.read === undefined }, workspace.policy());
const forLine = (shell: string) => suggest({ commands: [{ shell, cwd: workspace.ws }] });

describe("a command", () => {
  test.each([
    ["npm install left-pad", ["npm", "install"]],
    ["npm run build --silent", ["npm", "run", "build"]],
    ["npm run -s build", ["npm", "run"]],
    ["git push origin main", ["git", "push"]],
    ["docker-compose up -d", ["docker-compose", "up", "-d"]],
    ["cargo --offline build", ["cargo", "--offline", "build"]],
    ["make", ["make"]],
  ])("%s: %j", (line, command) => {
    expect(forLine(line)?.rule).toEqual({ command, decision: "allow" });
  });

  test("says what else begins so, or that it is this one", () => {
    expect(forLine("npm install left-pad")?.alsoAllows).toBe(
      "every command that begins with npm install, whatever package.json will say then",
    );
    expect(forLine("git push origin main")?.alsoAllows).toBe("every command that begins with git push");
    expect(forLine("docker-compose up")?.alsoAllows).toBe("this command, and the same with more words after it");
  });

  test.each(["bash -i", "python3 -c 1", "sudo x", "rm -rf x", "npm install && npm publish", "./p.sh", "$X"])(
    "%s: nothing is safe to offer",
    (line) => {
      expect(forLine(line)).toBeUndefined();
    },
  );

  test("two commands, or one outside the sandbox, get none", () => {
    const command = { shell: "npm install", cwd: workspace.ws };
    expect(suggest({ commands: [command, command] })).toBeUndefined();
    expect(suggest({ commands: [command], escalation: {} })).toBeUndefined();
  });
});

describe("anything else", () => {
  const two = (one: string) => [one, `${one}2`];
  test.each<[string, Access, Access, object]>([
    [
      "a written file",
      { write: ["/elsewhere/f"] },
      { write: two("/elsewhere/f") },
      { path: "/elsewhere/f", access: "write" },
    ],
    ["a host", { network: ["a.org"] }, { network: two("a.org") }, { host: "a.org" }],
    [
      "a file that is read",
      { read: ["/elsewhere/f"] },
      { read: two("/elsewhere/f") },
      { path: "/elsewhere/f", access: "read" },
    ],
    [
      "a server's tool",
      { servers: [{ server: "s", name: "t" }] },
      {
        servers: [
          { server: "s", name: "t" },
          { server: "s", name: "u" },
        ],
      },
      { mcp: "s/t" },
    ],
  ])("%s by itself gets a rule, two of them get none", (_what, one, both, rule) => {
    expect(suggest(one)?.rule).toEqual({ ...rule, decision: "allow" });
    expect(suggest(both)).toBeUndefined();
  });

  test("a tool that says nothing gets a rule for itself", () => {
    expect(suggest({})).toMatchObject({
      rule: { tool: "some_tool" },
      alsoAllows: expect.stringContaining("any input"),
    });
  });
});

test("a rule is told as it would stand in the file", () => {
  const decision = "allow" as const;
  expect(describeRule({ command: ["git", ["push", "pull"]], decision })).toBe(
    'command = ["git", ["push","pull"]], decision = "allow"',
  );
  expect(describeRule({ path: "a/b", access: "read", decision })).toBe(
    'path = "a/b", access = "read", decision = "allow"',
  );
  expect(describeRule({ host: "a.org", decision })).toBe('host = "a.org", decision = "allow"');
  expect(describeRule({ mcp: "s/t", decision })).toBe('mcp = "s/t", decision = "allow"');
  expect(describeRule({ tool: "t", decision })).toBe('tool = "t", decision = "allow"');
  expect(describeRule({ effects: { only: ["a/**"], more_than: 2 }, decision })).toBe(
    'effects = { only = ["a/**"], more_than = 2 }, decision = "allow"',
  );
});

describe("what is saved is what was said", () => {
  const programs = ["npm", "git", "cargo", "make", "builder", "docker", "pip", "echo", "rm", "env"] as const;
  const words = fc.constantFrom(
    "run",
    "build",
    "test",
    "install",
    "push",
    "-v",
    "--all",
    "src",
    "src/a.txt",
    "x",
    "up",
  );
  const simple = fc
    .tuple(fc.constantFrom(...programs), fc.array(words, { maxLength: 3 }))
    .map(([program, args]) => [program, ...args].join(" "));
  const line = fc
    .tuple(simple, fc.constantFrom("", " && ls", " | head", "; true", " > src/log", " && make"))
    .map(([first, rest]) => `${first}${rest}`);
  const decide = (shell: string, rules: readonly Rule[]) => workspace.decide(shell, { rules }).decision;

  test("a rule that is offered lets the line through, and the same line from a file does so too", () => {
    let offered = 0;
    fc.assert(
      fc.property(line, (shell) => {
        const rule = forLine(shell)?.rule;
        if (rule === undefined) return;
        offered++;
        expect(decide(shell, [rule])).toBe("allow");
        const { command } = JSON.parse(JSON.stringify(rule)) as { readonly command: readonly string[] };
        expect(describeRule(rule)).toBe(
          `command = [${command.map((word) => JSON.stringify(word)).join(", ")}], decision = "allow"`,
        );
      }),
      { numRuns: 150 },
    );
    expect(offered).toBeGreaterThan(0);
  });

  test("it lets nothing else through than what begins with its words", () => {
    let changed = 0;
    const more = fc.array(words, { maxLength: 2 });
    fc.assert(
      fc.property(line, line, fc.boolean(), more, (asked, drawn, alike, args) => {
        const rule = forLine(asked)?.rule;
        if (rule === undefined) return;
        const prefix = rule.command as readonly string[];
        // Half of the lines begin with some of the rule's words, so that they come close.
        const other = alike ? [...prefix.slice(0, 1 + (args.length % prefix.length)), ...args].join(" ") : drawn;
        const { decision, commands } = workspace.decide(other, { rules: [rule] });
        if (decision === decide(other, [])) return;
        changed++;
        const begins = commands.some((argv) => prefix.every((word, index) => argv[index] === word));
        expect(begins, `${prefix.join(" ")} let ${other} through`).toBe(true);
      }),
      { numRuns: 250 },
    );
    expect(changed).toBeGreaterThan(0);
  });

  test("it never outweighs a rule that denies", () => {
    fc.assert(
      fc.property(line, (shell) => {
        const rule = forLine(shell)?.rule;
        if (rule === undefined) return;
        const [program = ""] = /^\w+/.exec(shell) ?? [];
        expect(decide(shell, [rule, { command: program, decision: "deny" }])).toBe("deny");
      }),
      { numRuns: 60 },
    );
  });

  test.each<[string, Access]>([
    ["a file whose name is a pattern", { write: ["/elsewhere/*"] }],
    ["a file in a folder whose name is one", { write: ["/elsewhere/**/x"] }],
    ["such a file that is read", { read: ["/elsewhere/*.txt"] }],
    ["every host", { network: ["*"] }],
    ["hosts of a kind", { network: ["*.org"] }],
    ["a tool whose server gave it a pattern for a name", { servers: [{ server: "mail", name: "*" }] }],
    ["a server whose name is one", { servers: [{ server: "*", name: "send" }] }],
  ])("%s gets no rule, because it would be about much more", (_what, access) => {
    expect(suggest(access)).toBeUndefined();
  });

  test("a tool whose name is a pattern gets none either", () => {
    expect(suggestRule({ tool: "*", access: {}, mutates: true }, workspace.policy())).toBeUndefined();
  });

  test("a file without a folder in its name is that file, and not every file of this name", () => {
    const rule = suggest({ write: ["notes.txt"] })?.rule;
    expect(rule).toEqual({ path: "./notes.txt", access: "write", decision: "allow" });
    const write = (path: string) =>
      decideAccess({ tool: "t", access: { write: [path] }, mutates: true }, workspace.policy({ rules: [rule!] }));
    expect(write("notes.txt").decision).toBe("allow");
    expect(write("src/notes.txt").decision).toBe("ask");
  });

  test("a rule about reading is none about changing, and the other way round", () => {
    for (const use of ["read", "write"] as const) {
      const rules = [suggest({ [use]: ["/elsewhere/f"] })!.rule];
      const decided = (["read", "write"] as const).map(
        (other) =>
          decideAccess(
            { tool: "t", access: { [other]: ["/elsewhere/f"] }, mutates: other === "write" },
            workspace.policy({ rules }),
          ).decision,
      );
      expect(decided).toEqual(use === "read" ? ["allow", "ask"] : ["ask", "allow"]);
    }
  });

  test("what was kept in a folder whose name is a pattern gets no rule that would keep everything", () => {
    const scene = { workspace: "/ws", protect: [], isTracked: () => false };
    expect(suggestEffectRule(readExample("+ dist/a"), scene)?.effects).toEqual({ only: ["dist/**"] });
    expect(suggestEffectRule(readExample("+ */a"), scene)).toBeUndefined();
    expect(suggestEffectRule(readExample("+ **/a, + dist/b"), scene)).toBeUndefined();
  });

  test("the words beside it say what else it opens, for each kind", () => {
    expect(suggest({ write: ["/elsewhere/f"] })?.alsoAllows).toBe("every later change of /elsewhere/f, by any tool");
    expect(suggest({ read: ["/elsewhere/f"] })?.alsoAllows).toBe("every later reading of /elsewhere/f, by any tool");
    expect(suggest({ network: ["a.org"] })?.alsoAllows).toBe("every later contact with a.org, by any tool");
    expect(suggest({ servers: [{ server: "s", name: "t" }] })?.alsoAllows).toBe(
      "every later call of s/t, with any input",
    );
  });
});
