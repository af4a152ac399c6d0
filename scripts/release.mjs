// npm run release -- --dry-run: builds, checks and packs what would be published, and shows it. Publishing itself is left
// to a person: the last lines say the commands, launchers first, because callgate names them.
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { step } from "./steps.mjs";

const isDryRun = process.argv.includes("--dry-run");
const { version } = JSON.parse(readFileSync("package.json", "utf8"));
const out = resolve("dist", "packages");
const problems = [];
if (!readFileSync("CHANGELOG.md", "utf8").includes(`## ${version}\n`))
  problems.push(`CHANGELOG.md has no '## ${version}'`);
if (spawnSync("git", ["status", "--porcelain"], { encoding: "utf8" }).stdout !== "")
  problems.push("there are changes that are not committed");
if (problems.length > 0) {
  for (const problem of problems) console.error(`release: ${problem}`);
  if (!isDryRun) process.exit(1);
}

await step("build", process.execPath, ["scripts/build.mjs"]);
await step("package (publint)", "node_modules/.bin/publint", ["--strict"]);
await step("types of the package", process.execPath, ["scripts/package-types.mjs"]);
// A dry run shows what would be published; a release runs every check first.
if (!isDryRun) await step("every check", process.execPath, ["scripts/check.mjs"], { show: true });
await step("packages, installed in an empty folder", process.execPath, ["scripts/package.mjs", out, "--check"]);

// The bundle holds what it uses, so the list of parts is that of the development packages that went into it.
const bundled = [...readFileSync("THIRD-PARTY-LICENSES.md", "utf8").matchAll(/^## (\S+) (\S+) \((.*)\)$/gm)];
const parts = bundled.map(([, name, partVersion, licence]) => ({
  type: "library",
  name,
  version: partVersion,
  purl: `pkg:npm/${name.replace("@", "%40")}@${partVersion}`,
  licenses: [{ expression: licence }],
}));
const sbom = {
  bomFormat: "CycloneDX",
  specVersion: "1.5",
  version: 1,
  metadata: { component: { type: "library", name: "callgate", version, purl: `pkg:npm/callgate@${version}` } },
  components: parts,
};
writeFileSync(join(out, `callgate-${version}.cdx.json`), `${JSON.stringify(sbom, undefined, 2)}\n`);

console.log(`callgate ${version}: ${isDryRun ? "this would be published" : "ready to be published"}`);
const tarballs = readdirSync(out)
  .filter((name) => name.endsWith(".tgz"))
  .toSorted((a, b) => Number(b.includes("launcher")) - Number(a.includes("launcher")));
for (const name of tarballs) {
  const files = execFileSync("tar", ["tzf", join(out, name)], { encoding: "utf8" })
    .trim()
    .split("\n").length;
  console.log(`  ${name}  ${(statSync(join(out, name)).size / 1e6).toFixed(2)} MB packed, ${files} files`);
}
console.log(
  `  callgate-${version}.cdx.json  ${parts.length} bundled packages, licences: ${[...new Set(bundled.map(([, , , licence]) => licence))].toSorted().join(", ")}`,
);
if (isDryRun) console.log("Nothing was published.");
else for (const name of tarballs) console.log(`  npm publish ${join(out, name)} --provenance`);
