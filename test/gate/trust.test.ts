import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { createTrust, type Trust } from "../../src/gate/trust.ts";

const base = mkdtempSync(join(tmpdir(), "callgate-trust-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
let project: string;
let stateDir: string;
let trust: Trust;
beforeEach(() => {
  project = mkdtempSync(join(base, "project-"));
  stateDir = mkdtempSync(join(base, "state-"));
  trust = createTrust({ stateDir });
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

const contentsOf = (path: string) => readFileSync(path, "utf8");
const trustNow = () => trust.grant(project, trust.status(project).hash);

describe("links", () => {
  test("one inside the project counts by the content it leads to", () => {
    writeFileSync(join(project, "tool.mjs"), "one");
    symlinkSync("../../tool.mjs", join(project, ".callgate/tools/tool.mjs"));
    expect(trustNow()).toBe(true);
    expect(trust.status(project).trusted).toBe(true);
    writeFileSync(join(project, "tool.mjs"), "two");
    expect(trust.status(project)).toMatchObject({ trusted: false, changed: [".callgate/tools/tool.mjs"] });
  });

  test("one to a folder inside counts with everything in that folder", () => {
    mkdirSync(join(project, "shared"));
    writeFileSync(join(project, "shared/a.mjs"), "a");
    symlinkSync("../shared", join(project, ".callgate/shared"));
    trustNow();
    expect(trust.status(project).files).toContain(".callgate/shared/a.mjs");
    writeFileSync(join(project, "shared/b.mjs"), "b");
    expect(trust.status(project)).toMatchObject({ trusted: false, changed: [".callgate/shared/b.mjs"] });
  });

  test("one that leads out is never trusted, not even right after a yes, and its target is not read", () => {
    const outside = join(base, "outside.mjs");
    writeFileSync(outside, "x");
    symlinkSync(outside, join(project, ".callgate/tools/x.mjs"));
    expect(trustNow()).toBe(true);
    expect(trust.status(project)).toMatchObject({ trusted: false, changed: [".callgate/tools/x.mjs"] });
    expect(trust.isTrusted(join(project, ".callgate/tools/x.mjs"), "x")).toBe(false);
    const { hash } = trust.status(project);
    writeFileSync(outside, "y");
    expect(trust.status(project).hash).toBe(hash);
  });

  test("so is a whole folder that leads out, and a project that is reached by a link is the same project", () => {
    const alias = join(base, `alias-${project.slice(-6)}`);
    symlinkSync(project, alias);
    trust.grant(alias, trust.status(alias).hash);
    expect(trust.status(project)).toMatchObject({ trusted: true, workspace: realpathSync(project) });
    rmSync(join(project, ".callgate"), { recursive: true });
    symlinkSync(mkdtempSync(join(base, "elsewhere-")), join(project, ".callgate"));
    expect(trust.status(alias)).toMatchObject({ trusted: false, changed: [".callgate", ".callgate/callgate.toml"] });
  });

  test("one that leads nowhere, and what is no file at all, count by their kind and are not waited for", () => {
    symlinkSync("nowhere", join(project, ".callgate/dangling"));
    execFileSync("mkfifo", [join(project, ".callgate/pipe")]);
    trustNow();
    expect(trust.status(project)).toMatchObject({ trusted: true });
    rmSync(join(project, ".callgate/pipe"));
    writeFileSync(join(project, ".callgate/pipe"), "a file now");
    expect(trust.status(project)).toMatchObject({ trusted: false, changed: [".callgate/pipe"] });
  });

  test("a link that leads to itself leads nowhere: it is listed, and counts as changed once it leads somewhere", () => {
    const loop = join(project, ".callgate/round");
    symlinkSync("round", loop);
    const { files, hash } = trust.status(project);
    expect(files).toContain(".callgate/round");
    expect(trust.grant(project, hash)).toBe(true);
    rmSync(loop);
    symlinkSync("callgate.toml", loop);
    expect(trust.status(project)).toMatchObject({ trusted: false, changed: [".callgate/round"] });
  });

  test("a folder that links to itself is refused as a whole", () => {
    symlinkSync(".", join(project, ".callgate/loop"));
    expect(() => trust.status(project)).toThrow("brings a folder that links to itself (.callgate/loop/");
    rmSync(join(project, ".callgate/loop"));
    symlinkSync("../.callgate/tools", join(project, ".callgate/once"));
    expect(trust.status(project).trusted).toBe(false);
  });
});

test("more files than anybody looks through are refused as a whole", () => {
  for (let at = 0; at < 2_000; at++) writeFileSync(join(project, ".callgate/tools", `${at}.mjs`), "");
  expect(() => trust.status(project)).toThrow("brings more than 2000 files of its own");
});

test("what is not named among what a project can bring needs no trust", () => {
  for (const name of ["README.md", "src.ts", ".callgaterc", "callgate.json"]) writeFileSync(join(project, name), "x");
  expect(trust.status(project).files).toEqual([".callgate/callgate.toml", ".mcp.json"]);
  for (const name of ["callgate.toml", "AGENTS.md", "CLAUDE.md"]) writeFileSync(join(project, name), "x");
  expect(trust.status(project).files).toEqual([
    ".callgate/callgate.toml",
    ".mcp.json",
    "AGENTS.md",
    "CLAUDE.md",
    "callgate.toml",
  ]);
});

describe("the list of what is trusted", () => {
  const file = () => join(stateDir, "trust.json");

  test("is kept for the next start, readable by its owner alone, with nothing half beside it", () => {
    trustNow();
    expect(createTrust({ stateDir }).status(project).trusted).toBe(true);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(readdirSync(stateDir)).toEqual(["trust.json"]);
  });

  test("holds several projects, and taking one back leaves the others", () => {
    const other = mkdtempSync(join(base, "other-"));
    writeFileSync(join(other, ".mcp.json"), "{}\n");
    trustNow();
    trust.grant(other, trust.status(other).hash);
    trust.revoke(project);
    expect([trust.status(project).trusted, trust.status(other).trusted]).toEqual([false, true]);
    expect(trust.isTrusted(join(other, ".mcp.json"), "{}\n")).toBe(true);
    trust.revoke(other);
    expect(JSON.parse(contentsOf(file()))).toEqual({});
  });

  test("a project that is gone can still be taken back", () => {
    trustNow();
    rmSync(project, { recursive: true });
    trust.revoke(project);
    expect(JSON.parse(contentsOf(file()))).toEqual({});
  });

  test.each([
    ["nothing", ""],
    ["no JSON", "{"],
    ["a list", "[]"],
    ["null", "null"],
    ["text", '"trusted"'],
  ])("that holds %s trusts nothing", (_what, text) => {
    trustNow();
    writeFileSync(file(), text);
    expect(trust.status(project).trusted).toBe(false);
    expect(trustNow()).toBe(true);
    expect(trust.status(project).trusted).toBe(true);
  });

  test.each<[string, (entry: { hash: string; files: Record<string, unknown> }) => unknown]>([
    ["no table", () => "yes"],
    ["no hash", ({ files }) => ({ files })],
    ["a hash that is no text", ({ files }) => ({ hash: 1, files })],
    ["no files", ({ hash }) => ({ hash })],
    ["files that are a list", ({ hash }) => ({ hash, files: [] })],
    ["a file whose hash is no text", ({ hash, files }) => ({ hash, files: { ...files, ".mcp.json": true } })],
  ])("an entry with %s counts for nothing", (_what, change) => {
    trustNow();
    const [[root, entry] = ["", undefined]] = Object.entries(
      JSON.parse(contentsOf(file())) as Record<string, { hash: string; files: Record<string, unknown> }>,
    );
    writeFileSync(file(), JSON.stringify({ [root]: change(entry!) }));
    expect(trust.status(project).trusted).toBe(false);
    expect(trust.isTrusted(join(project, ".callgate/callgate.toml"), 'model = "x"\n')).toBe(false);
  });
});

test("a file is trusted with exactly its content and in exactly its place", () => {
  trustNow();
  const settings = 'model = "x"\n';
  expect(trust.isTrusted(join(project, ".callgate/callgate.toml"), settings)).toBe(true);
  expect(trust.isTrusted(join(project, ".mcp.json"), settings)).toBe(false);
  expect(trust.isTrusted(join(project, ".callgate/other.toml"), settings)).toBe(false);
  expect(trust.isTrusted(join(project, "constructor"), settings)).toBe(false);
  expect(trust.isTrusted(join(base, "callgate.toml"), settings)).toBe(false);
});

test("the hash is another for every change of a name or a content, and the same when all is as it was", () => {
  const name = fc.constantFrom("a.mjs", "b.mjs", "c.toml");
  const files = fc.dictionary(name, fc.string({ maxLength: 3 }));
  fc.assert(
    fc.property(files, files, (one, other) => {
      const folder = mkdtempSync(join(base, "law-"));
      const hashOf = (content: Readonly<Record<string, string>>) => {
        rmSync(join(folder, ".callgate"), { recursive: true, force: true });
        mkdirSync(join(folder, ".callgate"));
        for (const [path, text] of Object.entries(content)) writeFileSync(join(folder, ".callgate", path), text);
        return trust.status(folder).hash;
      };
      const sorted = (content: object) => JSON.stringify(Object.entries(content).toSorted());
      const first = hashOf(one);
      expect(hashOf(other) === first).toBe(sorted(one) === sorted(other));
      expect(hashOf(one)).toBe(first);
    }),
    { numRuns: 40 },
  );
});

test("options are checked when it is made", () => {
  // @ts-expect-error a misspelt option
  expect(() => createTrust({ statedir: "/x" })).toThrow("did you mean 'stateDir'?");
  // @ts-expect-error without a folder
  expect(() => createTrust({})).toThrow(TypeError);
});
