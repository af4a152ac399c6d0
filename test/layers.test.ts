/** The rules that keep the tree readable, as tests: they need no tool and cannot be forgotten. */
import { readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "rolldown/parseAst";
import { expect, test } from "vitest";

/** From the bottom up. A file may import its own folder and the rows above; a row's folders are strangers. */
const rows = [
  ["base"],
  ["spec"],
  ["schema"],
  ["registry", "check", "gate", "runtime", "result", "wire", "dialect"],
  ["template", "http"],
  ["router"],
  ["index.ts"],
  ["tools", "model", "store", "mcp", "testing"],
  ["workspace"],
  ["session"],
  ["client"],
  ["gateway", "serve", "acp", "adapters"],
  ["cli"],
];
const withoutNode = new Set(["base", "spec", "schema", "check", "wire", "dialect", "template", "client"]);
const maxLines = 300;

const readReasons = (name: string) =>
  JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8")) as Readonly<Record<string, string>>;

/** Longer than the limit, each with its reason. The list may only shrink without a maintainer's line. */
const longFiles = readReasons("./long-files.json");
/** Short and used by one neighbour only, each with the reason why it stands alone. */
const smallFiles = readReasons("./small-files.json");

const src = fileURLToPath(new URL("../src", import.meta.url));
const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
const source = new Map(files.map((file) => [file, readFileSync(join(src, file), "utf8")]));
const folder = (file: string) => file.split("/")[0]!;
const level = (name: string) => rows.findIndex((row) => row.includes(name));

/** Every module that a file names, whatever the form: `import "x"`, `export … from`, `import('x')`, `import(`x`)`, types. */
function specifiers(file: string, text = source.get(file)!): readonly string[] {
  const found: string[] = [];
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (typeof node !== "object" || node === null) return;
    const { type, ...fields } = node as { readonly type?: string; readonly source?: unknown };
    if (/^(?:Import|Export\w*)Declaration$|^Import(?:Expression)?$|^TSImportType$/.test(type ?? "")) {
      const name = fields.source ?? (fields as { readonly argument?: unknown }).argument;
      if (name) found.push(literal(name) ?? `an address made at run time in ${file}`);
    }
    Object.values(fields).forEach(visit);
  };
  visit(parseAst(text, { lang: "ts" }, file));
  return found;
}

/** The text of a string or of a template without holes. */
function literal(node: unknown): string | undefined {
  const {
    value,
    quasis,
    literal: inner,
  } = node as {
    readonly value?: unknown;
    readonly quasis?: readonly { readonly value: { readonly cooked: string } }[];
    readonly literal?: unknown;
  };
  if (typeof value === "string") return value;
  if (quasis?.length === 1) return quasis[0]!.value.cooked;
  return inner === undefined ? undefined : literal(inner);
}

const named = new Map(files.map((file) => [file, specifiers(file)]));

/** Relative imports of a file as paths below src. */
function imports(file: string): readonly string[] {
  return named
    .get(file)!
    .filter((name) => name.startsWith("."))
    .map((name) => posix.normalize(posix.join(dirname(file), name)));
}

test.each([
  ["a side effect", 'import "../gate/gate.ts";'],
  ["a type", 'import type { Gate } from "../gate/gate.ts";'],
  ["something passed on", 'export * from "../gate/gate.ts";'],
  ["a dynamic import in double quotes", 'const x = await import("../gate/gate.ts");'],
  ["a dynamic import in single quotes", "const x = await import('../gate/gate.ts');"],
  ["a dynamic import in a template", "const x = await import(`../gate/gate.ts`);"],
  ["a type import inside a type", 'type X = import("../gate/gate.ts").Gate;'],
])("%s counts as an import", (_, text) => {
  expect(specifiers("probe.ts", text)).toEqual(["../gate/gate.ts"]);
});

test("there are files to look at", () => {
  expect(files.length).toBeGreaterThan(50);
});

test("AGENTS.md shows the same rows", () => {
  const map = readFileSync(new URL("../AGENTS.md", import.meta.url), "utf8");
  const drawn: string[][] = [];
  for (const [, row, name] of map.matchAll(/^\| ([\d ]*)\| `([\w.]+)` \|/gm)) {
    if (row!.trim() === "") drawn.at(-1)!.push(name!);
    else drawn.push([name!]);
  }
  const present = new Set(files.map(folder));
  const built = rows.map((row) => row.filter((name) => present.has(name))).filter((row) => row.length > 0);
  const sorted = (all: readonly (readonly string[])[]) => all.map((row) => row.toSorted());
  expect(sorted(drawn)).toEqual(sorted(built));
});

test.each(files)("%s keeps to its layer", (file) => {
  const own = folder(file);
  expect(level(own), `${own} is in no layer`).toBeGreaterThanOrEqual(0);
  expect(imports(file).filter((to) => folder(to) !== own && level(folder(to)) >= level(own))).toEqual([]);
});

test("every relative import names a file that is there", () => {
  const missing = files.flatMap((file) =>
    imports(file)
      .filter((to) => !source.has(to))
      .map((to) => `${file} → ${to}`),
  );
  expect(missing).toEqual([]);
});

test("built-in tools import nothing but the public entry and their own folder", () => {
  const tools = files.filter((file) => folder(file) === "tools");
  const others = tools.flatMap((file) => imports(file).filter((to) => folder(to) !== "tools" && to !== "index.ts"));
  expect(others).toEqual([]);
});

/** What only Node has, under any spelling: one of its modules, or one of its globals. */
function usesNode(file: string, text = source.get(file)!): boolean {
  let found = specifiers(file, text).some((name) => isBuiltin(name));
  const visit = (node: unknown, isLabel = false): void => {
    if (Array.isArray(node)) return node.forEach((one) => visit(one));
    if (typeof node !== "object" || node === null) return;
    const { type, name, ...fields } = node as { readonly type?: string; readonly name?: unknown };
    if (type === "Identifier" && !isLabel && nodeGlobals.has(String(name))) found = true;
    const { object, property, computed, shorthand } = fields as Readonly<Record<string, unknown>>;
    if (type === "MemberExpression" && isGlobalThis(object)) {
      const word = computed === true ? literal(property) : (property as { readonly name?: string }).name;
      if (word === undefined || nodeGlobals.has(word)) found = true;
    }
    for (const [key, value] of Object.entries(fields)) {
      const isName = (key === "property" || key === "key") && computed !== true && shorthand !== true;
      visit(value, isName || key === "label" || type?.startsWith("TS") === true);
    }
  };
  visit(parseAst(text, { lang: "ts" }, file));
  return found;
}

const nodeGlobals = new Set(["process", "Buffer", "require", "__dirname", "__filename", "setImmediate", "global"]);
const isGlobalThis = (node: unknown) =>
  (node as { readonly type?: string; readonly name?: unknown }).type === "Identifier" &&
  (node as { readonly name?: unknown }).name === "globalThis";

test("the folders that promise it run without Node", () => {
  const pure = files.filter((file) => withoutNode.has(folder(file)));
  expect(new Set(pure.map(folder))).toEqual(withoutNode);
  expect(pure.filter((file) => usesNode(file))).toEqual([]);
});

test.each([
  'import fs from "node:fs";',
  'import "node:fs";',
  'import { readFile } from "fs/promises";',
  "const fs = await import('node:fs');",
  "const cwd = process.cwd();",
  'const home = process["env"];',
  "const cwd = globalThis.process.cwd();",
  "const cwd = globalThis?.process.cwd();",
  'const cwd = globalThis["process"].cwd();',
  'const bytes = Buffer.from("x");',
  "const { env } = process;",
  "const home = `${process.env.HOME}`;",
  "const fs = await import(`node:fs`);",
  "const word = globalThis[`process`].argv;",
  'const fs = require("node:fs");',
  'export * from "node:path";',
])("%s needs Node", (text) => {
  expect(usesNode("probe.ts", text)).toBe(true);
});

test.each([
  "const { process: step } = machine;",
  "machine.process(step);",
  "// process.cwd() is not asked here",
  'const word = "process.env";',
  "interface Machine { readonly process: () => void }",
])("%s needs no Node", (text) => {
  expect(usesNode("probe.ts", text)).toBe(false);
});

test("no import cycle, types included", () => {
  expect(cycles()).toEqual([]);
});

test(`no file is longer than ${maxLines} lines, but for the listed ones`, () => {
  const long = files.filter((file) => source.get(file)!.split("\n").length - 1 > maxLines);
  expect(long.toSorted()).toEqual(Object.keys(longFiles).toSorted());
});

test("a file under 60 lines that only its neighbour imports is part of that neighbour, but for the listed ones", () => {
  const importers = new Map<string, string[]>(files.map((file) => [file, []]));
  for (const file of files) for (const to of new Set(imports(file))) importers.get(to)?.push(file);
  const linesOf = (file: string) => source.get(file)!.split("\n").length - 1;
  const neighbours = files.flatMap((file) => {
    const [only, ...others] = importers.get(file)!;
    if (only === undefined || others.length > 0 || dirname(only) !== dirname(file) || linesOf(file) >= 60) return [];
    // An index lists what its folder offers, one file each: a tool stays a file.
    return posix.basename(only) === "index.ts" ? [] : [{ file, together: linesOf(file) + linesOf(only) }];
  });
  const unexplained = neighbours.filter(
    ({ file, together }) => together <= maxLines && !Object.hasOwn(smallFiles, file),
  );
  expect(unexplained).toEqual([]);
  const small = new Set(neighbours.map(({ file }) => file));
  expect(Object.keys(smallFiles).filter((file) => !small.has(file))).toEqual([]);
});

test("only the command prints", () => {
  const printers = files.filter(
    (file) => folder(file) !== "cli" && /console\.|process\.std(out|err)\.write/.test(code(file)),
  );
  expect(printers).toEqual([]);
});

test("nobody reads an error's message to decide anything", () => {
  expect(files.filter((file) => /\.message\.(includes|startsWith|match)\(/.test(code(file)))).toEqual([]);
});

/** The source without comments and without the text of programs it hands to others. */
function code(file: string): string {
  return source
    .get(file)!
    .replaceAll(/\/\*[\s\S]*?\*\//g, "")
    .replaceAll(/(^|\s)\/\/.*$/gm, "")
    .replaceAll(/`[^`]*`/g, "``");
}

function cycles(): readonly string[] {
  const state = new Map<string, "open" | "done">();
  const found: string[] = [];
  const visit = (file: string, path: readonly string[]) => {
    if (state.get(file) === "done" || !source.has(file)) return;
    if (state.get(file) === "open") {
      found.push([...path.slice(path.indexOf(file)), file].join(" → "));
      return;
    }
    state.set(file, "open");
    for (const next of imports(file)) visit(next, [...path, file]);
    state.set(file, "done");
  };
  for (const file of files) visit(file, []);
  return found;
}

test("no path leads to a tool's handler but the run stage", () => {
  // `tool.run(` or `.run` taken from something called a tool; a registry may wrap a handler, and only hands it on.
  const calls =
    /\b\w*[tT]ool\.run\s*(?:\(|\.call|\.apply|\.bind)|\b(?:const|let)\s*\{[^}]*\brun\b[^}]*\}\s*=\s*\w*[tT]ool\b/;
  expect(files.filter((file) => calls.test(source.get(file)!))).toEqual(["runtime/runtime.ts"]);
});

test("the maintainers' cases beside the project are read by one folder of tests only, so that a clone stands alone", () => {
  const tests = readdirSync(new URL("./", import.meta.url), { recursive: true, encoding: "utf8" });
  const readers = tests
    .filter((file) => file.endsWith(".ts") && !file.startsWith("shared/"))
    .filter((file) => /\bsharedFolder\b|shared\/data/.test(readFileSync(new URL(file, import.meta.url), "utf8")));
  expect(readers.toSorted()).toEqual(["needs.ts"]);
});
