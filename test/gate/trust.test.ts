import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { createTrust, type Trust } from "../../src/gate/trust.ts";

const base = mkdtempSync(join(tmpdir(), "callgate-trust-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
let project: string;
let trust: Trust;
beforeEach(() => {
  project = mkdtempSync(join(base, "project-"));
  trust = createTrust({ stateDir: mkdtempSync(join(base, "state-")) });
  mkdirSync(join(project, ".callgate/tools"), { recursive: true });
  writeFileSync(join(project, ".callgate/callgate.toml"), 'model = "x"\n');
  writeFileSync(join(project, ".mcp.json"), "{}\n");
});

test("a project that brings nothing needs no trust", () => {
  const empty = mkdtempSync(join(base, "empty-"));
  expect(trust.status(empty)).toMatchObject({ trusted: true, files: [] });
});

test("nothing is trusted before the user says so, and then exactly that content", () => {
  const before = trust.status(project);
  expect(before).toMatchObject({
    trusted: false,
    files: [".callgate/callgate.toml", ".mcp.json"],
    changed: [".callgate/callgate.toml", ".mcp.json"],
  });
  expect(trust.isTrusted(join(project, ".callgate/callgate.toml"), 'model = "x"\n')).toBe(false);
  expect(trust.grant(project, before.hash)).toBe(true);
  expect(trust.status(project)).toMatchObject({ trusted: true, changed: [] });
  expect(trust.isTrusted(join(project, ".callgate/callgate.toml"), 'model = "x"\n')).toBe(true);
  expect(trust.isTrusted(join(project, ".callgate/callgate.toml"), 'model = "y"\n')).toBe(false);
});

test.each([
  ["a changed file", () => writeFileSync(join(project, ".mcp.json"), '{"mcpServers":{}}\n'), [".mcp.json"]],
  ["a new file", () => writeFileSync(join(project, ".callgate/tools/x.mjs"), "1"), [".callgate/tools/x.mjs"]],
  ["a removed file", () => rmSync(join(project, ".mcp.json")), [".mcp.json"]],
  [
    "a link in a file's place",
    () => (rmSync(join(project, ".mcp.json")), symlinkSync("/etc/passwd", join(project, ".mcp.json"))),
    [".mcp.json"],
  ],
])("%s asks again", (_what, change, changed) => {
  trust.grant(project, trust.status(project).hash);
  change();
  expect(trust.status(project)).toMatchObject({ trusted: false, changed });
});

test("what changed while the user looked is not trusted", () => {
  const { hash } = trust.status(project);
  writeFileSync(join(project, ".mcp.json"), '{"evil":1}\n');
  expect(trust.grant(project, hash)).toBe(false);
  expect(trust.status(project).trusted).toBe(false);
});

test("trust can be taken back", () => {
  trust.grant(project, trust.status(project).hash);
  trust.revoke(project);
  expect(trust.status(project).trusted).toBe(false);
});

test("a copy of a trusted project is another project", () => {
  trust.grant(project, trust.status(project).hash);
  const copy = mkdtempSync(join(base, "copy-"));
  writeFileSync(join(copy, ".mcp.json"), "{}\n");
  expect(trust.status(copy).trusted).toBe(false);
  expect(trust.isTrusted(join(copy, ".mcp.json"), "{}\n")).toBe(false);
});
