import { expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import { surveySchema } from "../../src/schema/fault.ts";
import { createMeter } from "../../src/schema/meter.ts";
import { cpuSince } from "../work.ts";
import { createValidator } from "../../src/schema/validate.ts";

const names = (count: number) => Array.from({ length: count }, (_, place) => `p${place}`);
const nested = (depth: number): unknown => (depth === 0 ? {} : { a: nested(depth - 1) });

/** Each level of the value is held against twice as many schemas as the one above. */
const doubling: JsonObject = {
  type: "object",
  allOf: [{ properties: { a: { $ref: "#" } } }, { properties: { a: { $ref: "#" } } }],
};

test("a schema that doubles with each level of the value is given up, and the call not run", async () => {
  const validate = createValidator(doubling);
  expect(await validate(nested(8))).toMatchObject({ ok: true });
  const spent = cpuSince();
  expect(await validate(nested(40))).toEqual({
    ok: false,
    issues: [{ path: "", message: "cannot be checked against this tool's schema (it would take too long)" }],
  });
  expect(spent()).toBeLessThan(20_000);
  expect(await validate(nested(8))).toMatchObject({ ok: true });
}, 60_000);

test("tens of thousands of names, declared and given, are refused at once", async () => {
  const properties = Object.fromEntries(names(50_000).map((name) => [name, { type: "string" }]));
  const value = Object.fromEntries(names(50_000).map((name) => [name, "x"]));
  const validate = createValidator({ type: "object", properties, additionalProperties: false });
  const spent = cpuSince();
  expect(await validate(value)).toMatchObject({ ok: false });
  expect(await validate({ p1: "x" })).toMatchObject({ ok: true });
  expect(spent()).toBeLessThan(20_000);
}, 60_000);

test("a frozen schema with references is checked as any other", async () => {
  const tree = Object.freeze({
    type: "object",
    properties: Object.freeze({
      name: { type: "string", pattern: "^[\\w\\-.]+$" },
      next: Object.freeze({ $ref: "#" }),
    }),
    required: Object.freeze(["name"]),
  }) as unknown as JsonObject;
  const validate = createValidator(tree);
  expect(await validate({ name: "a", next: { name: "b-c" } })).toMatchObject({ ok: true });
  expect(await validate({ name: "a", next: { name: " " } })).toMatchObject({
    ok: false,
    issues: [{ path: "next.name" }],
  });
});

test("a large value of a recursive schema is no trouble", async () => {
  const validate = createValidator({ properties: { list: { items: { $ref: "#" } } } });
  expect(await validate({ list: Array.from({ length: 20_000 }, () => ({ list: [] })) })).toMatchObject({ ok: true });
});

test("small schemas without references are not watched", () => {
  const plain: JsonObject = { type: "object", properties: { a: { type: "string" } } };
  expect(createMeter(plain, surveySchema(plain).nodes)).toBeUndefined();
  expect(createMeter(doubling, surveySchema(doubling).nodes)).toBeDefined();
});
