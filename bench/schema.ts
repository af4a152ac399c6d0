/** Normalising and preparing real tool schemas, and checking a call against one; the baseline parses the same text as JSON. */
import type { JsonObject } from "../src/base/json.ts";
import { normalizeSchema, schemaTargets } from "../src/schema/normalize.ts";
import { createValidator } from "../src/schema/validate.ts";
import { median, perOperation, type BenchRow } from "./measure.ts";
import { recordedSchemas } from "../test/schema/corpus.ts";

export async function run(): Promise<readonly BenchRow[]> {
  // Those of real servers, where they are there, come last.
  const recorded = recordedSchemas.slice(-500);
  const schemas = Array.from({ length: 500 }, (_, index) => recorded[index % recorded.length]!.inputSchema);
  const texts = schemas.map((schema) => JSON.stringify(schema));
  // Results are kept per schema object, so each round gets objects of its own.
  const once = async (body: (fresh: readonly JsonObject[]) => Promise<unknown> | unknown) => {
    const times: number[] = [];
    for (let round = 0; round < 7; round++) {
      const fresh = texts.map((text) => JSON.parse(text) as JsonObject);
      const start = performance.now();
      await body(fresh);
      times.push(performance.now() - start);
    }
    return median(times);
  };
  const parse = await once(() => texts.forEach((text) => void JSON.parse(text)));
  const against = (name: string, value: number): BenchRow => ({
    name,
    value,
    unit: "ms",
    ratio: value / parse,
    baseline: "JSON.parse",
  });
  const rows: BenchRow[] = [{ name: "JSON.parse of 500 real schemas", value: parse, unit: "ms" }];
  for (const target of schemaTargets) {
    const value = await once((fresh) => fresh.forEach((schema) => void normalizeSchema(schema, target)));
    rows.push(against(`normalise 500 for ${target}`, value));
  }
  const first = await once((fresh) => Promise.all(fresh.map((schema) => createValidator(schema)({}))));
  rows.push(against("prepare 500 and check one call each (interpreted)", first));
  const both = await once((fresh) =>
    Promise.all(fresh.map((schema) => (normalizeSchema(schema, "openai"), createValidator(schema)({})))),
  );
  rows.push(against("normalise and prepare 500", both));
  const busy = createValidator(
    {
      type: "object",
      properties: { path: { type: "string" }, limit: { type: "integer", minimum: 1 } },
      required: ["path"],
      additionalProperties: false,
    },
    { compile: true },
  );
  const value = { path: "a", limit: 3 };
  await perOperation(2000, 2, () => busy(value));
  rows.push({
    name: "check one call against a busy schema (compiled)",
    value: await perOperation(20_000, 5, () => busy(value)),
    unit: "µs",
  });
  return rows;
}
