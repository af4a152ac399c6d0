// The test suite on other versions of Node, fetched from npm: `npm run check:nodes`, or `npm run check:nodes -- 24 test/dialect`.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const given = process.argv.slice(2);
const versions = given.filter((argument) => /^\d+$/.test(argument));
const tests = given.filter((argument) => !/^\d+$/.test(argument));
const platform = `${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
let failed = false;

for (const version of versions.length === 0 ? ["22", "24"] : versions) {
  const folder = join("node_modules", ".nodes", version);
  const node = join(folder, "node_modules", `node-${platform}`, "bin", "node");
  if (!existsSync(node)) {
    mkdirSync(folder, { recursive: true });
    execFileSync(
      "npm",
      ["install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", `node-${platform}@${version}`],
      {
        stdio: ["ignore", "ignore", "inherit"],
      },
    );
  }
  const name = execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
  const path = `${join(process.cwd(), folder, "node_modules", `node-${platform}`, "bin")}:${process.env.PATH}`;
  const run = spawnSync(node, ["node_modules/vitest/vitest.mjs", "run", ...tests], {
    stdio: "inherit",
    env: { ...process.env, PATH: path },
  });
  console.log(`Node ${name}: ${run.status === 0 ? "all tests pass" : "tests fail"}`);
  failed ||= run.status !== 0;
}
process.exit(failed ? 1 : 0);
