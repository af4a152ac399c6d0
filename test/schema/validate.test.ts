import { expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import { createValidator } from "../../src/schema/validate.ts";
import { cpuSince } from "../work.ts";
import { recordedSchemas } from "./corpus.ts";

const accepts = async (schema: JsonObject, value: unknown) => (await createValidator(schema)(value)).ok;
const issues = async (schema: JsonObject, value: unknown) => {
  const result = await createValidator(schema)(value);
  return result.ok ? [] : result.issues.map(({ path, message }) => `${path}: ${message}`);
};

/** As text: an object with a `then` of its own is no schema to a linter. */
const conditional = `{ "if": { "properties": { "k": { "const": 1 } }, "required": ["k"] }, "then": { "required": ["a"] }, "else": { "required": ["b"] } }`;

/** Schema, a value it takes, a value it does not: what differs between drafts, and what tools use. */
test.each<readonly [string, JsonObject, unknown, unknown]>([
  ["2020-12 prefixItems", { prefixItems: [{ type: "string" }], items: false }, ["a"], ["a", 1]],
  ["draft-07 tuple items", { items: [{ type: "string" }], additionalItems: false }, ["a"], ["a", 1]],
  ["2020-12 $defs", { $ref: "#/$defs/a", $defs: { a: { type: "integer" } } }, 1, 1.5],
  ["draft-07 definitions", { $ref: "#/definitions/a", definitions: { a: { type: "integer" } } }, 1, "1"],
  ["draft-07 dependencies", { dependencies: { a: ["b"] } }, { a: 1, b: 1 }, { a: 1 }],
  ["2020-12 dependentRequired", { dependentRequired: { a: ["b"] } }, {}, { a: 1 }],
  ["if then else", JSON.parse(conditional) as JsonObject, { k: 1, a: 1 }, { k: 1, b: 1 }],
  ["unevaluatedProperties", { allOf: [{ properties: { a: {} } }], unevaluatedProperties: false }, { a: 1 }, { b: 1 }],
  [
    "a reference under an $id of its own",
    {
      $id: "http://example.com/root.json",
      allOf: [{ $ref: "inner/part.json" }],
      $defs: {
        part: {
          $id: "inner/part.json",
          $defs: { inner: { properties: { a: { type: "string" } } } },
          $ref: "#/$defs/inner",
        },
      },
    },
    { a: "x" },
    { a: 1 },
  ],
  [
    "an anchor under an $id of its own",
    {
      $ref: "part.json#here",
      $defs: { part: { $id: "part.json", $defs: { x: { $anchor: "here", type: "integer" } } } },
    },
    1,
    "x",
  ],
  [
    "draft-07: what stands beside a reference names nothing",
    {
      $schema: "http://json-schema.org/draft-07/schema#",
      $id: "http://example.com/base/",
      definitions: {
        foo: { $id: "http://example.com/other/foo.json", type: "string" },
        base: { $id: "foo.json", type: "number" },
      },
      allOf: [{ $id: "http://example.com/other/", $ref: "foo.json" }],
    },
    1,
    "x",
  ],
  [
    "recursion",
    { type: "object", properties: { next: { $ref: "#" } }, additionalProperties: false },
    { next: { next: {} } },
    { next: { other: 1 } },
  ],
  [
    "patternProperties",
    { patternProperties: { "^x-": { type: "string" } }, additionalProperties: false },
    { "x-a": "b" },
    { y: "b" },
  ],
  ["propertyNames", { propertyNames: { maxLength: 2 } }, { ab: 1 }, { abc: 1 }],
  ["contains", { contains: { const: 1 } }, [0, 1], [0]],
  ["uniqueItems", { uniqueItems: true }, [1, 2], [1, 1]],
  ["multipleOf", { multipleOf: 0.5 }, 1.5, 1.2],
  ["oneOf", { oneOf: [{ type: "number" }, { multipleOf: 2, type: "number" }] }, 1, 2],
  ["not", { not: { type: "null" } }, 1, null],
  ["format", { type: "string", format: "uuid" }, "0f2c1f7e-1111-4222-8333-444455556666", "x"],
  ["length in characters, not units", { type: "string", maxLength: 1 }, "😀", "ab"],
])("%s is understood", async (_name, schema, good, bad) => {
  expect(await accepts(schema, good)).toBe(true);
  expect(await accepts(schema, bad)).toBe(false);
});

test("of alternatives, the one that came closest is explained", async () => {
  const schema = {
    anyOf: [
      { type: "string" },
      { type: "object", properties: { kind: { const: "a" }, n: { type: "integer" } }, required: ["kind"] },
    ],
  };
  expect(await issues({ type: "object", properties: { v: schema } }, { v: { kind: "a", n: "x" } })).toEqual([
    'v.n: must be integer, but is the string "x"',
  ]);
  expect(await issues({ type: "object", properties: { v: schema } }, { v: 7 })).toEqual([
    "v: must be string or object, but is the number 7",
  ]);
});

test("paths read as a person writes them", async () => {
  const schema = {
    type: "object",
    properties: { "a b": { type: "array", items: { type: "object", properties: { c: { type: "string" } } } } },
  };
  expect(await issues(schema, { "a b": [{}, { c: 1 }] })).toEqual([
    '["a b"][1].c: must be string, but is the number 1',
  ]);
});

test("a reference is followed for the names it allows", async () => {
  const schema = {
    $ref: "#/$defs/a",
    $defs: { a: { type: "object", properties: { colour: {} }, additionalProperties: false } },
  };
  expect(await issues(schema, { color: 1 })).toEqual([
    ": has an unknown key 'color' (did you mean 'colour'?); allowed: colour",
  ]);
});

test("a busy schema is compiled where that is allowed, and decides the same", async () => {
  const schema = { type: "object", properties: { n: { type: "integer", minimum: 3 } }, required: ["n"] };
  const compiled = createValidator(schema, { compile: true });
  const interpreted = createValidator(schema);
  for (let round = 0; round < 120; round++) {
    for (const value of [{ n: 3 }, { n: 2 }, {}, null])
      expect((await compiled(value)).ok).toBe((await interpreted(value)).ok);
  }
});

test("every recorded schema can be checked against without an error", async () => {
  expect(recordedSchemas.length).toBeGreaterThan(10);
  for (const { inputSchema } of recordedSchemas) {
    const result = await createValidator(inputSchema)({});
    const messages = result.ok ? [] : result.issues.map(({ message }) => message);
    expect(messages.filter((message) => message.includes("cannot be checked"))).toEqual([]);
  }
});

test("a stranger's schema cannot keep the validator busy for ever", async () => {
  const doubling = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [
      `n${index}`,
      { anyOf: [{ $ref: `#/$defs/n${index + 1}` }, { $ref: `#/$defs/n${index + 1}` }] },
    ]),
  );
  const spent = cpuSince();
  const laughs = {
    type: "object",
    properties: { a: { $ref: "#/$defs/n0" } },
    $defs: { ...doubling, n60: { type: "null" } },
  };
  await createValidator(laughs)({ a: 1 });
  const slow = { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } };
  expect(await accepts(slow, { a: `${"a".repeat(60)}!` })).toBe(true);
  expect(spent()).toBeLessThan(20_000);
});

test("one's own patterns are kept as they are, however they repeat", async () => {
  const schema = { type: "string", pattern: "^(\\w+\\.)+\\w+$" };
  expect((await createValidator(schema, { compile: true })("a.b.c")).ok).toBe(true);
  expect((await createValidator(schema, { compile: true })("a..c")).ok).toBe(false);
});
