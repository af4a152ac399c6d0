import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { createRegistry } from "../../src/index.ts";
import { createMcpClients, readServers } from "../../src/mcp/index.ts";

/** A server that speaks just enough, and writes down the notifications it gets. */
const script = `
const { appendFileSync } = require("node:fs");
let rest = "";
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
process.stdin.on("data", (chunk) => {
  rest += chunk;
  for (let end = rest.indexOf("\\n"); end >= 0; end = rest.indexOf("\\n")) {
    const message = JSON.parse(rest.slice(0, end));
    rest = rest.slice(end + 1);
    if (message.method === "initialize")
      answer(message.id, {
        protocolVersion: message.params.protocolVersion,
        capabilities: { tools: {}, experimental: { "codex/sandbox-state": {} } },
        serverInfo: { name: "watcher", version: "1" },
      });
    else if (message.method === "tools/list")
      answer(message.id, { tools: [{ name: "look", inputSchema: { type: "object" } }] });
    else if (message.method?.includes("sandbox-state")) appendFileSync(process.argv[2], JSON.stringify(message) + "\\n");
    else if (message.id !== undefined) answer(message.id, { content: [{ type: "text", text: "ok" }] });
  }
});
`;

test("a server that asks for it is told of the sandbox when it has started and when it has changed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "callgate-state-"));
  const heard = join(folder, "heard.jsonl");
  writeFileSync(join(folder, "server.cjs"), script);
  writeFileSync(heard, "");
  let policy = "workspace-write";
  const { servers } = readServers({
    watcher: { command: process.execPath, args: [join(folder, "server.cjs"), heard] },
  });
  const clients = createMcpClients({
    servers,
    registry: createRegistry(),
    stateDir: folder,
    cwd: folder,
    env: process.env,
    version: "1",
    warn: () => undefined,
    sandboxState: () => ({ policy, writableRoots: [folder], network: "off", cwd: folder }),
  });
  const told = () =>
    readFileSync(heard, "utf8")
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  await clients.look("watcher");
  await vi.waitFor(() => expect(told()).toHaveLength(1), 10_000);
  expect(told()[0]).toMatchObject({
    method: "codex/sandbox-state/update",
    params: { sandboxPolicy: { type: "workspace-write", network_access: false }, sandboxCwd: folder },
  });
  expect(clients.servers()).toMatchObject([{ name: "watcher", enabled: true, status: "ready" }]);
  policy = "read-only";
  await clients.sandboxChanged();
  await vi.waitFor(() => expect(told()).toHaveLength(2), 10_000);
  expect(told()[1]).toMatchObject({ params: { sandboxPolicy: { type: "read-only" } } });
  await clients.close();
});
