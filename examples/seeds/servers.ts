/** MCP servers beside one's own tools: started, listed, called with timing, their resources read. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createEngine } from "callgate";
import { createMcpClients, createResourceTools, readServers, type McpEvent } from "callgate/mcp";

const row = (id: string, ...words: readonly unknown[]) => console.log(id, ...words);
const workspace = mkdtempSync(join(tmpdir(), "callgate-servers-"));
const engine = createEngine({ tools: [], workspace, approval: "auto" });
const { servers } = readServers({
  notes: { command: process.execPath, args: [resolve("examples/seeds/server.mjs")] },
  off: { command: "nowhere", enabled: false },
});
const events: McpEvent[] = [];
let policy = "workspace-write";
const clients = createMcpClients({
  servers,
  registry: engine.registry,
  stateDir: join(workspace, "state"),
  cwd: workspace,
  env: process.env,
  version: "1",
  warn: console.warn,
  onEvent: (event) => events.push(event),
  sandboxState: () => ({ policy, writableRoots: [workspace], network: "off", cwd: workspace }),
});
for (const tool of createResourceTools(clients)) engine.registry.add(tool);
await clients.start({ waitMs: 30_000 });

const list = clients.servers().map(({ name, status, tools }) => `${name} is ${status} with ${tools.length} tools`);
row("B6", "E12", list.join(", "));
row("C7", (await engine.call("mcp_notes_add", { a: 40, b: 2 })).text);
const steps = events.map((event) => event.type);
const timed = events.every((event) => event.type === "server.call.started" || event.durationMs >= 0);
row("E12", steps.join(", "), timed ? "each with its duration" : "without durations");
const { calls = 0, failedCalls = 0 } = clients.metrics().get("notes") ?? {};
row("E12", `${calls} calls, ${failedCalls} failed`);

policy = "read-only";
await clients.sandboxChanged();
row("B6", (await engine.call("notes/sandbox", {})).text);

row("B11", (await engine.call("list_mcp_resources", {})).text);
row("B11", (await engine.call("list_mcp_resource_templates", { server: "notes" })).text);
row("B11", (await engine.call("read_mcp_resource", { server: "notes", uri: "note://7" })).text);
const resourceTools = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"];
row("B3", resourceTools.every((name) => engine.registry.find(name)?.parallel) ? "side by side" : "one by one");
await clients.close();
await engine.close();
