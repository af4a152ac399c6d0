/** The public names: every type that one of them mentions can be imported, and every one says what it is for. */
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "rolldown/parseAst";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const published = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  readonly exports: Readonly<Record<string, { readonly types?: string }>>;
};
const entries = Object.values(published.exports).flatMap(({ types }) =>
  types === undefined ? [] : [join(root, types.replace("dist/types", "src").replace(/\.d\.ts$/, ".ts"))],
);

interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

interface Place {
  readonly file: string;
  readonly name: string;
}

interface Module {
  /** Declared here. */
  readonly declared: ReadonlyMap<string, Node>;
  /** Names of other modules under a name of this one's: imported, or passed on. */
  readonly foreign: ReadonlyMap<string, Place>;
  readonly exported: ReadonlyMap<string, string>;
}

const modules = new Map<string, Module>();

function read(file: string): Module {
  const known = modules.get(file);
  if (known) return known;
  const declared = new Map<string, Node>();
  const foreign = new Map<string, Place>();
  const exported = new Map<string, string>();
  const declare = (node: Node, isExported: boolean) => {
    const names = node.type === "VariableDeclaration" ? (node["declarations"] as Node[]) : [node];
    for (const one of names) {
      const name = nameOf(one["id"]);
      if (name === undefined) continue;
      declared.set(name, one);
      if (isExported) exported.set(name, name);
    }
  };
  const body = (parseAst(readFileSync(file, "utf8"), { lang: "ts" }, file) as unknown as { body: Node[] }).body;
  for (const node of body) {
    const source = (node["source"] as { readonly value: string } | null | undefined)?.value;
    const other = source?.startsWith(".") ? join(dirname(file), source) : undefined;
    for (const one of (node["specifiers"] ?? []) as Node[]) {
      const outer = nameOf(node.type === "ImportDeclaration" ? one["imported"] : one["local"]);
      const inner = nameOf(node.type === "ImportDeclaration" ? one["local"] : one["exported"]);
      if (outer === undefined || inner === undefined) continue;
      if (other !== undefined) foreign.set(inner, { file: other, name: outer });
      if (node.type === "ExportNamedDeclaration") exported.set(inner, source === undefined ? outer : inner);
    }
    const inner = node.type === "ExportNamedDeclaration" ? (node["declaration"] as Node | null) : node;
    if (inner) declare(inner, inner !== node);
  }
  const made = { declared, foreign, exported };
  modules.set(file, made);
  return made;
}

function nameOf(node: unknown): string | undefined {
  const { name, value } = (node ?? {}) as { readonly name?: string; readonly value?: string };
  return name ?? value;
}

/** Where a name is declared; undefined for a global's or another package's. */
function origin({ file, name }: Place): Place | undefined {
  const { declared, foreign, exported } = read(file);
  const own = exported.get(name) ?? name;
  if (declared.has(own)) return { file, name: own };
  const next = foreign.get(own);
  return next && origin(next);
}

/** The types that a declaration shows to whoever uses it: not those inside a function's body. */
function mentioned(node: unknown, found = new Set<string>()): Set<string> {
  if (Array.isArray(node)) for (const one of node) mentioned(one, found);
  else if (typeof node === "object" && node !== null) {
    const { type, ...fields } = node as Node;
    if (type === "BlockStatement" || (type === "PropertyDefinition" && fields["typeAnnotation"] === null)) return found;
    if (type === "TSTypeReference") addName(fields["typeName"], found);
    if (type === "TSInterfaceHeritage" || type === "TSClassImplements") addName(fields["expression"], found);
    for (const [key, value] of Object.entries(fields)) if (key !== "init") mentioned(value, found);
  }
  return found;
}

function addName(node: unknown, found: Set<string>): void {
  const name = nameOf(node);
  if (name !== undefined) found.add(name);
}

const keyOf = ({ file, name }: Place) => `${name} (${relative(root, file)})`;

test("every type that a public declaration mentions can be imported by name", () => {
  const open = entries.flatMap((file) => [...read(file).exported.keys()].map((name) => origin({ file, name })));
  const reachable = new Set(open.flatMap((place) => (place ? [keyOf(place)] : [])));
  const missing = new Map<string, string>();
  const seen = new Set<string>();
  for (let place = open.pop(); open.length > 0 || place; place = open.pop()) {
    if (!place || seen.has(keyOf(place))) continue;
    seen.add(keyOf(place));
    for (const name of mentioned(read(place.file).declared.get(place.name))) {
      const target = origin({ file: place.file, name });
      if (!target) continue;
      open.push(target);
      const isPrivate = !read(target.file).exported.has(target.name); // the compiler spells it out
      if (!isPrivate && !reachable.has(keyOf(target))) missing.set(keyOf(target), `mentioned by ${keyOf(place)}`);
    }
  }
  expect(reachable.size).toBeGreaterThan(100);
  expect(
    [...missing]
      .map(([name, by]) => `${name}: ${by}`)
      .toSorted()
      .join("\n"),
  ).toBe("");
});

test("every public name says in a comment what it is for", () => {
  const silent = new Set<string>();
  for (const file of entries) {
    for (const name of read(file).exported.keys()) {
      const place = origin({ file, name });
      if (!place || place.file.endsWith(".json")) continue;
      const source = readFileSync(place.file, "utf8");
      // The first of several declarations: an overloaded function is explained once.
      const declared = new RegExp(
        String.raw`^export .*\b(?:const|function\*?|class|interface|type) ${place.name}\b`,
        "m",
      );
      const found = declared.exec(source);
      if (found && !source.slice(0, found.index).trimEnd().endsWith("*/")) silent.add(keyOf(place));
    }
  }
  expect([...silent].toSorted().join("\n")).toBe("");
});

test("every option of a public function says in a comment what it does", () => {
  const silent = new Set<string>();
  let looked = 0;
  for (const file of entries) {
    for (const name of read(file).exported.keys()) {
      const place = origin({ file, name });
      if (!place || !/(?:Options|Settings|Names)$/.test(place.name)) continue;
      const node = read(place.file).declared.get(place.name);
      if (node?.type !== "TSInterfaceDeclaration") continue;
      const source = readFileSync(place.file, "utf8");
      for (const field of (node["body"] as { readonly body: readonly (Node & { readonly start: number })[] }).body) {
        looked++;
        if (!source.slice(0, field.start).trimEnd().endsWith("*/"))
          silent.add(`${nameOf(field["key"])} of ${keyOf(place)}`);
      }
    }
  }
  expect(looked).toBeGreaterThan(200);
  expect([...silent].toSorted().join("\n")).toBe("");
});
