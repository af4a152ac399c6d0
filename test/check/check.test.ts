import { expect, test } from "vitest";
import { CallError } from "../../src/base/error.ts";
import type { Bound } from "../../src/spec/call.ts";
import { check } from "../../src/check/check.ts";
import { defineTool } from "../../src/registry/define.ts";
import { freeform } from "../../src/spec/freeform.ts";
import type { AnyTool } from "../../src/spec/tool.ts";

const at = { workspace: "/w", cwd: "/w", terminals: [] };

function ask(tool: AnyTool, args: string, extra: Partial<Bound> = {}): Bound {
  return { id: "c1", name: tool.name, kind: "function", arguments: args, askedAt: 0, tool, ...extra };
}

async function failure(promise: Promise<unknown>): Promise<CallError> {
  try {
    await promise;
  } catch (error) {
    if (CallError.is(error)) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

const run = () => "done";
const list = defineTool({
  name: "list",
  description: "lists",
  input: {
    type: "object",
    properties: {
      command: { type: "string" },
      limit: { type: "integer" },
      mode: { enum: ["fast", "slow"] },
      deep: { type: "object", properties: { on: { type: "boolean" } } },
    },
    required: ["command"],
    additionalProperties: false,
  },
  run,
});

test("whole arguments pass, and empty ones are an empty object", async () => {
  expect((await check(ask(list, '{"command":"ls","limit":3}'), at)).input).toEqual({ command: "ls", limit: 3 });
  const none = defineTool({ name: "none", description: "", input: { type: "object", properties: {} }, run });
  for (const text of ["", "  \n", "{}", "null"]) expect((await check(ask(none, text), at)).input).toEqual({});
});

test.each([
  ['{"command":"ls"', "it ends too early at character 16", 15],
  ['{"command":"ls",}', "expected a key in double quotes", 16],
  ["{'command':1}", "character 2 (line 1, column 2)", 1],
  ['{"command":"grep \\* x"}', "expected a legal escape", 17],
  ['{"command":"a\nb"}', "a line break is \\n", 13],
  ['{"command":"ls"} extra', "nothing more after the end", 17],
  ["abc", "expected a JSON value", 0],
  ['{"a":01}', "',' or '}'", 6],
])("broken JSON %j is told with its place, not repaired", async (text, words, position) => {
  const error = await failure(check(ask(list, text), at));
  expect(error.code).toBe("invalid_input");
  expect(error.message).toContain(words);
  expect(error.data).toMatchObject({ position });
});

test.each([
  ['["ls"]', "the arguments: must be object, but is an array of 1"],
  ["7", "must be object"],
  ["{}", "'command' is required and missing"],
  ['{"comand":"ls"}', "'command' is required and missing (there is 'comand': did you mean 'command'?)"],
  ['{"command":"ls","limt":1}', "unknown key 'limt' (did you mean 'limit'?)"],
  ['{"command":"ls","limit":"3"}', 'limit: must be integer, but is the string "3"'],
  [
    '{"command":"ls","mode":"fats"}',
    'mode: must be one of "fast", "slow", but is the string "fats" (did you mean "fast"?)',
  ],
  ['{"command":"ls","deep":{"on":1}}', "deep.on: must be boolean, but is the number 1"],
])("arguments %s are refused in words a model can act on", async (text, words) => {
  const error = await failure(check(ask(list, text), at));
  expect(error.code).toBe("invalid_input");
  expect(error.message).toContain(words);
  expect(error.hint).toContain('list({command: string, limit?: integer, mode?: "fast"|"slow"');
});

test("strings become what the schema asks for only when the wire has no types", async () => {
  expect((await failure(check(ask(list, '{"command":"ls","limit":"3"}'), at))).code).toBe("invalid_input");
  const checked = await check(
    ask(list, '{"command":"ls","limit":"3","deep":"{\\"on\\":\\"TRUE\\"}"}', { untyped: true }),
    at,
  );
  expect(checked.input).toEqual({ command: "ls", limit: 3, deep: { on: true } });
  expect(checked.notes).toEqual([
    "limit: string read as integer",
    "deep: string read as object",
    "deep.on: string read as boolean",
  ]);
});

test("text that merely looks like a number stays text where the schema says string", async () => {
  expect((await check(ask(list, '{"command":"42"}', { untyped: true }), at)).input).toEqual({ command: "42" });
});

test("nulls that strict mode puts into optional properties are taken out again", async () => {
  const checked = await check(ask(list, '{"command":"ls","limit":null,"deep":{"on":null}}'), at);
  expect(checked.input).toEqual({ command: "ls", deep: {} });
  expect(checked.notes).toHaveLength(2);
});

test("a null for a required property is still an error", async () => {
  expect((await failure(check(ask(list, '{"command":null}'), at))).message).toContain(
    "command: must be string, but is null",
  );
});

test("a __proto__ key never reaches the handler and pollutes nothing", async () => {
  const open = defineTool({ name: "open", description: "", input: { type: "object" }, run });
  const checked = await check(ask(open, '{"__proto__":{"admin":true},"a":{"\\u005f_proto__":1}}'), at);
  expect(Object.hasOwn(checked.input as object, "__proto__")).toBe(false);
  expect(checked.input).toEqual({ a: {} });
  expect(({} as { admin?: boolean }).admin).toBeUndefined();
  expect(checked.notes).toHaveLength(2);
});

test("ten megabytes of arguments are checked, and nesting beyond reason is told", async () => {
  const open = defineTool({
    name: "open",
    description: "",
    input: {
      type: "object",
      properties: { text: { type: "string" }, list: { type: "array", items: { type: "integer" } } },
    },
    run,
  });
  const big = JSON.stringify({ text: "x".repeat(10_000_000) });
  expect((await check(ask(open, big), at)).input).toHaveProperty("text");
  for (const depth of [10_000, 1_000_000]) {
    const error = await failure(check(ask(open, `{"list":${"[".repeat(depth)}${"]".repeat(depth)}}`), at));
    expect(error.message).toContain("nest deeper than 1000 levels");
  }
  const wrong = await failure(
    check(ask(open, JSON.stringify({ list: Array.from({ length: 200_000 }, () => "x") })), at),
  );
  expect(wrong.message.length).toBeLessThan(2000);
});

test("keys of a megabyte are told back in a line", async () => {
  const error = await failure(check(ask(list, JSON.stringify({ ["x".repeat(1_000_000)]: 1 })), at));
  expect(error.message.length).toBeLessThan(1_000);
  expect(JSON.stringify(error.data).length).toBeLessThan(1_000);
});

test("an unknown key that an open schema lets pass is noted", async () => {
  const open = defineTool({
    name: "open",
    description: "",
    input: { type: "object", properties: { a: { type: "string" } } },
    run,
  });
  expect((await check(ask(open, '{"a":"x","sudo":true}'), at)).notes).toEqual([
    "unknown key 'sudo': the schema does not name it",
  ]);
});

test("a broken keyword in a foreign schema does not make its tool unusable", async () => {
  const input = {
    type: "object",
    properties: {
      a: { $ref: "#/nowhere" },
      b: { type: "string", pattern: "(" },
      c: { type: "string", pattern: "^[\\w\\_]+$" },
    },
    required: ["a"],
  };
  const foreign: AnyTool = { name: "srv/x", description: "", input, run };
  expect((await check(ask(foreign, '{"a":1,"b":"("}'), at)).input).toEqual({ a: 1, b: "(" });
  expect((await failure(check(ask(foreign, '{"a":1,"c":"!"}'), at))).message).toContain("c: must match the pattern");
  const circle: AnyTool = { name: "srv/y", description: "", input: { type: "object", allOf: [{ $ref: "#" }] }, run };
  expect((await check(ask(circle, "{}"), at)).input).toEqual({});
});

test("what was done to a schema for a provider is undone in the arguments", async () => {
  const scalar: AnyTool = { name: "srv/n", description: "", input: { type: "integer" }, run };
  expect((await check(ask(scalar, '{"value":7}'), at)).input).toBe(7);
  const numbers: AnyTool = {
    name: "srv/e",
    description: "",
    input: { type: "object", properties: { n: { enum: [1, 2] } } },
    run,
  };
  expect((await check(ask(numbers, '{"n":"2"}'), at)).input).toEqual({ n: 2 });
});

test("what a tool will touch is asked of the tool, and decides whether it mutates", async () => {
  const writer = defineTool({
    name: "w",
    description: "",
    input: { type: "object", properties: { p: { type: "string" } }, required: ["p"] },
    access: ({ p }) => ({ write: [p] }),
    run,
  });
  const checked = await check(ask(writer, '{"p":"a"}'), at);
  expect(checked).toMatchObject({ access: { write: ["a"] }, mutates: true });
  expect((await check(ask(list, '{"command":"x"}'), at)).mutates).toBe(false);
});

test("a tool that cannot say what it touches is not run", async () => {
  const broken: AnyTool = {
    name: "b",
    description: "",
    input: {},
    access: () => {
      throw new Error("oops");
    },
    run,
  };
  const error = await failure(check(ask(broken, "{}"), at));
  expect(error).toMatchObject({ code: "failed", message: "b could not say what the call would touch: oops" });
});

test.each([undefined, null, 0, Promise.resolve(false)])(
  "a tool that gives %s where it has to say whether the call changes something is not run",
  async (given) => {
    // As a tool in JavaScript may be written.
    const broken = { name: "b", description: "", input: {}, mutates: () => given as unknown as boolean, run };
    expect(await failure(check(ask(broken, "{}"), at))).toMatchObject({
      code: "failed",
      message: expect.stringContaining("b could not say whether the call changes something: mutates gave"),
    });
  },
);

const patch = defineTool({
  name: "apply_patch",
  description: "",
  input: freeform({ syntax: "regex", definition: String.raw`\*\*\* Begin\n(?:\+.*\n)+\*\*\* End\n?` }),
  run,
});
const good = "*** Begin\n+a\n+b\n*** End";

test.each([
  ["custom", good],
  ["function", JSON.stringify({ input: good })],
  ["function", JSON.stringify({ patch: good })],
  ["function", JSON.stringify(good)],
  ["function", JSON.stringify({ command: ["apply_patch", good] })],
  ["function", good],
  ["custom", `\`\`\`\n${good}\n\`\`\``],
  ["custom", JSON.stringify({ input: good })],
] as const)("a freeform call as %s %j gives the text", async (kind, args) => {
  expect((await check(ask(patch, args, { kind }), at)).input).toBe(good);
});

test("freeform text that does not match its pattern is told so, and a Lark grammar leaves the text to the handler", async () => {
  const broken = "*** Begin\n+a\noops\n*** End";
  const error = await failure(check(ask(patch, broken, { kind: "custom" }), at));
  expect(error.message).toContain("does not match");
  const guided = defineTool({ ...patch, input: freeform({ syntax: "lark", definition: "start: /a/" }) });
  expect((await check(ask(guided, broken, { kind: "custom" }), at)).input).toBe(broken);
});

test("freeform text without a grammar is handed on as it stands, fences and all", async () => {
  const code = defineTool({ name: "code", description: "", input: freeform(), run });
  expect((await check(ask(code, "```js\n1\n```", { kind: "custom" }), at)).input).toBe("```js\n1\n```");
  expect((await check(ask(code, '{"input":"x"}', { kind: "custom" }), at)).input).toBe('{"input":"x"}');
});
