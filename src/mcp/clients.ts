/**
 * All configured servers and their tools in one registry. Servers start side by side and only when
 * needed; one that is dead, slow or wrong is told and left out, and disturbs nothing else. `mcp/`
 * reaches the engine through its public entry like anybody's tool.
 */
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { JsonObject } from "../base/json.ts";
import { CallError, type Registry } from "../index.ts";
import { createCatalogue } from "./catalogue.ts";
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
  const starts = new Map<string, number>();
  /** The start of each server whose tools were last looked at. */
  const lookedAt = new Map<string, number | undefined>();
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
        verify: (tool) => verify(connection, tool),
        ...(options.sandboxState ? { sandboxState: options.sandboxState } : {}),
      },
    );
    for (const { tool, reason } of refused) warn(`${tool} is left out: ${reason}`);
    registry.replace((tool) => tool.group === config.name, tools);
  };

  /** What a running server says it offers, from here on. */
  const adopt = (connection: Connection, found: readonly ServerTool[]) => {
    const { config } = connection;
    offer(connection, found);
    catalogue.remember(config, found);
    lookedAt.set(config.name, starts.get(config.name));
  };

  /** What a server offers is looked at after each of its starts, before its first call: it may not be what it was. */
  const verify = async (connection: Connection, tool: string) => {
    const { config } = connection;
    await connection.client();
    if (lookedAt.get(config.name) !== starts.get(config.name)) adopt(connection, await connection.listTools());
    if (held.get(config.name)?.includes(tool)) throw changedTool(config.name, tool);
  };

  for (const config of options.servers.filter(({ enabled }) => enabled)) {
    const { authProvider: authFor, ...shared } = options;
    const authProvider = authFor?.(config);
    const connection: Connection = createConnection({
      ...shared,
      config,
      ...(authProvider === undefined ? {} : { authProvider }),
      onStart: ({ ok, durationMs }) => {
        if (ok) starts.set(config.name, (starts.get(config.name) ?? 0) + 1);
        const problem = connection.problem();
        emit({
          type: "server.started",
          server: config.name,
          ok,
          durationMs,
          ...(ok || problem === undefined ? {} : { problem }),
        });
      },
      onToolsChanged: (tools) => adopt(connection, tools),
    });
    connections.set(config.name, connection);
  }

  return {
    connections,
    quarantined: () => held,
    metrics: metrics.snapshot,
    async start({ waitMs = defaultWaitMs } = {}) {
      await Promise.all(
        [...connections.values()].map((connection) =>
          startOne(connection, {
            known: catalogue.known(connection.config),
            offer: (tools) => offer(connection, tools),
            adopt: (tools) => adopt(connection, tools),
            waitMs,
            warn,
          }),
        ),
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

function changedTool(server: string, tool: string): CallError {
  return new CallError("mcp", `${server}/${tool} is held back: it changed since the user looked at it.`, {
    hint: `Tell the user to look at it with 'callgate mcp tools ${server}'; until then do it another way.`,
  });
}

interface Start {
  readonly known: readonly ServerTool[] | undefined;
  readonly offer: (tools: readonly ServerTool[]) => void;
  readonly adopt: (tools: readonly ServerTool[]) => void;
  readonly waitMs: number;
  readonly warn: (message: string) => void;
}

/** A known server's tools are offered at once; it starts with its first call. A new one is started now. */
async function startOne(connection: Connection, { known, offer, adopt, waitMs, warn }: Start): Promise<void> {
  const { required } = connection.config;
  if (known) offer(known);
  if (known && !required) return;
  const listed = connection.listTools().then(adopt);
  if (required) return listed;
  const told = listed.catch((error: unknown) => warn(error instanceof Error ? error.message : String(error)));
  await Promise.race([told, new Promise((resolve) => setTimeout(resolve, waitMs).unref())]);
}
