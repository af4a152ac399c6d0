// The MCP Inspector's command line drives `callgate mcp serve` through its tools: a client that is not ours, as people use it.
// It is fetched into a folder beside the temp files, once.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const version = "0.15.0";
const tools = join(tmpdir(), `callgate-inspector-${version}`);
const inspector = join(tools, "node_modules/@modelcontextprotocol/inspector/cli/build/cli.js");
if (!existsSync(inspector)) {
  mkdirSync(tools, { recursive: true });
  const name = `@modelcontextprotocol/inspector@${version}`;
  execFileSync("npm", ["i", "--no-save", "--no-audit", "--no-fund", "--prefix", tools, name], { stdio: "ignore" });
}
const cli = fileURLToPath(new URL("../dist/cli.cjs", import.meta.url));
const cwd = mkdtempSync(join(tmpdir(), "callgate-inspected-"));
writeFileSync(join(cwd, "a.txt"), "alpha\n");
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
writeFileSync(join(cwd, "dot.png"), Buffer.from(png, "base64"));

function inspect(method, ...args) {
  const words = [inspector, "--cli", process.execPath, cli, "mcp", "serve", "--method", method, ...args];
  return JSON.parse(
    execFileSync(process.execPath, words, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
  );
}

const call = (name, input) =>
  inspect(
    "tools/call",
    "--tool-name",
    name,
    ...Object.entries(input).flatMap(([key, value]) => [
      "--tool-arg",
      `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    ]),
  );
const calls = {
  read_file: { file_path: join(cwd, "a.txt") },
  list_dir: { dir_path: cwd },
  grep_files: { pattern: "alpha" },
  shell_command: { command: "echo from the inspector" },
  update_plan: { plan: [{ step: "look", status: "pending" }] },
  view_image: { path: join(cwd, "dot.png") },
  apply_patch: { input: "*** Begin Patch\n*** Update File: a.txt\n@@\n-alpha\n+beta\n*** End Patch" },
};
const listed = inspect("tools/list").tools.map(({ name }) => name);
const failed = listed.filter((name) => {
  const { isError, content } = call(name, calls[name] ?? {});
  process.stdout.write(`${isError ? "FAIL" : "ok  "}  ${name}${isError ? `  ${JSON.stringify(content)}` : ""}\n`);
  return isError;
});
if (readFileSync(join(cwd, "a.txt"), "utf8") !== "beta\n") failed.push("apply_patch");
process.stdout.write(`${listed.length - failed.length} of ${listed.length} tools work from the MCP Inspector\n`);
process.exit(failed.length === 0 && listed.length > 0 ? 0 : 1);
