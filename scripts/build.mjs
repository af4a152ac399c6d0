// Source to dist/: one lazy-chunked bundle for the command and every entry, and the type declarations.
// What we use is bundled, so an installed package has nothing else to fetch.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { rolldown } from "rolldown";

const entries = {
  index: "src/index.ts",
  tools: "src/tools/index.ts",
  gate: "src/gate/index.ts",
  wire: "src/wire/index.ts",
  dialect: "src/dialect/index.ts",
  model: "src/model/index.ts",
  session: "src/session/index.ts",
  store: "src/store/index.ts",
  mcp: "src/mcp/index.ts",
  sandbox: "src/runtime/sandbox/sandbox.ts",
  testing: "src/testing/index.ts",
  cli: "src/cli/main.ts",
};
const optional = ["@opentelemetry/api", "@lydell/node-pty", "@vscode/ripgrep", "sharp", "pg", "better-sqlite3"];

const withTypes = !process.argv.includes("--no-types");
rmSync("dist", { recursive: true, force: true });
const bundle = await rolldown({
  input: Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(file))),
  platform: "node",
  external: [/^node:/, ...optional],
  treeshake: { moduleSideEffects: [{ test: /[\\/]src[\\/]/, sideEffects: false }] },
});
await bundle.write({
  dir: "dist",
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js",
  minify: false,
});
chmodSync("dist/cli.js", 0o755);
if (!readFileSync("dist/cli.js", "utf8").startsWith("#!")) {
  writeFileSync("dist/cli.js", `#!/usr/bin/env node\n${readFileSync("dist/cli.js", "utf8")}`);
}
if (withTypes) {
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
    stdio: "inherit",
  });
}
