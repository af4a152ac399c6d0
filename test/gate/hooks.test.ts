import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createCommandHook, runAfter, runBefore } from "../../src/gate/hooks.ts";

const dir = mkdtempSync(join(tmpdir(), "callgate-hooks-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const signal = new AbortController().signal;
const call = { id: "1", tool: "shell", input: { command: "ls" } };

function script(name: string, body: string): readonly string[] {
  const path = join(dir, `${name}.mjs`);
  writeFileSync(path, body);
  return [process.execPath, path];
}

const readInput = `let text = ""; for await (const chunk of process.stdin) text += chunk; const call = JSON.parse(text);`;

test("a program that says nothing lets the call go on", async () => {
  expect(
    await runBefore([createCommandHook({ when: "before", argv: script("quiet", "") })], call, signal),
  ).toBeUndefined();
});

test("a program is given the call and can rewrite it", async () => {
  const argv = script(
    "rewrite",
    `${readInput} console.log(JSON.stringify({ input: { command: call.input.command + " -la" } }));`,
  );
  expect(await runBefore([createCommandHook({ when: "before", argv })], call, signal)).toEqual({
    input: { command: "ls -la" },
  });
});

test("exit code 2 blocks with what was said on stderr", async () => {
  const argv = script("block", `console.error("not today"); process.exit(2);`);
  expect(await runBefore([createCommandHook({ when: "before", argv })], call, signal)).toEqual({ block: "not today" });
});

test.each([
  ["another exit code", `process.exit(1);`],
  ["output that is no JSON", `console.log("hello");`],
  ["no end", `setInterval(() => undefined, 1000);`],
])("%s blocks: a hook that fails is a no", async (name, body) => {
  const hook = createCommandHook({ when: "before", argv: script(name.replaceAll(" ", "-"), body), timeoutMs: 1_500 });
  expect(await runBefore([hook], call, signal)).toMatchObject({ block: expect.stringContaining("failed") });
});

test("a program that is not there blocks", async () => {
  expect(
    await runBefore([createCommandHook({ when: "before", argv: [join(dir, "none")] })], call, signal),
  ).toMatchObject({ block: expect.stringContaining("failed") });
});

test("a hook for another tool is not run", async () => {
  expect(await runBefore([{ tool: "apply_*", before: () => ({ block: "x" }) }], call, signal)).toBeUndefined();
});

test("a program can replace the output; one that fails changes nothing", async () => {
  const result = { ...call, ok: true, content: [{ type: "text" as const, text: "secret" }] };
  const good = createCommandHook({
    when: "after",
    argv: script("after", `console.log(JSON.stringify({ content: "[cut]" }));`),
  });
  const bad = createCommandHook({ when: "after", argv: script("after-bad", `process.exit(1);`) });
  expect(await runAfter([good, bad], result, signal)).toEqual([{ type: "text", text: "[cut]" }]);
});
