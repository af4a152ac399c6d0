/** Tools in folders, a chat service over them, and the servers beside them. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool, loadTools, type Json } from "callgate";
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
const usesServices = defineTool({
  name: "people_count",
  description: "Asks the program's own service and data model.",
  input: { type: "object", properties: {} },
  mutates: false,
  async run(_input, ctx) {
    ctx.log.info("counting people");
    // What the program gave as `service` and `model` below; the tool's author knows its shape.
    const { search } = ctx.service["search"] as { search(query: string): Promise<string[]> };
    const { findAll } = ctx.model["User"] as { findAll(): Promise<object[]> };
    return `${(await findAll()).length} people, ${(await search("Ada")).join()} found`;
  },
});
const engine = createEngine({
  tools: [...internalTools, ...loaded.tools, usesServices],
  log,
  workspace,
  approval: "auto",
  service: { search: { search: async (query: string) => [query] } },
  model: { User: { findAll: async () => users } },
});
const say = async (name: string, input: Json) => (await engine.call(name, input)).text.trim();
await say("internal_file_mkdir", { path: "new/deep" });
await say("internal_file_write", { path: "new/deep/b.ts", content: "export const b = 1;\n" });
await say("internal_file_copy", { source: "new/deep/b.ts", destination: "new/c.ts" });
await say("internal_file_move", { source: "new/c.ts", destination: "new/d.ts" });
const entries = JSON.parse(await say("internal_file_list", { path: "new", recursive: true }));
row("C3", Object.keys(entries[0] ?? entries.entries?.[0] ?? {}).join(" "));
row("C3", await say("internal_file_read", { path: "new/d.ts" }));
row("C3", (await engine.call("internal_file_delete", { path: "new/deep" })).code, "without recursive");
row("C3", (await engine.call("internal_file_delete", { path: "new/deep", recursive: true })).ok);

const web = createServer((_request, response) => response.end("from the server"));
await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}/file`;
const database = "d.sqlite";
const results = [
  ["code_search", { query: "first" }],
  ["code_analyze", { path: "new/d.ts" }],
  ["system_execute", { command: "echo executed" }],
  ["system_info", {}],
  ["system_env", {}],
  ["network_request", { url }],
  ["network_download", { url, path: "fetched.txt" }],
  ["database_update", { database, sql: "create table t (a)" }],
  ["database_update", { database, sql: "insert into t values (7)" }],
  ["database_query", { database, sql: "select a from t" }],
] as const;
for (const [action, input] of results) {
  const ended = await engine.call(`internal_${action}`, input);
  row("C4", action, ended.ok ? "ok" : ended.text);
}
const formatted = await engine.call("internal_code_format", { path: "a.txt" });
row("C4", "code_format", formatted.ok ? "ok" : formatted.text.split("\n")[0]);
row("C4", await say("internal_file_read", { path: "fetched.txt" }));
web.close();
row("C5", (await engine.call("internal_file_head", { path: "a.txt" })).text);
writeFileSync(join(workspace, "empty.txt"), "");
row("C5", (await engine.call("internal_file_head", { path: "empty.txt" })).text.split("\n")[0]);
row("C6", (await engine.call("people_count", {})).text, lines.includes("counting people") ? "and logged" : "");
row("C10", (await engine.call("internal_my_tool", { param1: "x" })).text.replaceAll(/\s+/g, " "));
row("C7", (await engine.call("nobody_has_this", {})).code);
const { tools } = await engine.toolsFor("chat");
row("C8", tools.length, JSON.stringify(tools[0]).slice(0, 60));
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
