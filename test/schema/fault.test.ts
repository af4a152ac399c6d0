import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonObject } from "../../src/base/json.ts";
import { findFaults, surveySchema } from "../../src/schema/fault.ts";
import { withPlainReferences } from "../../src/schema/references.ts";

const names = [
  "$ref",
  "$id",
  "$defs",
  "$dynamicRef",
  "pattern",
  "patternProperties",
  "properties",
  "items",
  "anyOf",
  "a",
];
const words = fc.constantFrom("#", "#/$defs/a", "#/nowhere", "x", "(", "(a+)+", "object");
const { schema } = fc.letrec<{ schema: unknown; table: unknown }>((tie) => ({
  schema: fc.oneof({ maxDepth: 5 }, words, fc.array(tie("schema"), { maxLength: 3 }), tie("table")),
  table: fc.dictionary(fc.constantFrom(...names), tie("schema"), { maxKeys: 4 }),
}));

test("a schema that is taken for plain at a glance has no fault that a whole look would find", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names), schema, { maxKeys: 4 }), fc.boolean(), (table, foreign) => {
      const root = table as JsonObject; // made of words, lists and tables only
      expect(findFaults(root, { foreign })).toEqual(surveySchema(withPlainReferences(root), { foreign }).faults);
    }),
    { numRuns: 2_000 },
  );
});

test("a schema that holds itself, or one part a thousand times over, is looked at in the end", () => {
  const circle: Record<string, unknown> = { type: "object" };
  circle["items"] = circle;
  expect(findFaults(circle as JsonObject)).toEqual([]); // a circle that only a program can build
  let wide: JsonObject = { type: "string" };
  for (let level = 0; level < 60; level++) wide = { anyOf: [wide, wide] };
  expect(findFaults(wide)).toEqual([]);
});
