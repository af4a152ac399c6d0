import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { outline } from "../../../src/tools/internal/code/outline.ts";
import { engineIn, newWorkspace } from "../workspace.ts";

let ws: string;
let ask: ReturnType<typeof engineIn>["ask"];
beforeEach(() => {
  ws = newWorkspace();
  ({ ask } = engineIn(ws));
});

test("search finds text as it is, with files and lines", async () => {
  mkdirSync(join(ws, "src"));
  writeFileSync(join(ws, "src/a.ts"), "let x = f(1);\nf (2)\nF(1)\n");
  const found = JSON.parse(await ask("internal_code_search", { query: "f(1)" })) as object;
  expect(found).toMatchObject({
    files: 1,
    matches: [{ file: join(ws, "src/a.ts"), lines: [{ line: 1, text: "let x = f(1);" }] }],
  });
  expect(
    JSON.parse(await ask("internal_code_search", { query: "f\\s?\\(", regex: true, ignore_case: true })),
  ).toMatchObject({ matches: [{ lines: [{ line: 1 }, { line: 2 }, { line: 3 }] }] });
});

const samples: readonly (readonly [string, string, readonly string[]])[] = [
  [
    ".ts",
    'import { a } from "./a.ts";\n// note\nexport interface I {}\nexport class C {\n  run(x: number): void {\n    if (x) {\n    }\n  }\n}\nexport const f = (a: number) => a;\nconst k = 1;\nexport async function g() {}\ntype T = string;\n',
    ["interface I", "class C", "method run", "function f", "constant k", "function g", "type T"],
  ],
  [
    ".py",
    "import os\nfrom a.b import c\nLIMIT = 3\nclass A:\n    async def run(self):\n        pass\ndef f(): pass\n",
    ["constant LIMIT", "class A", "function run", "function f"],
  ],
  [
    ".go",
    'package x\nimport "fmt"\ntype T struct {}\nfunc (t *T) Run() {}\nfunc main() {}\n',
    ["type T", "method Run", "function main"],
  ],
  [
    ".rs",
    "use std::fs;\npub struct S;\nimpl S {\n    pub async fn run(&self) {}\n}\nmacro_rules! m {}\n",
    ["struct S", "impl S", "function run", "macro m"],
  ],
  [
    ".java",
    "import java.util.List;\npublic class A {\n  private static int f(int x) {\n  }\n}\n",
    ["class A", "method f"],
  ],
  [
    ".c",
    "#include <stdio.h>\n#define N 1\nstruct s {\n};\nint main(int argc, char **argv) {\n  if (x) {\n  }\n}\n",
    ["macro N", "struct s", "function main"],
  ],
  [".rb", "require 'x'\nmodule M\n  class A\n    def run?\n", ["module M", "class A", "method run?"]],
  [".sh", "source ./x\nrun() {\n}\n", ["function run"]],
  [".md", "# One\ntext\n## Two\n", ["heading One", "heading Two"]],
];

test.each(samples)("the outline of a %s file has its symbols", (extension, text, symbols) => {
  const found = outline(text, extension);
  expect(found?.symbols.map(({ kind, name }) => `${kind} ${name}`)).toEqual(symbols);
});

test("analyze tells language, lines, imports and nesting; an unknown language is told", async () => {
  writeFileSync(join(ws, "a.py"), samples[1]![1]);
  expect(JSON.parse(await ask("internal_code_analyze", { path: "a.py" }))).toMatchObject({
    language: "python",
    lines: { total: 7, blank: 0, comment: 0 },
    imports: ["os", "a.b"],
    symbols: [{}, { name: "A", line: 4, depth: 0 }, { name: "run", line: 5, depth: 1 }, { name: "f", depth: 0 }],
  });
  writeFileSync(join(ws, "a.xyz"), "");
  await expect(ask("internal_code_analyze", { path: "a.xyz" })).rejects.toThrow(/no language/);
});

test("format runs the formatter the project names, and says whether anything changed", async () => {
  mkdirSync(join(ws, "node_modules/.bin"), { recursive: true });
  const own = join(ws, "node_modules/.bin/prettier");
  writeFileSync(own, '#!/bin/sh\ntr "a-z" "A-Z" < "$2" > "$2.new" && cat "$2.new" > "$2" && rm "$2.new"\n');
  chmodSync(own, 0o755);
  writeFileSync(join(ws, "package.json"), JSON.stringify({ devDependencies: { prettier: "*" } }));
  writeFileSync(join(ws, "a.ts"), "abc\n");
  const full = engineIn(ws, { sandbox: "full-access" });
  expect(JSON.parse(await full.ask("internal_code_format", { path: "a.ts" }))).toEqual({
    path: "a.ts",
    formatter: "prettier",
    changed: true,
  });
  expect(readFileSync(join(ws, "a.ts"), "utf8")).toBe("ABC\n");
  expect(JSON.parse(await full.ask("internal_code_format", { path: "a.ts" }))).toMatchObject({ changed: false });
  await expect(full.ask("internal_code_format", { path: "a.zig" })).rejects.toThrow(/no formatter/);
  await full.engine.close();
});
