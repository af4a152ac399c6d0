import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import { checkSchema } from "../../src/schema/normalize/check-schema.ts";
import { normalizeSchema, schemaTargets } from "../../src/schema/normalize.ts";
import { recordedSchemas } from "./corpus.ts";

const sizeOf = (schema: JsonObject) => Buffer.byteLength(JSON.stringify(schema));
const large = recordedSchemas.map(({ inputSchema }) => inputSchema).filter((schema) => sizeOf(schema) > 5000);

describe.each(schemaTargets)("%s", (target) => {
  test("a large schema fits its size or says that it does not, and is still taken", () => {
    expect(large.length).toBeGreaterThan(10);
    let fitting = 0;
    for (const schema of large) {
      const whole = normalizeSchema(schema, target);
      const small = normalizeSchema(schema, target, { maxBytes: 5000 });
      expect(checkSchema(small.schema, target)).toEqual([]);
      expect(sizeOf(small.schema)).toBeLessThanOrEqual(sizeOf(whole.schema));
      const isFitting = sizeOf(small.schema) <= 5000;
      if (isFitting) fitting++;
      else expect(small.changes.at(-1)!.what).toMatch(/^still \d+ bytes, more than the 5000 wanted$/);
      if (sizeOf(whole.schema) > 5000) expect(small.changes.length).toBeGreaterThan(whole.changes.length);
    }
    expect(fitting).toBeGreaterThan(large.length / 2);
  });
});

const schema: JsonObject = {
  type: "object",
  description: "d".repeat(300),
  properties: {
    filter: {
      type: "object",
      description: "f".repeat(300),
      properties: { by: { type: "object", properties: { name: { type: "string", description: "n".repeat(300) } } } },
    },
  },
};

test("descriptions are cut before depth is, and each cut is told with its place", () => {
  expect(normalizeSchema(schema, "openai", { maxBytes: 5000 })).toEqual(normalizeSchema(schema, "openai"));
  const shorter = normalizeSchema(schema, "openai", { maxBytes: 900 });
  expect(shorter.changes).toEqual([
    { path: "/description", what: "cut to 200 characters for size" },
    { path: "/properties/filter/description", what: "cut to 200 characters for size" },
    {
      path: "/properties/filter/properties/by/properties/name/description",
      what: "cut to 200 characters for size",
    },
  ]);
  const flat = normalizeSchema(schema, "openai", { maxBytes: 170 });
  expect(flat.changes.map(({ path, what }) => `${path} ${what}`)).toContain(
    "/properties/filter/properties/by/properties left out for size",
  );
  expect(flat.schema["properties"]).toMatchObject({
    filter: { type: "object", properties: { by: { type: "object" } } },
  });
});

test("definitions nobody refers to any more go with what was cut", () => {
  const tree: JsonObject = {
    type: "object",
    properties: {
      a: { type: "object", properties: { b: { type: "object", properties: { c: { $ref: "#/$defs/c" } } } } },
    },
    $defs: { c: { type: "object", properties: { name: { type: "string" } } } },
  };
  const { schema: flat } = normalizeSchema(tree, "openai", { maxBytes: 120 });
  expect(flat).not.toHaveProperty("$defs");
});

test("closed objects keep their depth: one without properties would take nothing", () => {
  const { schema: strict, changes } = normalizeSchema(schema, "openai-strict", { maxBytes: 100 });
  expect(JSON.stringify(strict)).toContain('"name"');
  expect(changes.at(-1)!.what).toMatch(/^still \d+ bytes/);
});
