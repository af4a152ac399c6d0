import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createEngine, normalizeSchema, type Json } from "callgate";
import { createMcpClients, readServers } from "callgate/mcp";
import { internalTools } from "callgate/tools";

const workspace = mkdtempSync(join(tmpdir(), "callgate-example-"));
const engine = createEngine({ workspace, tools: internalTools, approval: "never", sandbox: "full-access" });

// Servers as every MCP client names them; here a real one from npm, started as a program.
const { servers } = readServers({
  memory: {
    command: process.execPath,
    args: [fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-memory/dist/index.js"))],
    env: { MEMORY_FILE_PATH: join(workspace, "memory.json") },
  },
});
const { registry } = engine;
const mcp = createMcpClients({
  servers,
  registry,
  stateDir: join(workspace, ".state"),
  cwd: workspace,
  env: process.env,
  sandbox: engine.sandbox(),
  version: "1.0.0",
  warn: console.warn,
});
await mcp.start({ waitMs: 10_000 });

// Two functions for any agent loop. The registry knows which server, or which of our own tools, a name belongs to.
const runTools = async (name: string, args: Json) => (await engine.call(name, args)).content;
const getTools = () =>
  registry.list().map(({ name, input }) => ({ name, parameters: normalizeSchema(input, "openai").schema }));

console.log(getTools().length, "tools");
console.log(await runTools("internal_file_write", { path: "note.txt", content: "hello" }));
console.log(await runTools("internal_file_read", { path: "note.txt" }));
const entities = [{ name: "Ada", entityType: "person", observations: ["counts"] }];
await runTools("mcp_memory_create_entities", { entities });
console.log(await runTools("mcp_memory_search_nodes", { query: "Ada" }));

await mcp.close();
await engine.close();
