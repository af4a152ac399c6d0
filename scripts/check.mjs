// The one check, the same here and in CI. `node scripts/check.mjs types lint` runs only these steps.
import { step } from "./steps.mjs";

const bin = (name) => `node_modules/.bin/${name}`;
const folders = ["src", "web", "test", "scripts", "bench", "examples"];
const steps = {
  types: async () => {
    await step("types", process.execPath, ["node_modules/typescript/bin/tsc", "-p", "."]);
    await step("types of the page", process.execPath, ["node_modules/typescript/bin/tsc", "-p", "web"]);
  },
  format: () => step("format", bin("oxfmt"), ["--check", ...folders, "vitest.config.ts"]),
  lint: () => step("lint", bin("oxlint"), ["--type-aware", "--deny-warnings", ...folders]),
  // What people read: the documentation, and the comments in the source.
  spelling: () =>
    step("spelling", bin("cspell"), ["lint", "--no-progress", "--no-summary", "src/**/*.ts", "docs/**/*.md", "*.md"]),
  unused: () => step("unused code", bin("knip"), ["--no-progress"]),
  build: () => step("build", process.execPath, ["scripts/build.mjs"]),
  package: async () => {
    await step("package (publint)", bin("publint"), ["--strict"]);
    await step("package (types)", bin("attw"), ["--pack", ".", "--profile", "esm-only", "--quiet"]);
    await step("package (types alone)", process.execPath, ["scripts/package-types.mjs"]);
  },
  // Counts, not times: nothing here depends on how busy the machine is.
  guard: () =>
    step("nothing is dearer than it was", process.execPath, ["scripts/bench.mjs", "guard"], { beside: true }),
  conformance: () => step("MCP conformance", process.execPath, ["scripts/mcp-conformance.mjs"], { beside: true }),
  tests: () => step("tests", bin("vitest"), ["run"], { show: true }),
};

const wanted = process.argv.slice(2);
const isWanted = (name) => wanted.length === 0 || wanted.includes(name);
/** Those on one line run side by side: they only look at what was built, each with one core at most. */
const order = [
  ["types"],
  ["format"],
  ["lint"],
  ["spelling"],
  ["unused"],
  ["build"],
  ["package"],
  ["guard", "conformance"],
  ["tests"],
];
for (const names of order) await Promise.all(names.filter(isWanted).map((name) => steps[name]()));
