// The table of events in docs/events.md, from the schema of src/session/event-schema.ts. `--check` says whether it is true.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

const page = "docs/events.md";
const out = mkdtempSync(join(process.cwd(), "node_modules/.events-docs-"));
let rows;
try {
  const bundle = await rolldown({ input: "src/session/event-schema.ts", platform: "node" });
  await bundle.write({ dir: out, format: "esm", entryFileNames: "schema.mjs" });
  const { eventSchema } = await import(pathToFileURL(join(out, "schema.mjs")).href);
  rows = eventSchema.anyOf.map(({ properties, required = [] }) => {
    const { type, ...fields } = properties;
    const names = Object.entries(fields).map(
      ([name, schema]) => `\`${name}${required.includes(name) ? "" : "?"}\`${describe(schema)}`,
    );
    return `| \`${type.const}\` | ${names.join(", ")} |`;
  });
} finally {
  rmSync(out, { recursive: true, force: true });
}

function describe(schema) {
  if (schema.enum !== undefined) return ` (${schema.enum.map((word) => `\`${word}\``).join(" ")})`;
  if (schema.$ref !== undefined) return ` (${schema.$ref.split("/").at(-1)})`;
  if (schema.type === "array") return ` (list${describe(schema.items ?? {})})`;
  return "";
}

const table = ["| event | fields (`?`: may be left out) |", "|---|---|", ...rows].join("\n");
const before = readFileSync(page, "utf8");
const after = before.replace(
  /<!-- events -->[\s\S]*<!-- \/events -->/,
  () => `<!-- events -->\n${table}\n<!-- /events -->`,
);
if (after !== before && process.argv.includes("--check")) {
  console.error(`${page} is not what src/session/event-schema.ts says: run node scripts/events-docs.mjs`);
  process.exit(1);
}
if (after !== before) writeFileSync(page, after);
