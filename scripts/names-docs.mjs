// docs/names.md: every function and value of every public entry, with the first sentence of its comment.
// `--check` says whether the page is true.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const page = "docs/names.md";

/** Where the names of an entry are explained by use. */
const guides = {
  ".": ["define-a-tool", "embedding", "schemas", "telemetry"],
  "./tools": ["built-in-tools", "files-and-patches", "code-mode"],
  "./gate": ["policy", "approvals"],
  "./sandbox": ["sandbox", "add-a-sandbox"],
  "./wire": ["wires"],
  "./dialect": ["any-model", "add-a-dialect"],
  "./template": ["any-model"],
  "./model": ["any-model", "generate"],
  "./session": ["sessions", "generate", "chat-service"],
  "./store": ["sessions"],
  "./mcp": ["mcp"],
  "./gateway": ["gateway"],
  "./serve": ["serve", "many-users"],
  "./serve-postgres": ["many-users"],
  "./client": ["serve"],
  "./testing": ["testing-your-agent"],
};
const otherGuides = ["embedding", "migrate"];

/** The comment that ends right before this place, in one line. */
function commentBefore(source, index) {
  // A line for the linter may stand between the comment and the name.
  const before = source
    .slice(0, index)
    .trimEnd()
    .replace(/\n\/\* oxlint-[^\n]*$/, "");
  const start = before.lastIndexOf("/**");
  return before.endsWith("*/") && start >= 0 ? plain(before.slice(start)) : undefined;
}

function plain(comment) {
  return comment
    .replace(/^\/\*\*|\*\/$/g, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trim())
    .join(" ")
    .replace(/\s*@example[\s\S]*$/, "")
    .trim();
}

/** A point ends a sentence if a capital, a quotation or nothing follows it. */
function firstSentence(text) {
  return /^[\s\S]*?[.!?](?=\s+["'`A-Z]|\s*$)/.exec(text)?.[0] ?? text;
}

/** The values that a file exports, each with its comment. */
function valuesOf(file) {
  const source = readFileSync(file, "utf8");
  const found = new Map();
  for (const { 1: type, 2: list, 3: from } of source.matchAll(/^export (type )?\{([^}]*)\}(?: from "(\.[^"]+)")?/gm)) {
    if (type !== undefined) continue;
    for (const entry of list.split(",").map((one) => one.trim())) {
      if (entry === "" || entry.startsWith("type ")) continue;
      const [inner, outer = inner] = entry.split(" as ");
      const other = from === undefined ? importedFrom(source, inner) : from;
      found.set(
        outer,
        other === undefined ? commentOf(source, inner) : valuesOf(join(dirname(file), other)).get(inner),
      );
    }
  }
  for (const match of source.matchAll(/^export (?:async )?(?:const|function\*?|class) (\w+)/gm))
    if (!found.has(match[1])) found.set(match[1], commentBefore(source, match.index));
  return found;
}

function importedFrom(source, name) {
  return new RegExp(String.raw`^import \{[^}]*\b${name}\b[^}]*\} from "(\.[^"]+)"`, "m").exec(source)?.[1];
}

function commentOf(source, name) {
  const match = new RegExp(String.raw`^(?:const|function|class) ${name}\b`, "m").exec(source);
  return match ? commentBefore(source, match.index) : undefined;
}

const { name: packageName, exports } = JSON.parse(readFileSync("package.json", "utf8"));
const silent = [];
const sections = Object.entries(exports).flatMap(([path, value]) => {
  if (typeof value !== "object" || value.types === undefined) return [];
  const file = value.types.replace("./dist/types/", "src/").replace(/\.d\.ts$/, ".ts");
  const rows = [...valuesOf(file)].toSorted(([a], [b]) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  for (const [name, comment] of rows) if (!comment) silent.push(`${name} (${file})`);
  const see = (guides[path] ?? otherGuides).map((name) => {
    if (!existsSync(`docs/${name}.md`)) throw new Error(`there is no page docs/${name}.md`);
    return `[${/^# (.+)$/m.exec(readFileSync(`docs/${name}.md`, "utf8"))?.[1] ?? name}](${name}.md)`;
  });
  return [
    `## \`${path === "." ? packageName : `${packageName}/${path.slice(2)}`}\``,
    "",
    `See ${see.join(", ")}.`,
    "",
    "| name | what it is |",
    "|---|---|",
    ...rows.map(([name, comment]) => `| \`${name}\` | ${firstSentence(comment ?? "").replaceAll("|", "\\|")} |`),
    "",
  ];
});
if (silent.length > 0) {
  console.error(`these say nothing about themselves: ${silent.join(", ")}`);
  process.exit(1);
}
const text = [
  "# Every name",
  "",
  "What can be imported, entry by entry: functions, classes and values. Types are listed beside them in the API reference of the site, and in your editor. This page is made from the code (`node scripts/names-docs.mjs`).",
  "",
  ...sections,
].join("\n");
const before = existsSync(page) ? readFileSync(page, "utf8") : "";
if (text !== before && process.argv.includes("--check")) {
  console.error(`${page} is not what the entries say: run node scripts/names-docs.mjs`);
  process.exit(1);
}
writeFileSync(page, text);
