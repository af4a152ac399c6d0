/** The rules that keep the tree readable, as tests: they need no tool and cannot be forgotten. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** From the bottom up. A file may import its own folder and the rows above; a row's folders are strangers. */
const rows = [
  ["base"],
  ["spec"],
  ["schema"],
  ["registry", "check", "gate", "runtime", "result", "wire", "dialect"],
  ["template"],
  ["router"],
  ["index.ts"],
  ["tools", "model", "store", "mcp", "testing", "http"],
  ["workspace"],
  ["session"],
  ["client"],
  ["gateway", "serve", "acp", "adapters"],
  ["cli"],
];
const withoutNode = new Set(["base", "spec", "schema", "check", "wire", "dialect", "template"]);
const maxLines = 300;

/** Longer than the limit, each with its reason. The list may only shrink without a maintainer's line. */
const longFiles: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL("./long-files.json", import.meta.url), "utf8"),
) as Record<string, string>;

const src = fileURLToPath(new URL("../src", import.meta.url));
const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
const source = new Map(files.map((file) => [file, readFileSync(join(src, file), "utf8")]));
const folder = (file: string) => file.split("/")[0]!;
const level = (name: string) => rows.findIndex((row) => row.includes(name));

/** Relative imports of a file, dynamic and type-only ones too, as paths below src. */
function imports(file: string): readonly string[] {
  const text = source.get(file)!;
  const found = [
    ...text.matchAll(/^(?:import|export)\b[^;]*?\bfrom\s+"(\.[^"]+)";/gm),
    ...text.matchAll(/\bimport\("(\.[^"]+)"\)/g),
  ];
  return found.map((match) => posix.normalize(posix.join(dirname(file), match[1]!)));
}

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

test("base, spec, wire and dialect run without Node", () => {
  const users = files.filter(
    (file) => withoutNode.has(folder(file)) && /from "node:|(?<![./\w])process\.|\bBuffer\b/.test(code(file)),
  );
  expect(users).toEqual([]);
});

test("no import cycle, types included", () => {
  expect(cycles()).toEqual([]);
});

test(`no file is longer than ${maxLines} lines, but for the listed ones`, () => {
  const long = files.filter((file) => source.get(file)!.split("\n").length - 1 > maxLines);
  expect(long.toSorted()).toEqual(Object.keys(longFiles).toSorted());
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

test("no path leads to a tool's handler but runtime/", () => {
  // `tool.run(` or `.run` taken from something called a tool; a registry may wrap a handler, and only hands it on.
  const calls =
    /\b\w*[tT]ool\.run\s*(?:\(|\.call|\.apply|\.bind)|\b(?:const|let)\s*\{[^}]*\brun\b[^}]*\}\s*=\s*\w*[tT]ool\b/;
  const outside = files.filter((file) => folder(file) !== "runtime" && calls.test(source.get(file)!));
  expect(outside).toEqual([]);
  expect(files.filter((file) => calls.test(source.get(file)!))).toEqual(["runtime/rehearse.ts", "runtime/runtime.ts"]);
});

test("the maintainers' cases beside the project are read by one folder of tests only, so that a clone stands alone", () => {
  const tests = readdirSync(new URL("./", import.meta.url), { recursive: true, encoding: "utf8" });
  const readers = tests
    .filter((file) => file.endsWith(".ts") && !file.startsWith("shared/"))
    .filter((file) => /\bsharedFolder\b|shared\/data/.test(readFileSync(new URL(file, import.meta.url), "utf8")));
  expect(readers.toSorted()).toEqual(["needs.ts"]);
});
