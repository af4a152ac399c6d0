// Runs bench/*.ts and prints each figure with its ratio to a baseline of the same run. `npm run bench -- gate wire`
// runs only these; `--write` puts the tables into bench/RESULTS.md.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown } from "rolldown";

const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const names = readdirSync("bench")
  .filter((name) => name.endsWith(".ts") && !name.includes("-")) // a dash: part of another
  .map((name) => name.slice(0, -3))
  .filter((name) => wanted.length === 0 || wanted.includes(name));
if (names.length === 0) {
  console.error(`no such benchmark: ${wanted.join(", ")}`);
  process.exit(2);
}

// Inside the tree, so that the packages a benchmark compares with are found.
const out = mkdtempSync(join(process.cwd(), "node_modules/.bench-"));
const sections = [];
try {
  const bundle = await rolldown({
    resolve: { alias: aliases() },
    input: Object.fromEntries(names.map((name) => [name, `bench/${name}.ts`])),
    platform: "node",
    external: (id) => !id.startsWith(".") && !id.startsWith("callgate") && !id.startsWith("/"),
  });
  await bundle.write({ dir: out, format: "esm", entryFileNames: "[name].mjs" });
  for (const name of names) {
    process.stderr.write(`${name} …\n`);
    const { run } = await import(pathToFileURL(join(out, `${name}.mjs`)).href);
    const table = render(await run());
    console.log(`\n## ${name}\n\n${table}`);
    sections.push({ name, table });
  }
} finally {
  rmSync(out, { recursive: true, force: true });
}
if (process.argv.includes("--write")) write(sections);

function render(rows) {
  const lines = rows.map(
    ({ name, value, unit, baseline, ratio, aim }) =>
      `| ${name} | ${show(value)} ${unit} | ${ratio === undefined ? "" : `${show(ratio)} × ${baseline ?? ""}`} | ${aim ?? ""} |`,
  );
  return ["| what | figure | against | aim |", "|---|--:|---|---|", ...lines].join("\n");
}

function show(value) {
  if (!Number.isFinite(value)) return String(value);
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** Replaces the sections that were run, keeps the others. */
function write(results) {
  const path = "bench/RESULTS.md";
  let text = readFileSync(path, "utf8");
  const stamp = `${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${cpus().length} cores`;
  for (const { name, table } of results) {
    const section = `<!-- ${name} -->\n## ${name}\n\n*${stamp}; \`npm run bench -- ${name}\`*\n\n${table}\n<!-- /${name} -->`;
    const old = new RegExp(`<!-- ${name} -->[\\s\\S]*?<!-- /${name} -->`);
    text = old.test(text) ? text.replace(old, () => section) : `${text.trimEnd()}\n\n${section}\n`;
  }
  writeFileSync(path, text);
}

/** Benchmarks import what a user would. */
function aliases() {
  const entry = (path) => join(process.cwd(), "src", path);
  const folders = [
    "tools",
    "wire",
    "dialect",
    "template",
    "gate",
    "model",
    "session",
    "store",
    "mcp",
    "testing",
    "serve",
    "client",
  ];
  return {
    ...Object.fromEntries(folders.map((folder) => [`callgate/${folder}`, entry(`${folder}/index.ts`)])),
    "callgate/sandbox": entry("runtime/sandbox/sandbox.ts"),
    "callgate/serve-postgres": entry("serve/postgres.ts"),
    callgate: entry("index.ts"),
  };
}
