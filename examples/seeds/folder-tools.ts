/** Tools in folders, a chat service over them, and the servers beside them. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, loadTools } from "callgate";
import { createMcpClients, readServers } from "callgate/mcp";
import { createChatService } from "callgate/session";
import { createScriptedModel } from "callgate/testing";
import { internalTools } from "callgate/tools";

const row = (id: string, ...words: readonly unknown[]) => console.log(id, ...words);
const workspace = mkdtempSync(join(tmpdir(), "callgate-folder-"));
writeFileSync(join(workspace, "a.txt"), "first\nsecond\n");
const lines: string[] = [];
const write = (message: string) => void lines.push(message);
const log = { debug: write, info: write, warn: write, error: write };
const loaded = await loadTools("examples/seeds/internal-tools", { log });
row("C1", loaded.tools.map(({ name }) => name).join(" "));
row("C1", loaded.refused.map(({ reason }) => reason).join("; "));
row("C2", "C12", lines.at(-1), `(${lines.length} lines)`);
const inner = await loadTools("examples/seeds/internal-tools", { group: "innermost" });
row("C13", inner.tools.map(({ name }) => name).join(" "));

const users = [{ name: "Ada" }];
const engine = createEngine({
  tools: [...internalTools, ...loaded.tools],
  workspace,
  approval: "auto",
  service: { search: { search: async (query: string) => [query] } },
  model: { User: { findAll: async () => users } },
});
row("C3", (await engine.call("internal_file_list", { path: "." })).text.includes('"modified"'));
const database = { database: "d.sqlite", sql: "create table t (a)" };
row("C4", (await engine.call("internal_database_update", database)).ok);
row("C5", (await engine.call("internal_file_head", { path: "a.txt" })).text);
row("C6", (await engine.call("internal_my_tool", { param1: "x" })).ok);
row("C7", (await engine.call("nobody_has_this", {})).code);
const { tools } = await engine.toolsFor("chat");
row("C8", tools.length, JSON.stringify(tools[0]).slice(0, 60));
row(
  "C10",
  loaded.tools.some(({ name }) => name === "internal_my_tool"),
);
const { servers } = readServers({ off: { command: "nowhere", enabled: false } });
const clients = createMcpClients({
  servers,
  registry: engine.registry,
  stateDir: workspace,
  cwd: workspace,
  env: {},
  version: "1",
  warn: write,
});
row("C11", JSON.stringify(clients.servers()));
await clients.close();
const model = createScriptedModel([
  { calls: [{ name: "internal_file_read", input: { path: "a.txt" } }] },
  { text: "read" },
]);
const chat = createChatService({ engine, model });
const chunks: string[] = [];
for await (const chunk of chat.handleStream("anna", "read a.txt")) chunks.push(chunk.type);
row("C9", chunks.join(" "));
await chat.close();
await engine.close();
