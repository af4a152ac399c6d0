/**
 * All configured servers and their tools in one registry. Servers start side by side and only when
 * needed; one that is dead, slow or wrong is told and left out, and disturbs nothing else. `mcp/`
 * reaches the engine through its public entry like anybody's tool.
 */
import { CallError } from "../../base/error.ts";
import { defined, type JsonObject } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { checkOptions, type Shape } from "../../base/shape.ts";
import { toVisibleLine } from "../../gate/show.ts";
import type { Registry } from "../../index.ts";
import { createCatalogue, type Catalogue } from "./catalogue.ts";
import type { ServerConfig } from "../config.ts";
import { createConnection, type Connection, type ConnectionOptions } from "./connection.ts";
import { createOffers, type Offers } from "./offers.ts";
import type { ServerTool } from "../protocol.ts";
import type { ServerState } from "./live-client.ts";
import { createMcpMetrics, type McpEvent, type ServerMetrics } from "./metrics.ts";

/** The servers whose tools are in a registry. */
export interface McpClients {
  readonly connections: ReadonlyMap<string, Connection>;
  /**
   * Offers what is known and starts the rest; waits no longer than `waitMs` for servers that are new, and not at all
   * for those that were too slow the last time. What comes later is offered when it is there.
   */
  start(options?: { readonly waitMs?: number }): Promise<void>;
  /** What a server has now, looked at afresh: from here on that is what is offered. */
  look(server: string): Promise<readonly ServerTool[]>;
  /** Tools held back because they changed since they were looked at. */
  quarantined(): ReadonlyMap<string, readonly string[]>;
  /** The user has looked at a server's tools: they are offered again. */
  accept(server: string): Promise<void>;
  /** Every configured server with its state, as data. */
  servers(): readonly ServerStatus[];
  /** The sandbox has changed: servers that want to know are told. With the next call they would be anyway. */
  sandboxChanged(): Promise<void>;
  /** Starts, calls and durations so far, by server. */
  metrics(): ReadonlyMap<string, ServerMetrics>;
  close(): Promise<void>;
}

/** One server and its state, as data. */
export interface ServerStatus {
  readonly name: string;
  readonly enabled: boolean;
  /** `disabled` where it is not enabled; `ready` where it runs. */
  readonly status: ServerState | "disabled";
  /** Why it is not ready, where it failed. */
  readonly problem?: string;
  /** Its tools that are offered now, by their names there. */
  readonly tools: readonly string[];
}

/** Options of `createMcpClients`. */
export interface McpClientsOptions extends Omit<
  ConnectionOptions,
  "config" | "onToolsChanged" | "authProvider" | "onStart" | "onFault" | "onRefused" | "cwd" | "env" | "version"
> {
  readonly servers: readonly ServerConfig[];
  readonly registry: Registry;
  /** Where servers start. Left out: the current folder. */
  readonly cwd?: string;
  /** What servers may be given of the environment. Left out: the process's own. */
  readonly env?: ConnectionOptions["env"];
  /** The version of the program, as servers are told it. */
  readonly version?: string;
  /** Where what is known of servers is kept. Left out: Callgate's own folder. */
  readonly stateDir?: string;
  readonly sandboxState?: () => JsonObject;
  readonly authProvider?: (config: ServerConfig) => ConnectionOptions["authProvider"];
  /** Told what was left out and why; `servers()` says it as data as well. */
  readonly warn?: (message: string) => void;
  readonly onEvent?: (event: McpEvent) => void;
}

type WithDefaults = McpClientsOptions & Required<Pick<McpClientsOptions, "cwd" | "env" | "version" | "warn">>;

/** Enough to say what is wrong; the rest is a server's way to fill the screen. */
const maxWarning = 1_000;

/** What the first request may wait for servers nobody has seen before. */
const defaultWaitMs = 500;

const clientsShape: Shape = {
  fields: {
    servers: { list: { methods: [], words: "a server, as readServers gives it" } },
    registry: { methods: ["register", "find", "list"], words: "a registry, as createRegistry makes it" },
    stateDir: "string",
    sandboxState: "function",
    authProvider: "function",
    warn: "function",
    onEvent: "function",
    host: "table",
    version: "string",
    now: "function",
    cwd: "string",
    env: "table",
    sandbox: { methods: ["confine"], words: "a sandbox, as engine.sandbox() gives it" },
    grant: "table",
  } satisfies Record<keyof McpClientsOptions, Shape>,
  required: ["servers", "registry"],
  noun: "option",
};

/** Connects to MCP servers and puts their tools into a registry, each under its server's name. */
export function createMcpClients(given: McpClientsOptions): McpClients {
  checkOptions("createMcpClients", given, clientsShape);
  const { env = process.env, cwd = process.cwd(), version = "0" } = given;
  const options = { ...given, env, cwd, version };
  const { registry, sandboxState } = options;
  let closed = false;
  /** Servers' own words are in it. What still fails while everything is being ended is nobody's concern. */
  const warn = (message: string) => void (closed || options.warn?.(toVisibleLine(message.slice(0, maxWarning))));
  const catalogue = createCatalogue(options.stateDir ?? stateDir(env));
  const metrics = createMcpMetrics();
  const emit = (event: McpEvent) => {
    metrics.count(event);
    options.onEvent?.(event);
  };
  const offers = createOffers({ registry, catalogue, emit, warn, ...(sandboxState ? { sandboxState } : {}) });
  const enabled = options.servers.filter((config) => config.enabled);
  const connections = new Map(
    enabled.map((config) => [config.name, createOne(config, { ...options, warn }, offers, emit)]),
  );

  return {
    connections,
    quarantined: () => offers.held,
    metrics: metrics.snapshot,
    servers: () =>
      options.servers.map((config) => {
        const connection = connections.get(config.name);
        const problem = connection?.problem();
        const own = registry.list().filter((tool) => tool.origin?.server === config.name);
        return {
          name: config.name,
          enabled: config.enabled,
          status: connection?.state() ?? "disabled",
          ...defined({ problem }),
          tools: own.map((tool) => tool.origin?.name ?? tool.name),
        };
      }),
    async sandboxChanged() {
      await Promise.all([...connections.values()].map((connection) => connection.tellSandbox()));
    },
    async start({ waitMs = defaultWaitMs } = {}) {
      const patience = new Promise<typeof late>((resolve) => void setTimeout(() => resolve(late), waitMs).unref());
      const context = { catalogue, offers, registry, warn, nextTurn: createTurns(), patience, warnsOfSlow: waitMs > 0 };
      await Promise.all([...connections.values()].map((connection) => startOne(connection, context)));
    },
    async look(server) {
      const connection = connections.get(server);
      if (connection === undefined) throw new CallError("mcp", `There is no MCP server '${server}'.`);
      const tools = await connection.listTools();
      offers.adopt(connection, tools);
      return tools;
    },
    async accept(server) {
      const connection = connections.get(server);
      if (connection) await offers.accept(connection);
    },
    async close() {
      closed = true;
      await Promise.all([...connections.values()].map((connection) => connection.close()));
    },
  };
}

function createOne(
  config: ServerConfig,
  { authProvider: authFor, ...shared }: WithDefaults,
  offers: Offers,
  emit: (event: McpEvent) => void,
): Connection {
  const authProvider = authFor?.(config);
  const connection: Connection = createConnection({
    ...shared,
    config,
    ...defined({ authProvider }),
    onToolsChanged: (tools) => offers.adopt(connection, tools),
    onRefused: (tool, reason) => shared.warn(`${config.name}/${tool} is left out: ${reason}`),
    onStart: ({ ok, durationMs }) => {
      if (ok) offers.started(config.name);
      const problem = ok ? undefined : connection.problem();
      emit({
        type: "server.started",
        server: config.name,
        ok,
        durationMs,
        ...defined({ problem }),
      });
    },
  });
  return connection;
}

const late = Symbol("late");

/** Starting a program holds everything up for some milliseconds: with many of them, other work has its turn in between. */
function createTurns(): () => Promise<void> {
  let last = Promise.resolve();
  return () => (last = last.then(() => new Promise((resolve) => void setImmediate(resolve))));
}

interface Start extends Pick<WithDefaults, "registry" | "warn"> {
  readonly catalogue: Catalogue;
  readonly offers: Offers;
  readonly nextTurn: () => Promise<void>;
  /** Ends when nobody waits any longer. */
  readonly patience: Promise<typeof late>;
  /** Not where nobody waits anyway. */
  readonly warnsOfSlow: boolean;
}

/** A known server's tools are offered at once; it starts with its first call. A new one is started now. */
async function startOne(connection: Connection, context: Start): Promise<void> {
  const { catalogue, offers, registry, warn } = context;
  const { config } = connection;
  const known = catalogue.known(config);
  if (known) offers.offer(connection, known);
  if (known && !config.required) return;
  const listed = context
    .nextTurn()
    .then(() => connection.listTools())
    .then((tools) => offers.adopt(connection, tools));
  if (config.required) return listed;
  registry.expect(config.name, listed);
  const told = listed.catch((error: unknown) => warn(error instanceof Error ? error.message : String(error)));
  const isSlow = catalogue.isSlow(config);
  if (!isSlow && (await Promise.race([told, context.patience])) !== late) return;
  if (!context.warnsOfSlow) return;
  if (!isSlow) catalogue.rememberSlow(config);
  warn(
    `the MCP server '${config.name}' is still starting: its tools join when it is up ('callgate mcp list' waits for it)`,
  );
}
