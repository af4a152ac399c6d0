/** What is given in code is checked as strictly as what stands in a file. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { approvalNames, sandboxNames } from "../../src/gate/modes.ts";
import { createEngine, defineTool } from "../../src/index.ts";

const workspace = mkdtempSync(join(tmpdir(), "callgate-options-"));
writeFileSync(join(workspace, "file"), "");
const look = defineTool({ name: "look_around", description: "x", input: { type: "object" }, run: () => "ok" });
/** As JavaScript, or JSON from somewhere, would give them. */
const engine = (options: object) => createEngine({ workspace, tools: [look], ...options } as never);

test.each<readonly [string, object, string]>([
  ["a misspelt option", { tool: [] }, "there is no option 'tool'; did you mean 'tools'?"],
  ["an option of another place", { rules: [] }, "there is no option 'rules'"],
  ["a misspelt mode", { approval: "nevr" }, "'approval' must be one of never,"],
  ["and the nearest word", { approval: "nevr" }, "did you mean 'never'?"],
  ["a misspelt sandbox", { sandbox: "readonly" }, "did you mean 'read-only'?"],
  ["a mode that is no text", { approval: 5 }, "'approval' must be one of"],
  ["an approver that cannot ask", { approver: {} }, "'approver' must be an approver"],
  ["a misspelt option of the gate", { gate: { rulez: [] } }, "there is no option 'gate.rulez'; did you mean 'rules'?"],
  ["what an engine says itself", { gate: { workspace: "/" } }, "there is no option 'gate.workspace'"],
  ["rules that are no list", { gate: { rules: {} } }, "'gate.rules' must be a list"],
  [
    "a misspelt key of a rule",
    { gate: { rules: [{ comand: "ls", decision: "deny" }] } },
    "gate.rules[0]: unknown key 'comand'; did you mean 'command'?",
  ],
  [
    "a misspelt decision",
    { gate: { rules: [{ command: "ls", decison: "deny" }] } },
    "gate.rules[0]: unknown key 'decison'; did you mean 'decision'?",
  ],
  [
    "a decision nobody knows",
    { gate: { rules: [{ command: "ls", decision: "forbid" }] } },
    'gate.rules[0]: decision must be "allow", "ask" or "deny"',
  ],
  ["a rule about nothing", { gate: { rules: [{ decision: "deny" }] } }, "exactly one of"],
  [
    "a misspelt tool in a rule",
    { gate: { rules: [{ tool: "look_arround", decision: "deny" }] } },
    "gate.rules[0]: there is no tool 'look_arround'; did you mean 'look_around'?",
  ],
  [
    "a misspelt tool of a hook",
    { gate: { hooks: [{ tool: "lok_around", before: () => undefined }] } },
    "gate.hooks[0]: there is no tool 'lok_around'; did you mean 'look_around'?",
  ],
  [
    "a misspelt hook",
    { gate: { hooks: [{ befor: () => undefined }] } },
    "'gate.hooks[0].befor'; did you mean 'before'?",
  ],
  [
    "a hook that is no function",
    { gate: { hooks: [{ after: "redact" }] } },
    "'gate.hooks[0].after' must be a function",
  ],
  [
    "a hook that never ends in time",
    { gate: { hooks: [{ timeoutMs: 0 }] } },
    "'gate.hooks[0].timeoutMs' must be a number above 0",
  ],
  ["a network that is none", { gate: { network: "all" } }, "'gate.network' must be 'off', 'on' or a list of hosts"],
  ["a limit that is none", { timeoutMs: -1 }, "'timeoutMs' must be a number above 0"],
  ["a misspelt budget", { result: { budget: { maxToken: 5 } } }, "did you mean 'maxTokens'?"],
  ["a misspelt layout", { result: { layout: "codexjson" } }, "did you mean 'codex-json'?"],
  ["a misspelt environment", { environment: { inherits: "all" } }, "did you mean 'inherit'?"],
  ["a logger that cannot log", { log: { info() {} } }, "'log' must be a logger"],
  ["a workspace that is not there", { workspace: "/nonexistent" }, "'workspace' is not a folder: /nonexistent"],
  ["a workspace that is a file", { workspace: join(workspace, "file") }, "'workspace' is not a folder"],
  ["a folder to start in that is not there", { cwd: "none" }, "'cwd' is not a folder"],
  [
    "tools and a registry",
    { registry: createEngine({ workspace }).registry },
    "give 'tools' or a 'registry', not both",
  ],
  ["a tool that is none", { tools: [{ name: "x" }] }, "tool 'x'"],
])("%s is a TypeError when the engine is made", (_what, options, message) => {
  expect(() => engine(options)).toThrow(TypeError);
  expect(() => engine(options)).toThrow(message);
});

test("no options at all, and options that are undefined, are as left out", () => {
  expect(() => createEngine({})).not.toThrow();
  expect(() => engine({ approval: undefined, gate: undefined })).not.toThrow();
  expect(() => createEngine(5 as never)).toThrow("createEngine: its options must be an object");
});

test("every documented name of a mode is taken", async () => {
  for (const approval of approvalNames)
    for (const sandbox of sandboxNames) {
      const ended = await engine({ approval, sandbox }).call("look_around");
      expect(ended.code).toBe(approval === "disabled" ? "denied" : undefined);
    }
  const off = await engine({ approval: "disabled" }).call("look_around");
  expect(JSON.stringify(off.content)).toContain("tool calls are switched off");
});

test("a rule that matches no tool warns with the first call, and only then", async () => {
  const warnings: string[] = [];
  const log = { debug() {}, info() {}, warn: (message: string) => void warnings.push(message), error() {} };
  const made = engine({
    log,
    gate: {
      rules: [
        { tool: "send_mail", decision: "deny" },
        { tool: "look_*", decision: "ask" },
        { tool: "git_*", decision: "deny" },
      ],
    },
  });
  expect(warnings).toEqual([]);
  await made.call("look_around");
  await made.call("look_around");
  expect(warnings).toEqual([
    "gate.rules[0] (deny tool send_mail) matches no tool",
    "gate.rules[2] (deny tool git_*) matches no tool",
  ]);
});

test.each<readonly [object, string]>([
  [{ mutate: true }, "there is no field 'mutate'; did you mean 'mutates'?"],
  [{ acess: {} }, "there is no field 'acess'; did you mean 'access'?"],
  [{ access: { writes: ["a"] } }, "there is no field 'access.writes'; did you mean 'write'?"],
  [{ access: { write: "a" } }, "'access.write' must be a list of strings"],
  [{ mutates: "yes" }, "'mutates' must be true, false or a function"],
  [{ parallel: 1 }, "'parallel' must be true or false"],
])("defineTool %j is a TypeError", (more, message) => {
  const tool = { name: "own", description: "x", input: { type: "object" }, run: () => "x", ...more };
  expect(() => defineTool(tool as never)).toThrow(TypeError);
  expect(() => defineTool(tool as never)).toThrow(message);
});

test("an access that says something nobody knows ends the call before anything runs", async () => {
  let ran = false;
  const tool = defineTool({
    name: "own",
    description: "x",
    input: { type: "object" },
    access: () => ({ writes: ["a"] }) as never,
    run: () => void (ran = true),
  });
  const ended = await createEngine({ workspace, tools: [tool], approval: "auto" }).call("own");
  expect(ended).toMatchObject({ ok: false, code: "failed" });
  expect(JSON.stringify(ended.content)).toContain("did you mean 'write'?");
  expect(ran).toBe(false);
});

test("modes that are changed later are held to the same", async () => {
  const engine = createEngine({ workspace: tmpdir() });
  expect(() => engine.setPolicy({ approval: "nevr" as never })).toThrow(/did you mean 'never'/);
  expect(() => engine.setPolicy({ aproval: "never" } as never)).toThrow(TypeError);
  expect(() => engine.setPolicy({ approval: "never" })).not.toThrow();
  await engine.close();
});
