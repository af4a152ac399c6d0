// The table of settings in docs/configuration.md, from src/cli/config/keys.ts. `--check` says whether it is true.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

const page = "docs/configuration.md";
const out = mkdtempSync(join(process.cwd(), "node_modules/.config-docs-"));
let rows;
try {
  const bundle = await rolldown({
    input: { keys: "src/cli/config/keys.ts", shape: "src/base/shape.ts" },
    platform: "node",
  });
  await bundle.write({ dir: out, format: "esm", entryFileNames: "[name].mjs" });
  const { configKeys, shapeOf } = await import(pathToFileURL(join(out, "keys.mjs")).href);
  const { describeShape } = await import(pathToFileURL(join(out, "shape.mjs")).href);
  rows = Object.entries(configKeys).map(
    ([name, key]) =>
      `| \`${name}\` | ${describeShape(shapeOf(key))} | ${key.env === undefined ? "" : `\`${key.env}\``} | ${key.about} |`,
  );
} finally {
  rmSync(out, { recursive: true, force: true });
}

const table = ["| setting | holds | environment | what it does |", "|---|---|---|---|", ...rows].join("\n");
const before = readFileSync(page, "utf8");
const after = before.replace(
  /<!-- settings -->[\s\S]*?<!-- \/settings -->/,
  () => `<!-- settings -->\n${table}\n<!-- /settings -->`,
);
if (process.argv.includes("--check")) {
  if (after !== before) {
    console.error(`${page} is not what src/cli/config/keys.ts says: run node scripts/config-docs.mjs`);
    process.exit(1);
  }
} else if (after !== before) writeFileSync(page, after);
