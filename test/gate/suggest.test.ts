/** What is offered to a person who says 'always': the narrowest rule that helps, and in words what else it opens. */
import { afterAll, describe, expect, test } from "vitest";
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
