/** OpenAI's own `apply_patch` tool: one operation per call, decoded from its wire and run like any patch. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createEngine } from "../../../src/index.ts";
import { applyPatch } from "../../../src/tools/apply-patch.ts";
import { codecs } from "../../../src/wire/index.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "callgate-patch-"));
  writeFileSync(join(folder, "a.txt"), "one\ntwo\nthree\n");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function run(operation: object) {
  const answer = codecs.responses.decodeAnswer({
    status: "completed",
    output: [{ type: "apply_patch_call", id: "apc_1", call_id: "call_1", status: "completed", operation }],
  });
  const [call] = answer.items;
  if (call?.type !== "call") throw new Error("no call");
  const engine = createEngine({
    tools: [applyPatch],
    cwd: folder,
    approval: "never",
    sandbox: "full-access",
  });
  const ended = await engine.run({ ...call, askedAt: 0 }, new AbortController().signal);
  await engine.close();
  return ended;
}

test("an update changes the file", async () => {
  await run({ type: "update_file", path: "a.txt", diff: "@@\n one\n-two\n+2\n three\n" });
  expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("one\n2\nthree\n");
});

test.each([
  ["as a diff", "+new\n+lines\n"],
  ["as plain text", "new\nlines\n"],
])("a file is created from its content %s", async (_how, diff) => {
  await run({ type: "create_file", path: "b.txt", diff });
  expect(readFileSync(join(folder, "b.txt"), "utf8")).toBe("new\nlines\n");
});

test("a file is deleted", async () => {
  await run({ type: "delete_file", path: "a.txt" });
  expect(existsSync(join(folder, "a.txt"))).toBe(false);
});

test("a path cannot bring a second operation with it", async () => {
  const ended = await run({ type: "delete_file", path: "b.txt\n*** Delete File: a.txt" });
  expect(JSON.stringify(ended)).toContain("line break");
  expect(existsSync(join(folder, "a.txt"))).toBe(true);
});
