// THIRD-PARTY-LICENSES.md: every package that ends up in the bundle, with its licence text.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export function writeLicences(target, moduleIds) {
  const folders = new Set(moduleIds.flatMap((id) => packageFolder(id)));
  /** Packages under each text: the same one stands here once. */
  const texts = new Map();
  for (const folder of [...folders].toSorted()) {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const text = licenceText(folder);
    texts.set(text, [...(texts.get(text) ?? []), `## ${name} ${version} (${license})`]);
  }
  const parts = [...texts].map(([text, titles]) => `${titles.join("\n\n")}\n\n${text}`);
  writeFileSync(target, `# Third-party software in this package\n\n${parts.join("\n\n")}\n`);
}

function packageFolder(id) {
  const match = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(id);
  return match ? [match[1]] : [];
}

function licenceText(folder) {
  const name = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return name !== undefined && existsSync(join(folder, name))
    ? readFileSync(join(folder, name), "utf8").trim()
    : "(the package carries no licence file; its package.json names the licence above)";
}
