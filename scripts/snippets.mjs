// Puts each example into the pages that show it. `node scripts/snippets.mjs`; test/docs.test.ts checks it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const pages = [
  "README.md",
  ...readdirSync("docs")
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];
for (const page of pages) {
  const before = readFileSync(page, "utf8");
  const after = before.replace(/<!-- snippet: (\S+) -->\n[\s\S]*?<!-- \/snippet -->/g, (whole, file) =>
    existsSync(file)
      ? `<!-- snippet: ${file} -->\n\`\`\`ts\n${readFileSync(file, "utf8")}\`\`\`\n<!-- /snippet -->`
      : whole,
  );
  if (after !== before) writeFileSync(page, after);
}
