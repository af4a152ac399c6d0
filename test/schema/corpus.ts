/**
 * Tool schemas as real servers write them: what zod, Pydantic, Go's jsonschema, OpenAPI converters and people produce.
 * Written by us, so that a clone stands alone; the maintainers' recorded ones come on top where they are there.
 */
import type { JsonObject } from "../../src/base/json.ts";
import { sharedRows } from "../shared/cases.ts";

export interface RecordedSchema {
  readonly server: string;
  readonly tool: string;
  readonly inputSchema: JsonObject;
}

const draft7 = "http://json-schema.org/draft-07/schema#";
const draft2020 = "https://json-schema.org/draft/2020-12/schema";
const text = (description?: string): JsonObject => ({ type: "string", ...(description ? { description } : {}) });
const object = (properties: JsonObject, required: readonly string[] = [], more: JsonObject = {}): JsonObject => ({
  type: "object",
  properties,
  ...(required.length > 0 ? { required: [...required] } : {}),
  ...more,
});
const orNull = (schema: JsonObject): JsonObject => ({ anyOf: [schema, { type: "null" }], default: null });

/** As zod 3 writes them through zod-to-json-schema: draft 7, closed objects, references by path. */
const zod3: Readonly<Record<string, JsonObject>> = {
  read_file: object({ path: text(), tail: { type: "number", description: "Last N lines" } }, ["path"], {
    additionalProperties: false,
    $schema: draft7,
  }),
  edit_file: object(
    {
      path: text(),
      edits: {
        type: "array",
        items: object(
          { oldText: text("Text to search for"), newText: text("Text to put in its place") },
          ["oldText", "newText"],
          {
            additionalProperties: false,
          },
        ),
      },
      dryRun: { type: "boolean", default: false, description: "Preview changes as a diff" },
    },
    ["path", "edits"],
    { additionalProperties: false, $schema: draft7 },
  ),
  move: object({ source: text(), destination: { $ref: "#/properties/source" } }, ["source", "destination"], {
    additionalProperties: false,
    $schema: draft7,
  }),
  sort: object({ by: { type: "string", enum: ["name", "size"], default: "name" } }, [], { $schema: draft7 }),
  tuple: object(
    { range: { type: "array", minItems: 2, maxItems: 2, items: [{ type: "number" }, { type: "number" }] } },
    ["range"],
    {
      $schema: draft7,
    },
  ),
  tagged: object(
    {
      target: {
        anyOf: [
          object({ kind: { type: "string", const: "url" }, url: { type: "string", format: "uri" } }, ["kind", "url"], {
            additionalProperties: false,
          }),
          object({ kind: { type: "string", const: "file" }, path: text() }, ["kind", "path"], {
            additionalProperties: false,
          }),
        ],
      },
    },
    ["target"],
    { additionalProperties: false, $schema: draft7 },
  ),
  map: object({ env: { type: "object", additionalProperties: { type: "string" } } }, [], { $schema: draft7 }),
  exclusive: object({ n: { type: "integer", exclusiveMinimum: 0, maximum: 100, multipleOf: 5 } }, ["n"], {
    $schema: draft7,
  }),
};

/** As zod 4 writes them: draft 2020-12, prefixItems, propertyNames, safe integers. */
const zod4: Readonly<Record<string, JsonObject>> = {
  page: object(
    {
      limit: { type: "integer", minimum: -9007199254740991, maximum: 9007199254740991 },
      cursor: { anyOf: [{ type: "string" }, { type: "null" }] },
    },
    ["limit"],
    { $schema: draft2020, additionalProperties: false },
  ),
  point: object(
    { at: { type: "array", prefixItems: [{ type: "number" }, { type: "number" }], items: { type: "string" } } },
    ["at"],
    {
      $schema: draft2020,
    },
  ),
  record: object(
    {
      labels: {
        type: "object",
        propertyNames: { type: "string", pattern: "^[a-z]+$" },
        additionalProperties: { type: "string" },
      },
    },
    [],
    {
      $schema: draft2020,
    },
  ),
  union: object({ value: { anyOf: [{ type: "string" }, { type: "number" }, { type: "boolean" }] } }, ["value"], {
    $schema: draft2020,
  }),
  exclusive_union: object({ value: { oneOf: [{ type: "string", minLength: 1 }, { type: "integer" }] } }, [], {
    $schema: draft2020,
  }),
  literal: object({ mode: { const: "fast" }, version: { const: 2 }, nothing: { type: "null" } }, ["mode"], {
    $schema: draft2020,
  }),
  tree: {
    ...object({ root: { $ref: "#/$defs/__schema0" } }, ["root"]),
    $schema: draft2020,
    $defs: {
      __schema0: object({ name: text(), children: { type: "array", items: { $ref: "#/$defs/__schema0" } } }, [
        "name",
        "children",
      ]),
    },
  },
  date: object(
    {
      day: { type: "string", format: "date", pattern: "^\\d{4}-\\d{2}-\\d{2}$" },
      at: { type: "string", format: "date-time" },
    },
    [],
    {
      $schema: draft2020,
    },
  ),
};

/** As Pydantic writes them: titles everywhere, `anyOf` with null and a default, definitions under `$defs`. */
const pydantic: Readonly<Record<string, JsonObject>> = {
  git_log: {
    title: "GitLog",
    ...object(
      {
        repo_path: { title: "Repo Path", type: "string" },
        max_count: { title: "Max Count", type: "integer", default: 10 },
      },
      ["repo_path"],
    ),
  },
  fetch: {
    title: "Fetch",
    description: "Parameters for fetching a URL.",
    ...object(
      {
        url: { title: "Url", type: "string", format: "uri", minLength: 1, description: "URL to fetch" },
        max_length: {
          title: "Max Length",
          type: "integer",
          default: 5000,
          exclusiveMinimum: 0,
          exclusiveMaximum: 1000000,
        },
        raw: { title: "Raw", type: "boolean", default: false },
        since: { title: "Since", ...orNull({ type: "string" }) },
      },
      ["url"],
    ),
  },
  search: {
    $defs: {
      Order: { title: "Order", type: "string", enum: ["asc", "desc"] },
      Filter: { title: "Filter", ...object({ field: text(), value: { title: "Value" } }, ["field"]) },
    },
    ...object({
      order: { allOf: [{ $ref: "#/$defs/Order" }], default: "asc" },
      filters: orNull({ type: "array", items: { $ref: "#/$defs/Filter" } }),
      limit: orNull({ type: "integer" }),
    }),
    title: "searchArguments",
  },
  decimal: {
    title: "Decimal",
    ...object({ amount: { anyOf: [{ type: "number" }, { type: "string", pattern: "^-?\\d+(\\.\\d+)?$" }] } }, [
      "amount",
    ]),
  },
  discriminated: {
    $defs: {
      Cat: {
        title: "Cat",
        ...object({ kind: { const: "cat", type: "string" }, lives: { type: "integer" } }, ["kind"]),
      },
      Dog: {
        title: "Dog",
        ...object({ kind: { const: "dog", type: "string" }, good: { type: "boolean", default: true } }, ["kind"]),
      },
    },
    ...object({
      pet: {
        discriminator: { propertyName: "kind", mapping: { cat: "#/$defs/Cat", dog: "#/$defs/Dog" } },
        oneOf: [{ $ref: "#/$defs/Cat" }, { $ref: "#/$defs/Dog" }],
      },
    }),
  },
  context_only: { title: "noArguments", ...object({}) },
  any_value: { title: "Store", ...object({ key: text(), value: { title: "Value" }, meta: true }, ["key", "value"]) },
};

/** From OpenAPI documents: nullable, readOnly, examples, formats of its own, `required` inside a property by mistake. */
const openapi: Readonly<Record<string, JsonObject>> = {
  get_user: object(
    {
      user_id: { type: "integer", format: "int64", example: 42, nullable: true },
      fields: { type: "string", readOnly: true },
    },
    ["user_id"],
  ),
  upload: object({ body: { type: "string", format: "binary" }, checksum: { type: "string", format: "byte" } }, [
    "body",
  ]),
  patch_item: object({
    patch: object({ status: { type: "string", enum: ["open", "closed", null], nullable: true } }),
    id: { type: "string", required: true },
  }),
  legacy: object({
    flag: { type: "boolean", enum: [true] },
    level: { type: "integer", enum: [1, 2, 3] },
    mixed: { enum: ["a", 1, null, true] },
  }),
  all_of: { allOf: [object({ a: text() }, ["a"]), object({ b: { type: "integer" } }, ["b"]), { description: "both" }] },
  one_of: { type: "object", oneOf: [object({ id: text() }, ["id"]), object({ name: text() }, ["name"])] },
  any_of_required: { ...object({ id: text(), name: text() }), anyOf: [{ required: ["id"] }, { required: ["name"] }] },
  encoded_reference: {
    ...object({ x: { $ref: "#/components/schemas/A~1B%20C" } }),
    components: { schemas: { "A/B C": text("found") } },
  },
  odd_names: object({
    "x-request-id": text(),
    "filter[name]": text(),
    $top: { type: "integer" },
    "a.b": text(),
    日本: text(),
  }),
};

/** Rare keywords and what people get wrong. */
const odd: Readonly<Record<string, JsonObject>> = {
  no_type: { properties: { q: { description: "anything" } }, required: ["q"] },
  empty: {},
  only_type: { type: "object" },
  extra_required: object({ a: text() }, ["a", "missing"]),
  type_list: object({
    v: { type: ["string", "number", "null"] },
    w: { type: ["null"] },
    x: { type: ["array", "string"], items: text() },
  }),
  conditional: {
    ...object({ kind: text(), other: text() }),
    if: { properties: { kind: { const: "x" } } },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema; nobody awaits this object.
    then: { required: ["other"] },
    else: { properties: { other: { maxLength: 3 } } },
  },
  negated: object({ v: { not: { type: "string" } }, w: { not: {} } }),
  dependent: {
    ...object({ card: text(), address: text() }),
    dependentRequired: { card: ["address"] },
    dependentSchemas: { card: { minProperties: 2 } },
  },
  patterns: object({}, [], {
    patternProperties: { "^x-": text(), "^[0-9]+$": { type: "number" } },
    additionalProperties: false,
    minProperties: 1,
  }),
  contains: object({
    list: { type: "array", contains: { type: "number" }, minContains: 1, maxContains: 3, uniqueItems: true },
  }),
  boolean_items: object({ any: { type: "array", items: true }, none: { type: "array", items: false } }),
  array_without_items: object({ rows: { type: "array" } }, ["rows"]),
  dead_reference: object({ x: { $ref: "#/$defs/Missing" } }),
  self_reference: { ...object({ next: { $ref: "#" }, value: { type: "integer" } }) },
  foreign_reference: object({ x: { $ref: "https://example.org/schema.json#/a" } }),
  anchors: { ...object({ x: { $ref: "#leaf" } }), $defs: { leaf: { $anchor: "leaf", type: "string" } } },
  nested_id: {
    $id: "https://example.org/root",
    ...object({ x: { $ref: "item" } }),
    $defs: { item: { $id: "item", type: "integer" } },
  },
  definitions: {
    ...object({ x: { $ref: "#/definitions/X" }, y: { $ref: "#/definitions/X/properties/in" } }),
    definitions: { X: object({ in: text() }) },
  },
  beside_reference: {
    ...object({ x: { $ref: "#/$defs/T", description: "said beside it", default: "a" } }),
    $defs: { T: { type: "string", enum: ["a", "b"] } },
  },
  unevaluated: { ...object({ a: text() }), unevaluatedProperties: false },
  content: object({ image: { type: "string", contentEncoding: "base64", contentMediaType: "image/png" } }),
  numbers: object({
    f: { type: "number", format: "double", minimum: 0.1, maximum: 1e308 },
    big: { type: "integer", maximum: 1e21 },
  }),
  prototype_names: object(
    JSON.parse(
      '{"__proto__":{"type":"string"},"constructor":{"type":"string"},"toString":{"type":"boolean"}}',
    ) as JsonObject,
  ),
  deep: Array.from({ length: 14 }).reduce<JsonObject>(
    (inner) => object({ in: inner, list: { type: "array", items: inner["type"] ? { type: "string" } : {} } }),
    text("bottom"),
  ),
  wide_enum: object({ code: { type: "string", enum: Array.from({ length: 120 }, (_, at) => `code-${at}`) } }),
};

const states = ["open", "in_progress", "in_review", "blocked", "done", "cancelled"];

/** Large ones: a create or search call of a business system, with most of its fields described at length. */
function large(name: string, fields: number, at: number): readonly [string, JsonObject] {
  const properties = Object.fromEntries(
    Array.from({ length: fields }, (_, index): readonly [string, JsonObject] => {
      const description = `The ${name} field number ${index}. ${"It is described at some length, with what it accepts and what happens without it. ".repeat(1 + (index % 3))}`;
      const kinds: readonly JsonObject[] = [
        { type: "string", description },
        { type: "integer", description, minimum: 0, default: index },
        { type: "array", description, items: { type: "string", description: "One of them" }, default: [] },
        { type: "string", description, enum: states },
        object({ id: text(description), note: orNull(text(description)) }, ["id"], { description }),
        { $ref: "#/$defs/Person", description },
      ];
      return [`${name}_${index}`, kinds[(index + at) % kinds.length] ?? {}];
    }),
  );
  const person = object(
    { id: text("Who"), email: { type: "string", format: "email" }, manager: orNull({ $ref: "#/$defs/Person" }) },
    ["id"],
  );
  return [
    `${name}_${fields}`,
    { ...object(properties, Object.keys(properties).slice(0, 3)), $defs: { Person: person } },
  ];
}

const business = Object.fromEntries(
  ["issue", "invoice", "ticket", "deal", "page"].flatMap((name, at) =>
    [12, 25, 40, 70].map((fields) => large(name, fields, at)),
  ),
);

/** Each of the small ones also as a parameter of another tool, as generated wrappers nest them. */
const small = { zod3, zod4, pydantic, openapi, odd };
const nested = Object.values(small).flatMap((tools) =>
  Object.entries(tools).map(([tool, schema]): RecordedSchema => {
    const { $defs, definitions, components, $schema: _, $id: __, ...inner } = schema;
    const kept = Object.fromEntries(
      Object.entries({ $defs, definitions, components }).filter(([, value]) => value !== undefined),
    );
    return {
      server: "wrapper",
      tool,
      inputSchema: {
        ...object({ arguments: inner as JsonObject, list: { type: "array", items: inner as JsonObject } }, [
          "arguments",
        ]),
        ...(kept as JsonObject),
      },
    };
  }),
);

export const ownSchemas: readonly RecordedSchema[] = [
  ...Object.entries({ ...small, business }).flatMap(([server, tools]) =>
    Object.entries(tools).map(([tool, inputSchema]) => ({ server, tool, inputSchema })),
  ),
  ...nested,
];

/** With the maintainers' recorded ones of real servers, where they are there. */
export const recordedSchemas: readonly RecordedSchema[] = [
  ...ownSchemas,
  ...sharedRows("mcp-schemas.jsonl", (line) => JSON.parse(line) as RecordedSchema),
];
