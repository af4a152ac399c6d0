import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { createCommandHook, runAfter, runBefore, type Hook } from "../../src/gate/hooks.ts";
import { whileCollecting } from "../garbage.ts";

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

/** Only what never ends has a short time: a machine that is busy may need seconds to start a program. */
const endless = `setInterval(() => undefined, 1000);`;
const timeFor = (body: string) => (body === endless ? { timeoutMs: 500 } : {});

test.each([
  ["another exit code", `process.exit(1);`, "ended with 1"],
  ["output that is no JSON", `console.log("hello");`, "Unexpected token"],
  ["no end", endless, "no answer within 500 ms"],
])("%s blocks: a hook that fails is a no", async (name, body, reason) => {
  const argv = script(name.replaceAll(" ", "-"), body);
  const hook = createCommandHook({ when: "before", argv, name: "mine", ...timeFor(body) });
  const answer = await runBefore([hook], call, signal);
  expect(answer).toMatchObject({ block: expect.stringMatching(`the hook mine failed: .*${reason}`) });
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
  ["does not end", endless, "no answer within"],
])("an after-hook that %s withholds the result", async (name, body, reason) => {
  const argv = script(`after-${name.replaceAll(" ", "-")}`, body);
  const hook = createCommandHook({ when: "after", argv, ...timeFor(body) });
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

test("a program is told which kind of hook it is, and runs in the folder that was named", async () => {
  const argv = script(
    "where",
    `${readInput} console.log(JSON.stringify({ input: { event: call.event, id: call.id, cwd: process.cwd() } }));`,
  );
  const cwd = realpathSync(dir);
  expect(await runBefore([createCommandHook({ when: "before", argv, cwd })], call, signal)).toEqual({
    input: { event: "before", id: "1", cwd },
  });
});

test("a program that exits with 2 and says nothing blocks in its own name", async () => {
  const argv = script("silent", "process.exit(2);");
  const named = createCommandHook({ when: "before", argv, name: "guard" });
  expect(await runBefore([named], call, signal)).toEqual({ block: "guard blocked it" });
  const [node = ""] = argv;
  expect(await runBefore([createCommandHook({ when: "before", argv })], call, signal)).toEqual({
    block: `${node} blocked it`,
  });
});

test.each([
  ["a list", "[]"],
  ["a number", "5"],
  ["null", "null"],
  ["text", '"ok"'],
  ["two objects", "{} {}"],
])("a program that prints %s has failed", async (name, printed) => {
  const argv = script(`prints-${name.replaceAll(" ", "-")}`, `console.log(${JSON.stringify(printed)});`);
  const before = createCommandHook({ when: "before", argv });
  expect(await runBefore([before], call, signal)).toMatchObject({ block: expect.stringContaining("failed") });
  const after = createCommandHook({ when: "after", argv });
  expect(await runAfter([after], secret, signal)).toMatchObject({ withheld: expect.stringContaining("failed") });
});

test("a program need not read its input, however long it is", async () => {
  const argv = script("deaf", "process.stdin.destroy();");
  const long = { ...call, input: { text: "x".repeat(2_000_000) } };
  expect(await runBefore([createCommandHook({ when: "before", argv })], long, signal)).toBeUndefined();
});

test("a program that prints without end is cut off, and what is left is no answer", async () => {
  const argv = script("flood", `process.stdout.write('{"input":{"x":"' + "y".repeat(3_000_000) + '"}}');`);
  expect(await runBefore([createCommandHook({ when: "before", argv })], call, signal)).toMatchObject({
    block: expect.stringContaining("failed"),
  });
});

test("an empty object is no opinion, and something thrown that is no error is a failure with its words", async () => {
  expect(await runBefore([{ before: () => ({}) as never }], call, signal)).toBeUndefined();
  expect(await runAfter([{ after: () => ({}) as never }], secret, signal)).toEqual({
    content: secret.content,
    structured: secret.structured,
  });
  // What JavaScript can throw and a linter would refuse.
  const thrower = () => Promise.reject("just words" as unknown as Error);
  expect(await runBefore([{ before: thrower }], call, signal)).toEqual({ block: "a hook failed: just words" });
});

test("hooks without the function that is asked for, or for other tools, are passed over", async () => {
  const hooks: readonly Hook[] = [
    { after: () => ({ block: "after" }) },
    { before: () => ({ block: "before" }) },
    { tool: "read_*", before: () => ({ block: "other" }), after: () => ({ block: "other" }) },
  ];
  expect(await runBefore(hooks.slice(2), call, signal)).toBeUndefined();
  expect(await runAfter(hooks.slice(1), secret, signal)).not.toHaveProperty("withheld");
  expect(await runBefore(hooks, call, signal)).toEqual({ block: "before" });
  expect(await runAfter(hooks, secret, signal)).toMatchObject({ withheld: "after" });
});

test("a watcher that fails is passed over also where nobody wants to hear of it", async () => {
  const broken = () => Promise.reject(new Error("down"));
  expect(await runBefore([{ watches: true, before: broken }], call, signal)).toBeUndefined();
  expect(await runAfter([{ watches: true, after: broken }], secret, signal)).not.toHaveProperty("withheld");
});

test("a hook is told when the turn is stopped, and its answer does not count any more", async () => {
  const stop = new AbortController();
  let told = false;
  const hook: Hook = {
    before: (_call, limit) => {
      limit.addEventListener("abort", () => void (told = true));
      stop.abort();
      return new Promise(() => undefined);
    },
  };
  expect(await runBefore([hook], call, stop.signal)).toMatchObject({ block: expect.stringContaining("stopped") });
  expect(told).toBe(true);
});

test("a program that takes too long is ended, and not left running", async () => {
  const mark = join(dir, "pid");
  const argv = ["/bin/sh", "-c", 'echo $$ > "$0"; exec sleep 60', mark];
  const hook = createCommandHook({ when: "before", argv, timeoutMs: 1_500 });
  expect(await runBefore([hook], call, signal)).toMatchObject({ block: expect.stringContaining("within 1500 ms") });
  const pid = Number(readFileSync(mark, "utf8"));
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), { timeout: 5_000 });
});

test("the time limit of a hook holds, whenever memory is collected while it runs", async () => {
  const argv = script("endless", endless);
  const program = createCommandHook({ when: "before", argv, timeoutMs: 300 });
  const silent: Hook = { before: () => new Promise(() => undefined), timeoutMs: 300 };
  for (const hook of [program, silent]) {
    const answer = await whileCollecting(() => runBefore([hook], call, signal));
    expect(answer).toMatchObject({ block: expect.stringContaining("failed") });
  }
});

test.each([0.5, 2 ** 31, 1e12])("a time limit of %s ms is one that a timer can keep", async (timeoutMs) => {
  expect(await runBefore([{ before: () => ({ block: "no" }), timeoutMs }], call, signal)).toEqual({ block: "no" });
});
