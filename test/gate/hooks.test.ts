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

const secret = {
  ...call,
  ok: true,
  content: [{ type: "text" as const, text: "secret" }],
  structured: { key: "secret" },
};

test("a program can replace the output; what was structured goes with the words", async () => {
  const argv = script("after", `console.log(JSON.stringify({ content: "[cut]" }));`);
  expect(await runAfter([createCommandHook({ when: "after", argv })], secret, signal)).toEqual({
    content: [{ type: "text", text: "[cut]" }],
    structured: undefined,
  });
});

test("an after-hook that says nothing leaves the result as it is, and the next one sees what the last one made of it", async () => {
  const seen: unknown[] = [];
  const hooks = [
    { after: () => undefined },
    { after: () => ({ content: "one", structured: 1 }) },
    { after: (result: unknown) => void seen.push(result) },
  ];
  expect(await runAfter(hooks, secret, signal)).toEqual({ content: [{ type: "text", text: "one" }], structured: 1 });
  expect(seen).toMatchObject([{ content: [{ text: "one" }], structured: 1, ok: true }]);
});

test.each([
  ["exits with another code", `process.exit(1);`, "ended with 1"],
  ["exits with 2", `console.error("a key is in it"); process.exit(2);`, "a key is in it"],
  ["prints no JSON", `console.log("hello");`, "failed"],
  ["answers with a word nobody knows", `console.log(JSON.stringify({ contents: "x" }));`, "'contents'"],
  ["answers with content that is none", `console.log(JSON.stringify({ content: 5 }));`, "neither text nor content"],
  ["does not end", `setInterval(() => undefined, 1000);`, "no answer within"],
])("an after-hook that %s withholds the result", async (name, body, reason) => {
  const argv = script(`after-${name.replaceAll(" ", "-")}`, body);
  const hook = createCommandHook({ when: "after", argv, timeoutMs: 1_500 });
  const told = await runAfter([hook], secret, signal);
  expect(told).toEqual({ content: [], structured: undefined, withheld: expect.stringContaining(reason) });
});

test("an after-function that throws withholds the result; one that only watches is told of, and changes nothing", async () => {
  const broken = () => {
    throw new Error("no idea");
  };
  expect(await runAfter([{ name: "redact", after: broken }], secret, signal)).toMatchObject({
    withheld: "the hook redact failed: no idea",
  });
  const failures: string[] = [];
  const watching = [
    { name: "log", watches: true, after: broken },
    { watches: true, after: () => ({ content: "x" }) },
  ];
  expect(await runAfter(watching, secret, signal, (what) => failures.push(what))).toEqual({
    content: secret.content,
    structured: secret.structured,
  });
  expect(failures).toEqual(["the hook log failed: no idea"]);
});

test("a before-hook that only watches cannot block, and its failure is told", async () => {
  const failures: string[] = [];
  const hooks = [
    { watches: true, before: () => ({ block: "no" }) },
    { watches: true, before: () => Promise.reject(new Error("down")) },
  ];
  expect(await runBefore(hooks, call, signal, (what) => failures.push(what))).toBeUndefined();
  expect(failures).toEqual(["a hook failed: down"]);
});

test.each([[{ blok: "no" }], [false], ["no"], [{ block: 5 }]])(
  "a before-hook that answers %j blocks",
  async (answer) => {
    // What JavaScript can return and TypeScript would refuse.
    const hook = { before: () => answer as never };
    expect(await runBefore([hook], call, signal)).toMatchObject({ block: expect.stringContaining("failed") });
  },
);

test("a stopped turn withholds the result rather than letting it pass unread", async () => {
  const stopped = AbortSignal.abort();
  const hook = { after: () => new Promise<undefined>(() => undefined) };
  expect(await runAfter([hook], secret, stopped)).toMatchObject({ withheld: expect.stringContaining("stopped") });
});

test("options of a hook are checked when it is made", () => {
  // @ts-expect-error a misspelt option
  expect(() => createCommandHook({ argv: ["x"], when: "after", timeoutMS: 1 })).toThrow(
    "createCommandHook: there is no option 'timeoutMS'; did you mean 'timeoutMs'?",
  );
  // @ts-expect-error a word that is none
  expect(() => createCommandHook({ argv: ["x"], when: "afterwards" })).toThrow("'when' must be one of before, after");
});
