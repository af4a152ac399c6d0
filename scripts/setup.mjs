// Everything a fresh clone lacks, and nothing that is already there: dependencies, launcher, build.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { step } from "./steps.mjs";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Callgate needs Node 20.19 or newer; this is ${process.versions.node}.`);
  process.exit(2);
}

/** The newest change below a file or folder, in milliseconds. */
function newest(path) {
  if (!existsSync(path)) return 0;
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(0, ...readdirSync(path).map((name) => newest(join(path, name))));
}

const npm = process.platform === "win32" ? "npm.cmd" : "npm";
if (newest("package-lock.json") > newest("node_modules/.package-lock.json")) {
  // Not `npm ci`: it refuses a lock file that lacks other platforms' optional binaries, and not every registry has them all.
  await step("installing dependencies", npm, ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]);
}
const launcher = "native/build/callgate-launcher";
const hasCompiler = process.platform === "linux" && spawnSync("cc", ["--version"]).status === 0;
const sourcesOfLauncher = Math.max(
  0,
  ...readdirSync("native")
    .filter((name) => /\.[ch]$/.test(name))
    .map((name) => newest(join("native", name))),
);
if (hasCompiler && sourcesOfLauncher > newest(launcher)) {
  await step("building the launcher", process.execPath, ["scripts/build-launcher.mjs"]);
} else if (!existsSync(launcher)) {
  console.error("  no C compiler here: commands run without the launcher, a little slower");
}
const sources = Math.max(newest("src"), newest("scripts/build.mjs"), newest("package.json"));
if (sources > newest("dist/cli.cjs")) {
  await step("building", process.execPath, [
    "scripts/build.mjs",
    ...(process.argv.includes("--types") ? [] : ["--no-types"]),
  ]);
}
