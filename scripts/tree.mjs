// docs/tree.md: every source file with the first sentence of its first comment. `--check` says whether it is true.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const target = "docs/tree.md";

export function renderTree(root = "src") {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => name.replaceAll("\\", "/"))
    .toSorted();
  const folders = Map.groupBy ? Map.groupBy(files, folderOf) : groupBy(files, folderOf);
  const parts = [...folders].map(([folder, names]) => {
    const rows = names.map(
      (name) =>
        `| \`${name.slice(folder === "." ? 0 : folder.length + 1)}\` | ${firstSentence(readFileSync(join(root, name), "utf8"))} |`,
    );
    return `## ${folder === "." ? "src" : `src/${folder}`}\n\n| file | what |\n|---|---|\n${rows.join("\n")}\n`;
  });
  return `# Every source file in a sentence\n\nMade by \`node scripts/tree.mjs\` from the first comment of each file; a test keeps it true.\n\n${parts.join("\n")}`;
}

function folderOf(name) {
  return name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : ".";
}

function groupBy(values, keyOf) {
  const groups = new Map();
  for (const value of values) groups.set(keyOf(value), [...(groups.get(keyOf(value)) ?? []), value]);
  return groups;
}

function firstSentence(source) {
  const brief = /docs: \{\s*brief:\s*"([^"]+)"/.exec(source)?.[1];
  if (brief !== undefined) return brief;
  const comment = /\/\*\*([\s\S]*?)\*\//.exec(source)?.[1] ?? "";
  const text = comment
    .replaceAll(/^\s*\* ?/gm, "")
    .replaceAll(/\s+/g, " ")
    .trim();
  const sentence = /^(.*?\.)(?:\s|$)/.exec(text)?.[1] ?? text;
  return sentence.replaceAll("|", "\\|");
}

if (process.argv[1]?.endsWith("tree.mjs")) {
  const text = renderTree();
  if (process.argv.includes("--check")) process.exit(readFileSync(target, "utf8") === text ? 0 : 1);
  writeFileSync(target, text);
}
