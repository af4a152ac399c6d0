/** `callgate tools`: what a model of each wire is told of. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { ensureBuilt, run, tempFolder } from "./run.ts";

beforeAll(ensureBuilt, 60_000);

/** An MCP server with as many tools as its argument says. */
const server = `
const { createInterface } = require("node:readline");
const tools = Array.from({ length: Number(process.argv[2]) }, (_, index) => ({
  name: "look" + index, description: "Looks at " + index + ".", inputSchema: { type: "object" },
}));
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
  if (method === "initialize")
    answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "eye", version: "1" } });
  else if (method === "tools/list") answer({ tools });
  else if (id !== undefined) answer({});
});
`;

function homeWithServer(tools: number): string {
  const home = tempFolder("state");
  writeFileSync(join(home, "server.cjs"), server);
  const args = JSON.stringify([join(home, "server.cjs"), String(tools)]);
  const command = JSON.stringify(process.execPath);
  writeFileSync(join(home, "callgate.toml"), `[mcpServers.eye]\ncommand = ${command}\nargs = ${args}\n`);
  return home;
}

const builtIn = ["apply_patch", "grep_files", "list_dir", "read_file", "shell_command", "update_plan", "view_image"];

describe.each(["responses", "chat", "messages", "gemini"])("--wire %s", (wire) => {
  test("one line for each tool, sorted, and the sum; as JSON what the wire carries", async () => {
    const { stdout } = await run(["tools", "--wire", wire]);
    const names = stdout.split("\n").flatMap((line) => /^(\w+) +\d+ bytes/.exec(line)?.[1] ?? []);
    expect(names).toEqual(builtIn);
    expect(stdout).toMatch(/\n7 tools, \d+ bytes\n/);
    const list = JSON.parse((await run(["tools", "--wire", wire, "--json"])).stdout) as readonly object[];
    // Gemini's tools are one entry with all declarations.
    expect(list).toHaveLength(wire === "gemini" ? 1 : 7);
    if (wire === "gemini") {
      expect(list[0]).toEqual({ functionDeclarations: builtIn.map((name) => expect.objectContaining({ name })) });
    }
  });
});

test("more tools than Chat takes: the built-ins stay, the server's are found by search, and that is said once", async () => {
  const env = { CALLGATE_HOME: homeWithServer(150) };
  const chat = await run(["tools", "--wire", "chat"], { env });
  for (const name of [...builtIn, "tool_search", "call_tool"])
    expect(chat.stdout).toMatch(new RegExp(`^${name} `, "m"));
  expect(chat.stdout).toContain("150 more tools of servers are found by tool_search\n");
  expect(chat.stdout).not.toContain("✗");
  const responses = await run(["tools", "--wire", "responses"], { env });
  expect(responses.stdout.match(/^mcp__eye__look\d+ /gm)).toHaveLength(150);
  expect(responses.stdout).not.toContain("tool_search");
});
