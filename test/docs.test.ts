/** What the documents say is true: snippets are cut from examples that run, the tree is the tree, the entries are the lists. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { figures } from "../scripts/figures.mjs";
import { callErrorCodes } from "../src/base/error.ts";
import { exitCodes } from "../src/cli/io.ts";
import { version } from "../src/cli/version.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const pages = [
  "README.md",
  ...readdirSync(join(root, "docs"), { encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

test.each(pages)("the snippets of %s are cut from examples", (page) => {
  for (const [, file, block] of read(page).matchAll(/<!-- snippet: (\S+) -->\n([\s\S]*?)<!-- \/snippet -->/g)) {
    expect(existsSync(join(root, file!)), `${file} is not there`).toBe(true);
    expect(block).toBe(`\`\`\`ts\n${read(file!)}\`\`\`\n`);
  }
});

test("the figures in README.md are those of bench/RESULTS.md (node scripts/figures.mjs)", () => {
  const [, block] = /<!-- figures -->\n([\s\S]*?)<!-- \/figures -->/.exec(read("README.md")) ?? [];
  expect(block).toBe(figures(read("bench/RESULTS.md")));
});

test.each(pages)("every link of %s leads somewhere", (page) => {
  const folder = join(root, page, "..");
  const dead = [...read(page).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)]
    .map((match) => match[1]!)
    .filter((target) => !existsSync(join(folder, target)));
  expect(dead).toEqual([]);
});

test("AGENTS.md names every folder of src", () => {
  const folders = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const missing = folders.filter(({ name }) => !read("AGENTS.md").includes(`| \`${name}\` |`));
  expect(missing.map(({ name }) => name)).toEqual([]);
});

test("the command's version is the package's", () => {
  expect(JSON.parse(read("package.json")).version).toBe(version);
});

test("docs/errors.md has every code of a call and every exit code, and no others", () => {
  const [calls, exits] = read("docs/errors.md").split("## Exit codes");
  const first = (text: string) => [...text.matchAll(/^\| `?([a-z_]+|\d+)`? \|/gm)].map((match) => match[1]!);
  expect(first(calls!).filter((word) => word !== "code")).toEqual([...callErrorCodes]);
  expect(first(exits!).filter((word) => word !== "code")).toEqual(Object.values(exitCodes).map(String));
});

test("docs/events.md is what the schema of events says", () => {
  execFileSync(process.execPath, ["scripts/events-docs.mjs", "--check"], { cwd: root });
});

test("docs/names.md has every function and value of every entry, with what it is, and no others", () => {
  execFileSync(process.execPath, ["scripts/names-docs.mjs", "--check"], { cwd: root });
  const listed = [...read("docs/names.md").matchAll(/^\| `(\w+)` \| (.*) \|$/gm)];
  expect(listed.filter(([, , words]) => !/[.!?:]$/.test(words!)).map(([, name]) => name)).toEqual([]);
  const known = new Set(listed.map(([, name]) => name));
  const lists = readdirSync(new URL("../api", import.meta.url)).flatMap((list) =>
    read(`api/${list}`).trim().split("\n"),
  );
  // Types begin with a capital; so do classes, which the page has too.
  expect(lists.filter((name) => /^[a-z]/.test(name) && !known.has(name))).toEqual([]);
});

test("every public function and value is used or explained in a guide, the README or an example", () => {
  const names = [...read("docs/names.md").matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name!);
  const examples = readdirSync(join(root, "examples"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `examples/${file}`);
  const guides = pages.filter((page) => page !== "docs/names.md");
  const words = new Set([...guides, ...examples].flatMap((file) => read(file).match(/\w+/g) ?? []));
  expect(names.length).toBeGreaterThan(100);
  expect(names.filter((name) => !words.has(name))).toEqual([]);
});

test.each(["README.md", "CHANGELOG.md", ...pages.filter((page) => !page.endsWith("/seeds.md"))])(
  "%s speaks to people who have never heard of us",
  (page) => {
    // `seed` is also a setting of models and part of a model family's name: these stand in code marks.
    const prose = read(page)
      .replaceAll(/```[\s\S]*?```/g, "")
      .replaceAll(/`[^`]*`|&lt;[^>]*>|Seed-OSS/g, "");
    expect(prose.match(/\bseeds?\b/gi) ?? []).toEqual([]);
  },
);
