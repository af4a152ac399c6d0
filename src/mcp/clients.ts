/**
 * All configured servers and their tools in one registry. Servers start side by side and only when
 * needed; one that is dead, slow or wrong is told and left out, and disturbs nothing else. `mcp/`
 * reaches the engine through its public entry like anybody's tool.
 */
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { JsonObject } from "../base/json.ts";
import type { Registry } from "../index.ts";
import { createCatalogue, type Catalogue } from "./catalogue.ts";
import type { ServerConfig } from "./config.ts";
import { createConnection, type Connection, type ConnectionOptions } from "./connection.ts";
import { adaptTools } from "./server-tools.ts";
import { createMcpMetrics, type McpEvent, type ServerMetrics } from "./server-metrics.ts";

export interface McpClients {
  readonly connections: ReadonlyMap<string, Connection>;
  /** Offers what is known and starts the rest; waits no longer than `waitMs` for servers that are new. */
  start(options?: { readonly waitMs?: number }): Promise<void>;
  /** Tools held back because they changed since they were looked at. */
  quarantined(): ReadonlyMap<string, readonly string[]>;
  /** The user has looked at a server's tools: they are offered again. */
  accept(server: string): Promise<void>;
  /** Starts, calls and durations so far, by server. */
  metrics(): ReadonlyMap<string, ServerMetrics>;
  close(): Promise<void>;
}

export interface McpClientsOptions extends Omit<
  ConnectionOptions,
  "config" | "onToolsChanged" | "authProvider" | "onStart" | "onFault"
> {
  readonly servers: readonly ServerConfig[];
  readonly registry: Registry;
  readonly stateDir: string;
  readonly sandboxState?: () => JsonObject;
  readonly authProvider?: (config: ServerConfig) => ConnectionOptions["authProvider"];
  /** Told what was left out and why. */
  readonly warn: (message: string) => void;
  readonly onEvent?: (event: McpEvent) => void;
}

/** What the first request may wait for servers nobody has seen before. */
const defaultWaitMs = 1_500;

export function createMcpClients(options: McpClientsOptions): McpClients {
  const { registry, warn } = options;
  const catalogue = createCatalogue(options.stateDir);
  const held = new Map<string, readonly string[]>();
  const connections = new Map<string, Connection>();
  const latest = new Map<string, readonly ServerTool[]>();
  const metrics = createMcpMetrics();
  const emit = (event: McpEvent) => {
    metrics.count(event);
    options.onEvent?.(event);
  };

  const offer = (connection: Connection, found: readonly ServerTool[]) => {
    const { config } = connection;
    latest.set(config.name, found);
    const changed = catalogue.changed(config, found);
    if (changed.length === 0) held.delete(config.name);
    else held.set(config.name, changed);
    for (const tool of changed)
      warn(
        `${config.name}/${tool} is held back: its description or schema changed since it was looked at ('callgate mcp tools ${config.name}' shows it)`,
      );
    const { tools, refused } = adaptTools(
      found.filter(({ name }) => !changed.includes(name)),
      {
        connection,
        emit,
        ...(options.sandboxState ? { sandboxState: options.sandboxState } : {}),
      },
    );
    for (const { tool, reason } of refused) warn(`${tool} is left out: ${reason}`);
    registry.replace((tool) => tool.group === config.name, tools);
  };

  for (const config of options.servers.filter(({ enabled }) => enabled)) {
    const { authProvider: authFor, ...shared } = options;
    const authProvider = authFor?.(config);
    const connection: Connection = createConnection({
      ...shared,
      config,
      ...(authProvider === undefined ? {} : { authProvider }),
      onStart: ({ ok, durationMs }) => {
        const problem = connection.problem();
        emit({
          type: "server.started",
          server: config.name,
          ok,
          durationMs,
          ...(ok || problem === undefined ? {} : { problem }),
        });
      },
      onToolsChanged: (tools) => {
        offer(connection, tools);
        catalogue.remember(config, tools);
      },
    });
    connections.set(config.name, connection);
  }

  return {
    connections,
    quarantined: () => held,
    metrics: metrics.snapshot,
    async start({ waitMs = defaultWaitMs } = {}) {
      await Promise.all(
        [...connections.values()].map((connection) => startOne(connection, catalogue, offer, waitMs, warn)),
      );
    },
    async accept(server) {
      const connection = connections.get(server);
      const found = latest.get(server) ?? (await connection?.listTools());
      if (connection === undefined || found === undefined) return;
      catalogue.accept(server, found);
      offer(connection, found);
    },
    async close() {
      await Promise.all([...connections.values()].map((connection) => connection.close()));
    },
  };
}

/** A known server's tools are offered at once; it starts with its first call. A new one is started now. */
async function startOne(
  connection: Connection,
  catalogue: Catalogue,
  offer: (connection: Connection, tools: readonly ServerTool[]) => void,
  waitMs: number,
  warn: (message: string) => void,
): Promise<void> {
  const { config } = connection;
  const known = catalogue.known(config);
  if (known) offer(connection, known);
  if (known && !config.required) return;
  const listed = connection.listTools().then((tools) => {
    offer(connection, tools);
    catalogue.remember(config, tools);
  });
  if (config.required) return listed;
  const told = listed.catch((error: unknown) => warn(error instanceof Error ? error.message : String(error)));
  await Promise.race([told, new Promise((resolve) => setTimeout(resolve, waitMs).unref())]);
}
