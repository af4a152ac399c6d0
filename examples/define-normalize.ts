// A schema as a provider takes it, and what was changed on the way.
import { normalizeSchema } from "callgate";

const schema = {
  type: "object",
  properties: { page: { $ref: "#/$defs/Page" }, limit: { type: ["integer", "null"], exclusiveMinimum: 0 } },
  required: ["page"],
  $defs: { Page: { type: "object", properties: { id: { const: "home" } } } },
};
for (const target of ["openai-strict", "gemini"] as const) {
  const result = normalizeSchema(schema, target);
  console.log(target, JSON.stringify(result.schema));
  for (const { path, what } of result.changes) console.log(`  ${path || "/"}: ${what}`);
}
