// Source to dist/: one lazy-chunked bundle for the command and every entry, and the type declarations.
// What we use is bundled, so an installed package has nothing else to fetch.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { rolldown } from "rolldown";
import { minifySync, parseSync } from "rolldown/utils";
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
  client: "src/client/index.ts",
  "ai-sdk": "src/adapters/ai-sdk/index.ts",
  ui: "src/adapters/ui/index.ts",
  agents: "src/adapters/agents.ts",
  langchain: "src/adapters/langchain.ts",
  from: "src/adapters/from.ts",
  serve: "src/serve/index.ts",
  "serve-postgres": "src/serve/postgres.ts",
  cli: "src/cli/start.ts",
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
  format: "esm",
  // `cli.js` loads it by this name.
  entryFileNames: ({ name }) => (name === "main" ? "chunks/main.js" : "[name].js"),
  chunkFileNames: "chunks/[name]-[hash].js",
  // White space only: names stay and each statement gets a line (`breakLines`), so that a stack trace can be read. Left
  // in, it makes the code 6.1 MB instead of 4.6, and the whole package, types included, is to stay under 6.
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
};

const bundle = await rolldown({
  preserveEntrySignatures: "allow-extension",
  input: Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(file))),
  platform: "node",
  external: [/^node:/, /^@langchain\//, ...optional],
  treeshake: { moduleSideEffects: [{ test: /[\\/]src[\\/]/, sideEffects: false }] },
});
// Loading a file costs Node more than reading it: what every session needs goes into one.
const draft = (await bundle.generate(output)).output.filter(({ type }) => type === "chunk");
const core = modulesOf(draft, /cli[\\/]commands[\\/]exec\.ts$/);
for (const id of modulesOf(draft, /wire[\\/]responses[\\/]index\.ts$/)) core.add(id);
for (const id of modulesOf(draft, /cli[\\/]main\.ts$/)) core.delete(id);
// And what its first call needs into another: it is loaded while the model answers, or in that call's way.
const calls = new Set();
for (const start of [
  /gate[\\/]gate\.ts$/,
  /router[\\/]commands\.ts$/,
  /schema[\\/]validate\.ts$/,
  /workspace[\\/]turn-diff\.ts$/,
])
  for (const id of modulesOf(draft, start)) calls.add(id);
// The sandbox is an entry of its own, and small.
for (const id of [...core, ...modulesOf(draft, /cli[\\/]main\.ts$/), ...modulesOf(draft, /sandbox[\\/]sandbox\.ts$/)])
  calls.delete(id);
rmSync("dist", { recursive: true, force: true });
const written = await bundle.write({
  ...output,
  codeSplitting: {
    includeDependenciesRecursively: false,
    groups: [
      { name: "core", test: (id) => core.has(id) },
      { name: "calls", test: (id) => calls.has(id) },
      // Apart from our own, so that it is written as short as it can be.
      { name: "mcp-server", test: /node_modules[\\/]@modelcontextprotocol[\\/]server[\\/]/ },
    ],
  },
});
await bundle.close();
prepareForLoader(new Set(written.output.filter(isForeign).map(({ fileName }) => `dist/${fileName}`)));

await buildWeb();
chmodSync("dist/cli.js", 0o755);
if (!readFileSync("dist/cli.js", "utf8").startsWith("#!")) {
  writeFileSync("dist/cli.js", `#!/usr/bin/env node\n${readFileSync("dist/cli.js", "utf8")}`);
}
writeLicences(
  "THIRD-PARTY-LICENSES.md",
  draft.flatMap(({ modules }) => Object.keys(modules)),
);
if (!process.argv.includes("--no-types")) {
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
    stdio: "inherit",
  });
  dropInnerTypes();
}

/** Two declarations of three say how the inside is made, and no public one leads to them: nobody can import those. */
function dropInnerTypes() {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8"));
  const entries = Object.values(exports).flatMap(({ types }) => types ?? []);
  const wanted = new Set(entries.map((path) => resolve(path)));
  for (const path of wanted) {
    for (const [, to] of readFileSync(path, "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g))
      wanted.add(resolve(dirname(path), to.replace(/\.[jt]s$/, ".d.ts")));
  }
  for (const name of readdirSync("dist/types", { recursive: true })) {
    const path = resolve("dist/types", name);
    if (name.endsWith(".d.ts") && !wanted.has(path)) rmSync(path);
  }
}

/** Little in it is ours: others' code is written as short as it can be, nobody reads our stack traces there. */
function isForeign({ type, modules }) {
  if (type !== "chunk") return false;
  const sizes = Object.entries(modules).map(([id, { renderedLength }]) => [
    id.includes("node_modules"),
    renderedLength,
  ]);
  const sum = (list) => list.reduce((total, [, length]) => total + length, 0);
  return sum(sizes.filter(([foreign]) => foreign)) > 0.95 * sum(sizes);
}

/** As src/cli/kept-code.ts and V8 like it best. */
function prepareForLoader(foreign) {
  for (const folder of ["dist", "dist/chunks"]) {
    for (const name of readdirSync(folder).filter((file) => file.endsWith(".js"))) {
      const path = `${folder}/${name}`;
      const text = readFileSync(path, "utf8");
      const short = foreign.has(path) ? minifySync(name, text, { module: true, compress: false }).code : text;
      writeFileSync(path, markImports(breakLines(inAscii(short))));
    }
  }
}

/** V8 keeps a text with one wider letter at two bytes for each, and reads it more slowly. */
function inAscii(text) {
  return text.replace(/\\[^]|[^\0-\x7f]/g, (match) => {
    const letter = match.at(-1);
    return letter <= "\x7f" ? match : `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/**
 * A line for each statement: Node shows the line an uncaught error was thrown on, which must not be the whole file.
 * Imports and exports stay in one: the command's loader reads them there.
 */
function breakLines(text) {
  const places = [];
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (node === null || typeof node !== "object") return;
    const list = node.type === "SwitchCase" ? node.consequent : node.body;
    if (Array.isArray(list))
      for (const { type, start } of list) if (!/^(?:Import|Export)/.test(type)) places.push(start);
    for (const key in node) if (key !== "parent") visit(node[key]);
  };
  visit(parseSync("a.js", text).program);
  const pieces = [];
  let from = 0;
  for (const at of new Set(places.toSorted((a, b) => a - b))) {
    if (at === 0) continue;
    pieces.push(text.slice(from, at));
    from = at;
  }
  return [...pieces, text.slice(from)].join("\n");
}

/** `import(` in code, told from the same word in a text, which only a parser can. */
function markImports(text) {
  const places = parseSync("a.js", text).module.dynamicImports.map(({ start }) => start + "import(".length);
  return places
    .toSorted((a, b) => b - a)
    .reduce((marked, at) => `${marked.slice(0, at)}/*later*/${marked.slice(at)}`, text);
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
