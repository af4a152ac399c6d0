/** Normalising and preparing real tool schemas, and checking a call against one; the baseline parses the same text as JSON. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../src/base/json.ts";
import { normalize, schemaTargets } from "../src/spec/normalize.ts";
import { createValidator } from "../src/spec/validate.ts";
import { median, perOperation, type BenchRow } from "./measure.ts";

export async function run(): Promise<readonly BenchRow[]> {
  // Run from the repository; the data sits beside it.
  const file = join(process.cwd(), "../shared/data/mcp-schemas.jsonl");
  const lines = readFileSync(file, "utf8").trim().split("\n");
  const schemas = Array.from(
    { length: 500 },
    (_, index) => (JSON.parse(lines[index % lines.length]!) as { inputSchema: JsonObject }).inputSchema,
  );
  const texts = schemas.map((schema) => JSON.stringify(schema));
  const once = async (body: () => Promise<unknown> | unknown) => {
    const times: number[] = [];
    for (let round = 0; round < 7; round++) {
      const start = performance.now();
      await body();
      times.push(performance.now() - start);
    }
    return median(times);
  };
  const parse = await once(() => texts.forEach((text) => void JSON.parse(text)));
  const rows: BenchRow[] = [{ name: "JSON.parse of 500 real schemas", value: parse, unit: "ms" }];
  for (const target of schemaTargets) {
    const value = await once(() => schemas.forEach((schema) => void normalize(schema, target)));
    rows.push({ name: `normalise 500 for ${target}`, value, unit: "ms", ratio: value / parse, baseline: "JSON.parse" });
  }
  const first = await once(() => Promise.all(schemas.map((schema) => createValidator(schema)({}))));
  rows.push({
    name: "prepare 500 and check one call each (interpreted)",
    value: first,
    unit: "ms",
    ratio: first / parse,
    baseline: "JSON.parse",
  });
  const both = await once(() =>
    Promise.all(schemas.map((schema) => createValidator(normalize(schema, "openai").schema)({}))),
  );
  rows.push({
    name: "normalise and prepare 500",
    value: both,
    unit: "ms",
    ratio: both / parse,
    baseline: "JSON.parse",
  });
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
