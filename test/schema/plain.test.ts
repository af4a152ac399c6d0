import fc from "fast-check";
import { Check } from "typebox/schema";
import { expect, test } from "vitest";
import { createPlainCheck } from "../../src/schema/plain.ts";
import { toSchema } from "../../src/schema/schema.ts";
import { builtins } from "../../src/tools/index.ts";
import { recordedSchemas } from "./corpus.ts";

const names = fc.constantFrom("a", "b", "c", "__proto__", "constructor");
const bound = fc.option(fc.integer({ min: -1, max: 3 }), { nil: undefined });

/** Schemas of the plain kind, and some that are nearly of it. */
const { schema: schemas } = fc.letrec<{ schema: object }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    fc.record({ type: fc.constantFrom("boolean", "null", "text"), description: fc.string() }),
    fc.record({
      type: fc.constant("string"),
      minLength: bound,
      maxLength: bound,
      enum: fc.option(fc.array(fc.string({ maxLength: 2 })), { nil: undefined }),
      pattern: fc.option(fc.constant("^a"), { nil: undefined, freq: 9 }),
    }),
    fc.record({ type: fc.constantFrom("integer", "number"), minimum: bound, maximum: bound }),
    fc.record({ type: fc.constant("array"), items: tie("schema"), minItems: bound, maxItems: bound }),
    fc.record({
      type: fc.constant("object"),
      properties: fc.dictionary(names, tie("schema")),
      required: fc.option(fc.uniqueArray(names), { nil: undefined }),
      additionalProperties: fc.constantFrom(true, false, undefined),
    }),
  ),
}));
const { value: values } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, "", "a", "é", "👩‍👩‍👧", 0, 1, -1, 1.5, 2 ** 60, Infinity),
    fc.string({ maxLength: 3 }),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(names, tie("value")),
  ),
}));

test("what is called plainly right is right for the library too", () => {
  let sure = 0;
  fc.assert(
    fc.property(schemas, fc.array(values, { minLength: 1, maxLength: 8 }), (made, given) => {
      const schema = JSON.parse(JSON.stringify(made)) as object; // without undefined fields, as schemas come
      const check = createPlainCheck(schema);
      for (const value of given) {
        if (check?.(value) !== true) continue;
        sure++;
        expect(Check(schema, value), JSON.stringify({ schema, value })).toBe(true);
      }
    }),
    { numRuns: 3000 },
  );
  expect(sure).toBeGreaterThan(100); // or the law says nothing
});

test("no schema that was recorded takes a value here that the library refuses", () => {
  let sure = 0;
  for (const { inputSchema } of recordedSchemas) {
    const check = createPlainCheck(inputSchema);
    if (check === undefined) continue;
    // Its own names, so that some of the values fit.
    const own = Object.keys((inputSchema as { readonly properties?: object }).properties ?? {});
    const inputs =
      own.length === 0 ? values : fc.dictionary(fc.constantFrom(...own), values, { noNullPrototype: true });
    fc.assert(
      fc.property(fc.oneof(values, inputs), (value) => {
        if (!check(value)) return;
        sure++;
        expect(Check(inputSchema, value), JSON.stringify({ inputSchema, value })).toBe(true);
      }),
      { numRuns: 200 },
    );
  }
  expect(sure).toBeGreaterThan(50); // or it says nothing
});

test("reading a file and running a command need no library", () => {
  const plain = builtins
    .filter(({ input }) => createPlainCheck(toSchema(input).json) !== undefined)
    .map(({ name }) => name);
  expect(plain).toEqual(expect.arrayContaining(["read_file", "shell_command", "grep_files", "list_dir"]));
});
