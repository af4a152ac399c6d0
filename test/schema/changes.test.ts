/** The list of changes is complete: whatever differs from the input is listed with its place and a reason. */
import { expect, test } from "vitest";
import { isObject } from "../../src/base/json.ts";
import { normalizeSchema, schemaTargets } from "../../src/schema/normalize.ts";

const schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Search",
  type: "object",
  properties: {
    mode: { type: "string", default: "fast", title: "Mode" },
    count: { type: "integer", minimum: 1, default: 10 },
    flag: { type: "boolean", enum: [true] },
    maybe: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    either: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
    size: { oneOf: [{ type: "integer" }, { type: "string", enum: ["S", "L"] }] },
    place: { $ref: "#/$defs/Place" },
  },
  required: ["mode"],
  additionalProperties: false,
  $defs: {
    Place: { type: "object", properties: { lat: { type: "number", default: 0 } } },
    Unused: { type: "string" },
  },
};

/** Places where two schemas differ, down through properties and items. */
function differences(before: Record<string, unknown>, after: Record<string, unknown>, at = ""): readonly string[] {
  return Object.entries(before).flatMap(([key, value]) => {
    const path = `${at}/${key}`;
    const now = after[key];
    if (isObject(value) && isObject(now) && key !== "default") return differences(value, now, path);
    return JSON.stringify(value) === JSON.stringify(now) ? [] : [path];
  });
}

test.each(schemaTargets)("%s: every difference has a change at its place or around it, with a reason", (target) => {
  const { schema: lowered, changes } = normalizeSchema(schema, target);
  const places = changes.map(({ path }) => path);
  for (const path of differences(schema, lowered))
    expect(
      places.some((place) => path === place || (place !== "" && path.startsWith(`${place}/`))),
      `${path} of ${places.join()}`,
    ).toBe(true);
  for (const { what } of changes) expect(what).not.toBe("");
});

test.each(["openai-strict", "gemini", "llama-cpp"] as const)("%s: a default is told in the description", (target) => {
  const { schema: lowered, changes } = normalizeSchema(schema, target);
  expect(JSON.stringify(lowered)).toContain('default: \\"fast\\"');
  expect(changes).toContainEqual({ path: "/properties/count/default", what: "default went into the description" });
});

test.each(schemaTargets)("%s: a table of definitions that is new or gone is told", (target) => {
  const old = {
    type: "object",
    properties: { at: { $ref: "#/definitions/Place" }, tree: { $ref: "#/properties/tree/items" } },
    definitions: { Place: { type: "object", properties: { in: { $ref: "#/definitions/Place" } } } },
  };
  const { schema: lowered, changes } = normalizeSchema(old, target);
  const places = changes.map(({ path }) => path);
  expect(places).toContain("/definitions");
  if ("$defs" in lowered) expect(places).toContain("/$defs");
});

test("gemini: an enum of booleans stays boolean", () => {
  const { schema: lowered } = normalizeSchema(schema, "gemini");
  expect(lowered["properties"]).toMatchObject({ flag: { type: "boolean", description: "(one of: true)" } });
});

test("a schema that goes out as it came has no changes", () => {
  const same = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
  expect(normalizeSchema(same, "openai").changes).toEqual([]);
});
