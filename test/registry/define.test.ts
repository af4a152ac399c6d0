import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { expect, test } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { z as z3 } from "zod/v3";
import type { Bound } from "../../src/spec/call.ts";
import { check } from "../../src/check/check.ts";
import { defineTool, fromObject } from "../../src/registry/define.ts";
import { freeform } from "../../src/spec/freeform.ts";
import type { InputSchema } from "../../src/spec/infer.ts";
import { toSchema } from "../../src/schema/schema.ts";
import type { AnyTool, ToolContext } from "../../src/spec/tool.ts";

const define = (input: unknown, extra: object = {}): AnyTool =>
  defineTool({ name: "t", description: "d", input: input as InputSchema, run: () => "ok", ...extra });
const ask = (tool: AnyTool, args: unknown): Bound => ({
  id: "1",
  name: tool.name,
  kind: "function",
  arguments: JSON.stringify(args),
  askedAt: 0,
  tool,
});
const at = { workspace: "/", cwd: "/", terminals: [] };

test.each<readonly [string, unknown]>([
  ["zod 4", z.object({ path: z.string(), limit: z.number().int().optional() })],
  ["ArkType", type({ path: "string", "limit?": "number.integer" })],
  [
    "Valibot through its converter",
    toStandardJsonSchema(v.object({ path: v.string(), limit: v.optional(v.pipe(v.number(), v.integer())) })),
  ],
  [
    "plain JSON Schema",
    { type: "object", properties: { path: { type: "string" }, limit: { type: "integer" } }, required: ["path"] },
  ],
  [
    "a validator and its JSON Schema",
    {
      validate: mini.object({ path: mini.string(), limit: mini.optional(mini.int()) }),
      json: {
        type: "object",
        properties: { path: { type: "string" }, limit: { type: "integer" } },
        required: ["path"],
      },
    },
  ],
])("%s is written down and validates", async (_name, input) => {
  const tool = define(input);
  expect(toSchema(tool.input).json).toMatchObject({
    type: "object",
    properties: { path: { type: "string" }, limit: {} },
    required: ["path"],
  });
  expect((await check(ask(tool, { path: "a", limit: 2 }), at)).input).toEqual({ path: "a", limit: 2 });
  await expect(check(ask(tool, { path: 1 }), at)).rejects.toMatchObject({
    code: "invalid_input",
    message: expect.stringContaining("path"),
  });
});

test("a library's defaults and transforms reach the handler", async () => {
  const tool = define(z.object({ n: z.number().default(3), word: z.string().transform((text) => text.length) }));
  expect((await check(ask(tool, { word: "four" }), at)).input).toEqual({ n: 3, word: 4 });
});

test.each<readonly [string, unknown]>([
  ["zod 3", z3.object({ a: z3.string() })],
  ["zod/mini", mini.object({ a: mini.string() })],
  ["bare Valibot", v.object({ a: v.string() })],
  ["a schema with no JSON form", z.object({ when: z.date() })],
  ["a library without Standard Schema", { parse() {}, safeParse() {} }],
])("%s is refused at definition with what to pass instead", (_name, input) => {
  expect(() => define(input)).toThrow(TypeError);
  expect(() => define(input)).toThrow(/^tool 't': input: .*pass \{ validate: schema, json: itsJsonSchema \} instead$/);
});

test.each<readonly [string, object, RegExp]>([
  ["no name", { name: "" }, /a name is needed/],
  ["a name with spaces", { name: "read file" }, /a name is letters, digits/],
  ["a name that starts with a digit", { name: "1st" }, /starts with a letter/],
  ["half a server name", { name: "server/" }, /server\/tool, with both halves/],
  ["an endless name", { name: "x".repeat(300) }, /longer than 200/],
  ["no handler", { run: undefined }, /run is not a function/],
  ["no description", { description: undefined }, /description must be text/],
  ["a time limit of nothing", { timeoutMs: 0 }, /timeoutMs/],
  ["an input that is no schema", { input: "string" }, /must be a Standard Schema/],
  ["a reference to nothing", { input: { $ref: "#/$defs/x" } }, /points to nothing \(at \$ref\)/],
  [
    "a broken pattern",
    { input: { type: "object", properties: { a: { type: "string", pattern: "(" } } } },
    /is no regular expression \(at properties\/a\/pattern\)/,
  ],
])("%s is a TypeError at definition", (_name, extra, words) => {
  expect(() => define({}, extra)).toThrow(words);
  expect(() => define({}, extra)).toThrow(TypeError);
});

test("a server's broken schema does not keep its tools, or others, from being registered", () => {
  expect(
    define(
      { type: "object", properties: { a: { $ref: "#/nowhere" } } },
      { name: "srv/tool", origin: { server: "srv", name: "tool" } },
    ).name,
  ).toBe("srv/tool");
  // A slash says nothing: a tool of the user's own is the user's to mend.
  expect(() => define({ type: "object", properties: { a: { $ref: "#/nowhere" } } }, { name: "my/tool" })).toThrow(
    TypeError,
  );
});

test("freeform needs both halves of a grammar or none", () => {
  expect(define(freeform()).input).toEqual({ kind: "freeform" });
  expect(() => freeform({ syntax: "lark" })).toThrow(TypeError);
});

test("the seed's object form becomes a tool, with this and ctx.logger as its author expects", async () => {
  const object = {
    name: "greet",
    description: "greets",
    inputSchema: { type: "object", properties: { who: { type: "string" } }, required: ["who"] },
    greeting: "Hello",
    async handler(
      args: { who: string },
      ctx: { logger: { info(message: string): void }; service: Record<string, unknown> },
    ) {
      ctx.logger.info("greeting");
      return { content: [{ type: "text", text: `${this.greeting} ${args.who} ${String(ctx.service["mood"])}` }] };
    },
    metadata: { type: "internal" },
  };
  const tool = fromObject(object as never);
  const lines: string[] = [];
  const ctx = {
    log: { info: (line: string) => lines.push(line) },
    service: { mood: "gladly" },
  } as unknown as ToolContext;
  expect(await tool.run({ who: "you" } as never, ctx)).toEqual({
    content: [{ type: "text", text: "Hello you gladly" }],
  });
  expect(lines).toEqual(["greeting"]);
  expect(tool.metadata).toEqual({ type: "internal" });
});

test("one schema object is read once, and equal texts share a validator", () => {
  const schema = { type: "object", properties: { a: { type: "string" } } };
  expect(toSchema(schema)).toBe(toSchema(schema));
  expect(toSchema(schema, { compile: true })).toBe(toSchema(schema, { compile: true }));
  expect(toSchema(schema, { compile: true }).validate).not.toBe(toSchema(schema).validate);
  expect(toSchema({ ...schema }).validate).toBe(toSchema(schema).validate);
});
