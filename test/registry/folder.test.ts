import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, expect, test } from "vitest";
import { loadTools } from "../../src/registry/folder.ts";
import { createRegistry } from "../../src/registry/registry.ts";
import type { ToolContext } from "../../src/spec/tool.ts";

let dir = "";
afterEach(() => rm(dir, { recursive: true, force: true }));

async function folder(files: Readonly<Record<string, string>>): Promise<string> {
  dir = await mkdtemp(join(tmpdir(), "callgate-tools-"));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(dir, name)), { recursive: true });
    await writeFile(join(dir, name), text);
  }
  return dir;
}

const esm = (name: string) =>
  `export default { name: ${JSON.stringify(name)}, description: "does ${name}", inputSchema: { type: "object", properties: {} }, handler: async (args, ctx) => ({ content: [{ type: "text", text: ctx.logger.word }] }) };`;
const cjs = (name: string) =>
  `module.exports = { name: ${JSON.stringify(name)}, description: "d", inputSchema: { type: "object" }, handler: () => "ok" }`;

test("names come from folders and files, and groups are kept", async () => {
  const root = await folder({
    "file/read.mjs": esm("read"),
    "file/write.cjs": cjs("write"),
    "code/search.mjs": esm("search"),
    "a/b/c.mjs": esm("c"),
    "top.mjs": esm("top"),
  });
  const { tools, groups, refused } = await loadTools(root);
  expect(refused).toEqual([]);
  expect(tools.map(({ name }) => name)).toEqual([
    "internal_a_b_c",
    "internal_code_search",
    "internal_file_read",
    "internal_file_write",
    "internal_top",
  ]);
  expect(Object.fromEntries(groups)).toEqual({
    a_b: ["internal_a_b_c"],
    code: ["internal_code_search"],
    file: ["internal_file_read", "internal_file_write"],
    "": ["internal_top"],
  });
  expect(createRegistry(tools).find("internal_file_read")).toBeDefined();
});

test("index and dot files, declarations and tests are skipped", async () => {
  const root = await folder({
    "index.mjs": "throw 1",
    ".hidden.mjs": "throw 1",
    "x/.y/z.mjs": "throw 1",
    "x/index.js": "throw 1",
    "a.d.ts": "",
    "a.test.mjs": "throw 1",
    "README.md": "",
    "x/ok.mjs": esm("ok"),
  });
  const { tools, refused } = await loadTools(root);
  expect(refused).toEqual([]);
  expect(tools.map(({ name }) => name)).toEqual(["internal_x_ok"]);
});

test("wrong names and broken files are refused with the file and the reason, the others load", async () => {
  const root = await folder({
    "file/Read.mjs": esm("Read"),
    "file/my-tool.mjs": esm("my-tool"),
    "file/internal_file_x.mjs": esm("internal_file_x"),
    "file/y.mjs": esm("internal_file_y"),
    "file/other.mjs": esm("another"),
    "file/broken.mjs": "export default {",
    "file/throws.mjs": "throw new Error('no database')",
    "file/empty.mjs": "export const nothing = 1;",
    "file/bad_schema.mjs": `export default { name: "bad_schema", description: "d", inputSchema: { $ref: "#/x" }, handler() {} }`,
    "file/good.mjs": esm("good"),
  });
  const { tools, refused } = await loadTools(root);
  expect(tools.map(({ name }) => name)).toEqual(["internal_file_good"]);
  const reasons = new Map(refused.map(({ file, reason }) => [relative(root, file), reason]));
  expect(reasons.size).toBe(9);
  expect(reasons.get("file/Read.mjs")).toContain("capital letters");
  expect(reasons.get("file/my-tool.mjs")).toContain("hyphen");
  expect(reasons.get("file/internal_file_x.mjs")).toContain("carries the prefix 'internal' itself");
  expect(reasons.get("file/y.mjs")).toContain("carries the prefix 'internal' itself");
  expect(reasons.get("file/other.mjs")).toContain("the file's name is the action");
  expect(reasons.get("file/throws.mjs")).toBe("no database");
  expect(reasons.get("file/empty.mjs")).toContain("exports no tool");
  expect(reasons.get("file/bad_schema.mjs")).toContain("points to nothing");
});

test("the prefix is the user's choice, none included", async () => {
  const root = await folder({ "file/read.mjs": esm("read") });
  expect((await loadTools(root, { prefix: "my" })).tools[0]!.name).toBe("my_file_read");
  expect((await loadTools(root, { prefix: "" })).tools[0]!.name).toBe("file_read");
});

test("the seed's handler gets its arguments and a ctx with a logger", async () => {
  const root = await folder({ "file/read.mjs": esm("read") });
  const { tools } = await loadTools(root);
  const ctx = { log: { word: "hello" } } as unknown as ToolContext;
  expect(await tools[0]!.run({} as never, ctx)).toEqual({ content: [{ type: "text", text: "hello" }] });
});

test("a folder that is not there is told at once", async () => {
  await expect(loadTools(join(tmpdir(), "callgate-no-such-folder"))).rejects.toThrow(
    /cannot read the tools folder .*ENOENT/,
  );
});

test("in a project of ES modules a file with module.exports is a tool all the same; one that is broken is told", async () => {
  const root = await folder({
    "package.json": '{"type":"module"}',
    "shout.js": `const { EOL } = require("node:os");\n${cjs("shout")}`,
    "broken.js": "module.exports = nobody;",
  });
  const { tools, refused } = await loadTools(root);
  expect(tools.map(({ name }) => name)).toEqual(["internal_shout"]);
  expect(refused.map(({ reason }) => reason)).toEqual([expect.stringContaining("nobody is not defined")]);
});
