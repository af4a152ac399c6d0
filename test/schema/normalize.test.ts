import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { check } from "../../src/check/check.ts";
import { checkSchema } from "../../src/schema/normalize/check-schema.ts";
import type { JsonObject } from "../../src/base/json.ts";
import type { AnyTool } from "../../src/spec/tool.ts";
import { findTarget, normalizeSchema, schemaTargets } from "../../src/schema/normalize.ts";
import { cpuSince } from "../work.ts";
import { ownSchemas, recordedSchemas } from "./corpus.ts";

describe.each(schemaTargets)("%s", (target) => {
  test("takes every recorded schema after normalising, and normalising again changes nothing", () => {
    expect(ownSchemas.length).toBeGreaterThan(100);
    for (const { server, tool, inputSchema } of recordedSchemas) {
      const { schema } = normalizeSchema(inputSchema, target);
      expect(checkSchema(schema, target), `${server} ${tool}`).toEqual([]);
      expect(normalizeSchema(schema, target).schema, `${server} ${tool}`).toEqual(schema);
    }
  });

  test("any JSON value gives a schema the target takes, twice the same", () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue({ maxDepth: 6 }), schemaLike), (value) => {
        const { schema, changes } = normalizeSchema(value, target);
        expect(checkSchema(schema, target)).toEqual([]);
        expect(normalizeSchema(schema, target).schema).toEqual(schema);
        // Without a limit, they are listed when they are asked for.
        expect(normalizeSchema(value, target, { maxBytes: Infinity })).toEqual({ schema, changes });
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

describe("what each target gets", () => {
  const object = (properties: JsonObject, extra: JsonObject = {}) => ({ type: "object", properties, ...extra });

  test("a target is known by its name of 0.1 too, and an unknown one is refused", () => {
    const source = { properties: { n: { type: "integer" } } };
    expect(normalizeSchema(source, findTarget("seed")!)).toEqual(normalizeSchema(source, "basic"));
    expect(() => normalizeSchema(source, "none" as "basic")).toThrow(/no target 'none' \(basic, openai,/);
  });

  test("basic: integers are numbers and missing types are inferred", () => {
    const source = {
      properties: {
        n: { type: "integer" },
        o: { properties: { s: {} } },
        a: { items: { type: "boolean" } },
        e: { enum: ["x", "y"], description: "Mode." },
      },
    };
    const { schema, changes } = normalizeSchema(source, "basic");
    expect(schema).toEqual(
      object({
        n: { type: "number" },
        o: { type: "object", properties: { s: { type: "string" } } },
        a: { type: "array", items: { type: "boolean" } },
        e: { type: "string", description: 'Mode. (one of: "x", "y")' },
      }),
    );
    expect(changes).toContainEqual({ path: "/properties/n/type", what: "integer became number" });
  });

  test("openai: a valid schema goes through untouched", () => {
    const source = object(
      {
        path: { type: "string", description: "A path.", minLength: 1, default: "." },
        n: { type: ["integer", "null"], minimum: 0 },
      },
      { required: ["path"], additionalProperties: false },
    );
    expect(normalizeSchema(source, "openai")).toEqual({ schema: source, changes: [] });
  });

  test("openai-strict: everything is required and closed, optional is nullable", () => {
    const source = object(
      { a: { type: "string" }, b: { enum: ["x"] }, c: { $ref: "#/$defs/C" } },
      { required: ["a"], $defs: { C: object({ d: { type: "number", default: 1 } }) } },
    );
    expect(normalizeSchema(source, "openai-strict").schema).toEqual({
      type: "object",
      properties: {
        a: { type: "string" },
        b: { type: ["string", "null"], enum: ["x", null] },
        c: { anyOf: [{ $ref: "#/$defs/C" }, { type: "null" }] },
      },
      required: ["a", "b", "c"],
      additionalProperties: false,
      $defs: {
        C: {
          type: "object",
          properties: { d: { type: ["number", "null"], description: "(default: 1)" } },
          required: ["d"],
          additionalProperties: false,
        },
      },
    });
  });

  test("gemini: references are written in place, null is nullable, enums are text", () => {
    const source = object(
      {
        c: { $ref: "#/$defs/C", description: "The C." },
        n: { type: ["integer", "null"], exclusiveMinimum: 0 },
        e: { enum: [1, 2] },
        u: { type: ["string", "number"] },
      },
      { $defs: { C: object({ k: { const: "v" } }) } },
    );
    expect(normalizeSchema(source, "gemini").schema).toEqual(
      object({
        c: { type: "object", description: "The C.", properties: { k: { type: "string", enum: ["v"] } } },
        n: { type: "integer", description: "(more than 0)", nullable: true },
        e: { type: "string", enum: ["1", "2"] },
        u: { anyOf: [{ type: "string" }, { type: "number" }] },
      }),
    );
  });

  test("llama-cpp: bounds and patterns a grammar cannot carry become words", () => {
    const source = object({
      s: { type: "string", maxLength: 5000, pattern: "\\d+" },
      k: { type: "string", pattern: "^[a-z]+$", maxLength: 20 },
    });
    expect(normalizeSchema(source, "llama-cpp").schema).toEqual(
      object({
        s: { type: "string", description: "(at most 5000 characters; matches \\d+)" },
        k: { type: "string", maxLength: 20, pattern: "^[a-z]+$" },
      }),
    );
  });

  test("bounds that multiply on the way down are left out for grammars", () => {
    const source = object({
      a: { type: "array", maxItems: 50, items: { type: "array", maxItems: 50, items: { type: "string" } } },
    });
    expect(normalizeSchema(source, "llama-cpp").schema["properties"]).toEqual({
      a: {
        type: "array",
        maxItems: 50,
        items: { type: "array", description: "(at most 50 items)", items: { type: "string" } },
      },
    });
  });

  test.each(["anthropic", "gemini"] as const)(
    "%s: odd property names are spelled anew, and the call's arguments come back under the old ones",
    async (target) => {
      const source = object(
        { "a b": { type: "string" }, ok: { type: "number" }, "": { type: "boolean" } },
        { required: ["a b"] },
      );
      const { schema } = normalizeSchema(source, target);
      const [first] = schema["required"] as string[];
      expect(first).toMatch(/^a_b_[0-9a-f]{8}$/);
      const tool: AnyTool = {
        name: "s/t",
        description: "",
        input: {
          ...source,
          properties: { "a b": { type: "string" }, ok: { type: "number" }, "": { type: "boolean" } },
        },
        run: () => "",
      };
      const checked = await check(
        { id: "1", name: "s/t", kind: "function", arguments: JSON.stringify({ [first!]: "x" }), askedAt: 0, tool },
        { workspace: "/", cwd: "/", terminals: [] },
      );
      expect(checked.input).toEqual({ "a b": "x" });
    },
  );

  test("alternatives at the root become one object that says which belong together", () => {
    const source = {
      anyOf: [
        object({ a: { type: "string" } }, { required: ["a"] }),
        object({ b: { type: "number" }, c: { type: "string" } }, { required: ["b", "c"] }),
      ],
    };
    for (const target of ["openai", "anthropic"] as const) {
      expect(normalizeSchema(source, target).schema).toEqual(
        object(
          { a: { type: "string" }, b: { type: "number" }, c: { type: "string" } },
          { description: "(give one of these sets: (a) or (b, c))" },
        ),
      );
    }
  });

  test("a root that is no object is wrapped", () => {
    expect(normalizeSchema({ type: "array", items: { type: "string" } }, "openai").schema).toEqual(
      object(
        { value: { type: "array", items: { type: "string" } } },
        { required: ["value"], additionalProperties: false },
      ),
    );
  });

  test("recursion stays where references stay, and is cut where they do not", () => {
    const source = object(
      { tree: { $ref: "#/$defs/Node" } },
      { $defs: { Node: object({ children: { type: "array", items: { $ref: "#/$defs/Node" } } }), Unused: {} } },
    );
    expect(normalizeSchema(source, "openai").schema["$defs"]).toEqual({
      Node: object({ children: { type: "array", items: { $ref: "#/$defs/Node" } } }),
    });
    const gemini = normalizeSchema(source, "gemini");
    expect(JSON.stringify(gemini.schema)).not.toContain("$ref");
    expect(gemini.changes.some(({ what }) => what === "a recursive reference was cut")).toBe(true);
  });

  test("references into the properties work", () => {
    const source = object({ a: { type: "string", minLength: 2 }, b: { $ref: "#/properties/a" } });
    expect(normalizeSchema(source, "gemini").schema["properties"]).toEqual({
      a: { type: "string", description: "(at least 2 characters)" },
      b: { type: "string", description: "(at least 2 characters)" },
    });
    expect(normalizeSchema(source, "openai").schema).toMatchObject({
      properties: { b: { $ref: "#/$defs/a" } },
      $defs: { a: { type: "string", minLength: 2 } },
    });
  });

  test("allOf is merged, tuples become arrays, drafts meet", () => {
    const source = object(
      {
        p: {
          allOf: [
            { $ref: "#/definitions/A" },
            object({ y: { type: "number", minimum: 1, exclusiveMinimum: true } }, { required: ["y"] }),
          ],
        },
        t: { type: "array", items: [{ type: "string" }, { type: "number" }], additionalItems: false },
      },
      { definitions: { A: object({ x: { type: "string" } }) } },
    );
    expect(normalizeSchema(source, "openai").schema).toEqual(
      object({
        p: {
          type: "object",
          properties: { x: { type: "string" }, y: { type: "number", minimum: 1, exclusiveMinimum: 1 } },
          required: ["y"],
        },
        t: { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] }, maxItems: 2 },
      }),
    );
  });
});

describe("hostile schemas", () => {
  const nest = (depth: number, wrap: (inner: unknown) => unknown) =>
    Array.from({ length: depth }).reduce((inner) => wrap(inner), {} as unknown);
  const laughs = {
    type: "object",
    properties: { a: { $ref: "#/$defs/n0" } },
    $defs: Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [
        `n${index}`,
        { type: "object", properties: { l: { $ref: `#/$defs/n${index + 1}` }, r: { $ref: `#/$defs/n${index + 1}` } } },
      ]),
    ),
  };
  const many = Object.fromEntries(
    Array.from({ length: 30_000 }, (_, index) => [`p${index}`, { type: "string", description: "x".repeat(300) }]),
  );
  const cases: readonly (readonly [string, unknown])[] = [
    ["10,000 levels of properties", nest(10_000, (inner) => ({ type: "object", properties: { a: inner } }))],
    ["10,000 levels of anyOf", nest(10_000, (inner) => ({ anyOf: [inner, { type: "null" }] }))],
    [
      "10,000 levels in a default",
      { type: "object", properties: { a: { type: "string", default: nest(10_000, (inner) => [inner]) } } },
    ],
    ["references that double at each step", laughs],
    ["ten megabytes of properties", { type: "object", properties: many }],
    [
      "a circle of references",
      { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { allOf: [{ $ref: "#/$defs/a" }] } } },
    ],
    [
      "30,000 references to nothing",
      {
        type: "object",
        properties: Object.fromEntries(
          Array.from({ length: 30_000 }, (_, index) => [`p${index}`, { $ref: "#/nowhere" }]),
        ),
      },
    ],
    ["an allOf of itself, many times", { allOf: Array.from({ length: 20_000 }, () => ({ $ref: "#" })) }],
    [
      "__proto__ as a property",
      JSON.parse(
        '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"number"}},"required":["__proto__"]}',
      ),
    ],
    ["a __proto__ keyword", JSON.parse('{"__proto__":{"type":"string"},"type":"object"}')],
    [
      "a long enum",
      { type: "object", properties: { a: { enum: Array.from({ length: 50_000 }, (_, index) => `v${index}`) } } },
    ],
  ];

  test.each(cases)("%s", (_name, schema) => {
    const spent = cpuSince();
    for (const target of schemaTargets) {
      const result = normalizeSchema(schema, target);
      expect(checkSchema(result.schema, target)).toEqual([]);
      expect(JSON.stringify(result.schema).length).toBeLessThan(20_000_000);
      expect(result.changes.length).toBeLessThan(1100);
    }
    expect(({} as { type?: string }).type).toBeUndefined();
    expect(spent()).toBeLessThan(20_000);
  });
});
