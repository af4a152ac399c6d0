// Source to dist/: one lazy-chunked bundle for the command and every entry, and the type declarations.
// What we use is bundled, so an installed package has nothing else to fetch.
import { chmodSync, existsSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { rolldown } from "rolldown";
import { minifySync, parseSync } from "rolldown/utils";
import { finishChunk } from "./build-output.mjs";
import { buildTypes } from "./build-types.mjs";
import { buildWeb } from "./build-web.mjs";
import { writeLicences } from "./licences.mjs";

const entries = {
  index: "src/index.ts",
  tools: "src/tools/index.ts",
  wire: "src/wire/index.ts",
  dialect: "src/dialect/index.ts",
  template: "src/template/index.ts",
  gate: "src/gate/index.ts",
  model: "src/model/index.ts",
  session: "src/session/index.ts",
  store: "src/store/index.ts",
  mcp: "src/mcp/index.ts",
  sandbox: "src/runtime/sandbox/sandbox.ts",
  testing: "src/testing/index.ts",
  gateway: "src/gateway/index.ts",
  "ai-sdk": "src/adapters/ai-sdk/index.ts",
  ui: "src/adapters/ui/index.ts",
  agents: "src/adapters/agents.ts",
  langchain: "src/adapters/langchain.ts",
  from: "src/adapters/from.ts",
  serve: "src/serve/index.ts",
  "serve-postgres": "src/serve/postgres.ts",
  main: "src/cli/main.ts",
};
const optional = [
  "@opentelemetry/api",
  "@lydell/node-pty",
  "@vscode/ripgrep",
  "sharp",
  "pg",
  "@dbos-inc/dbos-sdk",
  "better-sqlite3",
];
const output = {
  dir: "dist",
  // The comment that names the map is ours (`finishChunk`).
  sourcemap: "hidden",
  format: "esm",
  // `cli.cjs` loads it by this name.
  entryFileNames: ({ name }) => (name === "main" ? "chunks/main.js" : "[name].js"),
  chunkFileNames: "chunks/[name]-[hash].js",
  // White space only: names stay and each statement gets a line (build-output.mjs), so that a stack trace can be read.
  // Left in, it would cost 1.5 MB, and an install is to stay under 6 (docs/decisions/0007-what-the-package-holds.md).
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
};

const bundle = await rolldown({
  preserveEntrySignatures: "allow-extension",
  input: Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(file))),
  platform: "node",
  external: [/^node:/, /^@langchain\//, ...optional],
  plugins: [shortenForeign(), withoutAjv()],
  treeshake: { moduleSideEffects: [{ test: /[\\/]src[\\/]/, sideEffects: false }] },
});
// Loading a file costs Node more than reading it: what every session needs goes into one.
const draft = (await bundle.generate(output)).output.filter(({ type }) => type === "chunk");
const core = modulesOf(draft, /cli[\\/]commands[\\/]exec\.ts$/);
for (const start of [/wire[\\/]responses[\\/]index\.ts$/, /cli[\\/]help\.ts$/])
  for (const id of modulesOf(draft, start)) core.add(id);
for (const id of modulesOf(draft, /cli[\\/]main\.ts$/)) core.delete(id);
const always = new Set([...core, ...modulesOf(draft, /cli[\\/]main\.ts$/)]);
// What its first call needs is loaded while the model answers, or in that call's way: the gate for each, and the rest
// for commands only. The schema library is asked by few calls. The sandbox is an entry of its own, and small.
const ready = [always, modulesOf(draft, /sandbox[\\/]sandbox\.ts$/)];
const gate = unless(ready, modulesOf(draft, /gate[\\/]gate\.ts$/));
const commands = unless(
  [...ready, gate],
  modulesOf(draft, /router[\\/]commands\.ts$/),
  modulesOf(draft, /workspace[\\/]turn-diff\.ts$/),
);
const elsewhere = new Set([...gate, ...commands]);
for (const start of [
  /sandbox[\\/]sandbox\.ts$/,
  /schema[\\/]validate\.ts$/,
  /src[\\/]index\.ts$/,
  /cli[\\/]commands[\\/]tools\.ts$/,
])
  for (const id of modulesOf(draft, start)) elsewhere.add(id);
const small = smallModules(draft, always, elsewhere);
rmSync("dist", { recursive: true, force: true });
const written = await bundle.write({
  ...output,
  codeSplitting: {
    includeDependenciesRecursively: false,
    groups: [
      { name: "core", test: (id) => core.has(id) },
      { name: "gate", test: (id) => gate.has(id) },
      { name: "commands", test: (id) => commands.has(id) },
      { name: "rest", test: (id) => small.has(id) },
    ],
  },
});
await bundle.close();
// By itself: it runs in browsers too, and what it shares with the engine lies in files that need Node.
const client = await rolldown({ input: { client: "src/client/index.ts" }, plugins: [shortenForeign()] });
const { output: writtenClient } = await client.write(output);
await client.close();
// What the shell starts, as CommonJS (src/cli/start.ts says why). The link has the name that it had as an ES module; it is
// not published.
const start = await rolldown({ input: "src/cli/start.ts", platform: "node" });
const { output: writtenStart } = await start.write({ ...output, format: "cjs", entryFileNames: "cli.cjs" });
await start.close();
chmodSync("dist/cli.cjs", 0o755);
symlinkSync("cli.cjs", "dist/cli.js");
for (const chunk of [...written.output, ...writtenClient, ...writtenStart].filter(({ type }) => type === "chunk")) {
  const { code, map } = finishChunk(chunk);
  writeFileSync(`dist/${chunk.fileName}`, code);
  rmSync(`dist/${chunk.fileName}.map`, { force: true });
  if (map !== undefined) writeFileSync(`dist/${chunk.fileName}.map`, map);
}

const modulesOfPage = await buildWeb();
writeLicences("THIRD-PARTY-LICENSES.md", [...draft.flatMap(({ modules }) => Object.keys(modules)), ...modulesOfPage]);
if (!process.argv.includes("--no-types")) await buildTypes();

/**
 * Others' code is written as short as it can be: nobody reads our stack traces there. Each of their modules by itself,
 * because in a chunk it may stand beside ours, whose names stay.
 */
function shortenForeign() {
  return {
    name: "shorten-foreign",
    transform: {
      filter: { id: /[\\/]node_modules[\\/].*\.[cm]?js$/ },
      handler: (code, id) => ({
        code: minifySync(id, code, { module: parseSync(id, code).module.hasModuleSyntax, mangle: true }).code,
        map: null,
      }),
    },
  };
}

/**
 * The MCP library brings Ajv, twice, as the validator of whoever names none. Ours does (`open-client.ts`), and the
 * server asks for what its validator would be needed for in another way (`questions.ts`).
 */
function withoutAjv() {
  const pattern = /^@modelcontextprotocol\/(?:client|server)\/_shims$/;
  return {
    name: "without-ajv",
    resolveId: { filter: { id: pattern }, handler: (id) => ({ id: `\0${id}`, moduleSideEffects: false }) },
    load: {
      filter: { id: /^\0@modelcontextprotocol/ },
      handler: () => `
        export { default as process } from "node:process";
        export const CORS_IS_POSSIBLE = false;
        export class DefaultJsonSchemaValidator {
          getValidator() { throw new Error("the MCP library was given no validator"); }
        }`,
    },
  };
}

/**
 * What is left in small pieces, such as most commands: a disk gives each file a block of its own, and each has a map. Only
 * what needs nothing but these, what is loaded anyway and the modules of Node that every command loads.
 */
function smallModules(chunks, always, elsewhere) {
  const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const isLoaded = ({ modules }) => Object.keys(modules).every((id) => always.has(id));
  const usual = /^node:(?:fs|path|os|url|crypto|util)$/;
  const fits = new Set(
    chunks.filter(
      (chunk) =>
        chunk.fileName.startsWith("chunks/") &&
        chunk.code.length < 6_000 &&
        !isLoaded(chunk) &&
        Object.keys(chunk.modules).every((id) => !elsewhere.has(id) && !id.includes("node_modules")),
    ),
  );
  const needsMore = ({ imports }) =>
    imports.some((name) => {
      const chunk = byName.get(name);
      return chunk === undefined ? !usual.test(name) : !fits.has(chunk) && !isLoaded(chunk);
    });
  for (let before = -1; before !== fits.size;) {
    before = fits.size;
    for (const chunk of fits) if (needsMore(chunk)) fits.delete(chunk);
  }
  return new Set([...fits].flatMap(({ modules }) => Object.keys(modules)));
}

/** The modules of these sets that are in none of the others. */
function unless(others, ...sets) {
  return new Set(sets.flatMap((set) => [...set]).filter((id) => !others.some((other) => other.has(id))));
}

/** Every module that is loaded, without being asked for later, when this one is. */
function modulesOf(chunks, start) {
  const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const seen = new Set();
  const modules = new Set();
  const visit = (chunk) => {
    if (chunk === undefined || seen.has(chunk)) return;
    seen.add(chunk);
    for (const id of Object.keys(chunk.modules)) modules.add(id);
    for (const name of chunk.imports) visit(byName.get(name));
  };
  visit(
    chunks.find(
      ({ facadeModuleId, modules: own }) =>
        start.test(facadeModuleId ?? "") || Object.keys(own).some((id) => start.test(id)),
    ),
  );
  return modules;
}
