import { readFileSync } from "node:fs";
import { join } from "node:path";
import { stateDir } from "../base/paths.ts";
import type { McpClients } from "../mcp/index.ts";
import type { Engine } from "../router/engine.ts";
import type { Config } from "./config.ts";
import { say, UsageError } from "./io.ts";
import { isTrusted } from "./trust.ts";
import { version } from "./version.ts";

/** The settings' servers, and the project's `.mcp.json` once its content is trusted. */
export function serverTable(config: Config, cwd: string): Readonly<Record<string, unknown>> {
  return { ...readProjectServers(join(cwd, ".mcp.json")), ...config.mcpServers };
}

function readProjectServers(path: string): Readonly<Record<string, unknown>> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return {}; // most projects have none
  }
  if (!isTrusted(path, text)) {
    say(`callgate: ${path} is not trusted yet and was not read ('callgate trust' shows and trusts it)`);
    return {};
  }
  try {
    return (JSON.parse(text) as { readonly mcpServers?: Record<string, unknown> }).mcpServers ?? {};
  } catch (error) {
    throw new UsageError(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Connects the configured servers to an engine. Loaded only where there are any: most of the cost is the protocol library. */
export async function connectServers(
  engine: Engine,
  config: Config,
  cwd: string,
  warn: (message: string) => void,
): Promise<McpClients | undefined> {
  const table = serverTable(config, cwd);
  if (Object.keys(table).length === 0) return undefined;
  const { createMcpClients, createResourceTools, readServers } = await import("../mcp/index.ts");
  const { servers, problems } = readServers(table);
  for (const { server, what } of problems) warn(`the MCP server '${server}' is left out: ${what}`);
  const grant = engine.gate.baseGrant();
  const clients = createMcpClients({
    servers,
    registry: engine.registry,
    stateDir: stateDir(process.env),
    cwd,
    env: process.env,
    grant,
    sandbox: engine.sandbox(),
    version,
    warn,
    sandboxState: () => ({
      policy: grant.policy,
      writableRoots: [...grant.write],
      network: typeof grant.network === "string" ? grant.network : [...grant.network],
      cwd,
    }),
  });
  engine.registry.add(...createResourceTools(clients));
  await clients.start();
  return clients;
}
