import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkTarget } from "../../src/spec/normalize/check-target.ts";
import { normalize, schemaTargets } from "../../src/spec/normalize.ts";

const real = readFileSync(new URL("../../../shared/data/mcp-schemas.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as { readonly server: string; readonly tool: string; readonly inputSchema: unknown });

describe.each(schemaTargets)("%s", (target) => {
  test("takes every real MCP schema after normalising, and normalising again changes nothing", () => {
    expect(real.length).toBeGreaterThan(300);
    for (const { server, tool, inputSchema } of real) {
      const { schema } = normalize(inputSchema, target);
      expect(checkTarget(schema, target), `${server} ${tool}`).toEqual([]);
      expect(normalize(schema, target).schema, `${server} ${tool}`).toEqual(schema);
    }
  });

  test("any JSON value gives a schema the target takes, twice the same", () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue({ maxDepth: 6 }), schemaLike), (value) => {
        const { schema } = normalize(value, target);
        expect(checkTarget(schema, target)).toEqual([]);
        expect(normalize(schema, target).schema).toEqual(schema);
      }),
      { numRuns: 400, interruptAfterTimeLimit: 10_000, markInterruptAsFailure: true },
    );
  });
});

const keyword = fc.constantFrom(
  "type",
  "properties",
  "items",
  "enum",
  "const",
  "anyOf",
  "oneOf",
  "allOf",
  "required",
  "additionalProperties",
  "$ref",
  "$defs",
  "minimum",
  "maxLength",
  "pattern",
  "format",
  "description",
  "nullable",
  "prefixItems",
  "default",
  "not",
);
/** Values where a keyword expects them, and where it does not. */
const schemaLike = fc.letrec((tie) => ({
  schema: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.boolean(),
    fc.dictionary(keyword, fc.oneof(tie("value"), tie("value")), { maxKeys: 5 }),
  ),
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>(
      "string",
      "integer",
      "null",
      "object",
      "array",
      "date-time",
      "uri",
      "#",
      "#/$defs/a",
      "#/properties/a",
      "^[a-z]+$",
      "(?=x)",
      "(",
      0,
      3,
      5000,
      -1,
      1.5,
      true,
      false,
      null,
    ),
    fc.array(tie("schema"), { maxLength: 3 }),
    fc.array(fc.constantFrom<unknown>("string", "null", "array", "object", "a", "b", 1, true, null), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "a b", "$x", "type", "constructor"), tie("schema"), { maxKeys: 3 }),
    tie("schema"),
  ),
})).schema;
