/** A bridge: the tools of an MCP server, offered again over MCP, with a policy in between. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createEngine } from "callgate";
import { createMcpClients, readServers, serveMcp } from "callgate/mcp";

const workspace = mkdtempSync(join(tmpdir(), "mcp-bridge-"));
const common = { cwd: workspace, version: "1.0.0", warn: console.warn };

// Behind the bridge: a server from npm that remembers things. Nothing may be deleted from it.
const engine = createEngine({
  workspace,
  approval: "never",
  sandbox: "full-access",
  gate: {
    rules: [{ tool: "memory/delete_*", decision: "deny", reason: "what was learnt stays" }],
  },
});
const memory = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-memory/dist/index.js"));
const upstream = createMcpClients({
  ...common,
  servers: readServers({ memory: { command: process.execPath, args: [memory] } }).servers,
  registry: engine.registry,
  stateDir: join(workspace, ".state"),
  env: { ...process.env, MEMORY_FILE_PATH: join(workspace, "memory.json") },
  sandbox: engine.sandbox(),
});
await upstream.start({ waitMs: 20_000 });
const bridge = await serveMcp({ engine, port: 0, version: "1.0.0", tell: () => undefined });

// In front of it: any MCP client with the bridge's token.
const env = { TOKEN: bridge.token! };
const agent = createEngine({ workspace, approval: "never", sandbox: "full-access" });
const client = createMcpClients({
  ...common,
  servers: readServers({ bridge: { url: bridge.url, bearer_token_env_var: "TOKEN" } }, env).servers,
  registry: agent.registry,
  stateDir: join(workspace, ".state-2"),
  env,
});
await client.start({ waitMs: 20_000 });
const tools = agent.registry.list().map(({ name }) => name);
const named = (part: string) => tools.find((name) => name.endsWith(part)) ?? part;
const entities = [{ name: "Ada", entityType: "person", observations: ["counts"] }];
console.log((await agent.call(named("create_entities"), { entities })).ok);
console.log((await agent.call(named("delete_entities"), { entityNames: ["Ada"] })).text);

await client.close();
await agent.close();
await bridge.close();
await upstream.close();
await engine.close();
