/**
 * All configured servers and their tools in one registry. Servers start side by side and only when
 * needed. One that is dead, slow or wrong is reported and left out, and disturbs nothing else. `mcp/`
 * uses the engine's public entry, like any tool.
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
   * Offers what is known and starts the rest. Waits no longer than `waitMs` for new servers, and not at
   * all for those that were too slow last time. What arrives later is offered then.
   */
  start(options?: { readonly waitMs?: number }): Promise<void>;
  /** Reads a server's present tools, and offers those from here on. */
  look(server: string): Promise<readonly ServerTool[]>;
  /** Tools that are held back because they changed since somebody looked at them. */
  quarantined(): ReadonlyMap<string, readonly string[]>;
  /** The user has looked at a server's tools, so they are offered again. */
  accept(server: string): Promise<void>;
  /** Every configured server with its state, as data. */
  servers(): readonly ServerStatus[];
  /** The sandbox has changed. Servers that want to know are told now instead of with the next call. */
  sandboxChanged(): Promise<void>;
  /** Starts, calls and durations so far, by server. */
  metrics(): ReadonlyMap<string, ServerMetrics>;
  close(): Promise<void>;
}

/** One server and its state, as data. */
export interface ServerStatus {
  readonly name: string;
  readonly enabled: boolean;
  /** `disabled` if it is not enabled, `ready` if it runs. */
  readonly status: ServerState | "disabled";
  /** Why it is not ready, if it failed. */
  readonly problem?: string;
  /** Its tools that are offered now, by their names there. */
  readonly tools: readonly string[];
}

/** Options of `createMcpClients`. */
export interface McpClientsOptions extends Omit<
  ConnectionOptions,
  "config" | "onToolsChanged" | "authProvider" | "onStart" | "onFault" | "onRefused" | "cwd" | "env" | "version"
> {
  /** The servers, as `readServers` gives them. */
  readonly servers: readonly ServerConfig[];
  /** Where their tools are added. */
  readonly registry: Registry;
  /** Where servers start. Left out: the current folder. */
  readonly cwd?: string;
  /** The environment from which servers are given variables. Left out: the process's own. */
  readonly env?: ConnectionOptions["env"];
  /** Our program's version, which servers are told. */
  readonly version?: string;
  /** Where what is known about servers is stored. Left out: Callgate's own folder. */
  readonly stateDir?: string;
  /** What servers that ask for it are told about the sandbox of this call. */
  readonly sandboxState?: () => JsonObject;
  /** The login of a server that wants one (`createTokenStore`). Left out: there are none. */
  readonly authProvider?: (config: ServerConfig) => ConnectionOptions["authProvider"];
  /** Called with what was left out and why. `servers()` returns the same as data. */
  readonly warn?: (message: string) => void;
  /** Called when a server starts, fails, or changes its tools. */
  readonly onEvent?: (event: McpEvent) => void;
}

type WithDefaults = McpClientsOptions & Required<Pick<McpClientsOptions, "cwd" | "env" | "version" | "warn">>;

/** Enough to say what is wrong. A longer text would only fill the screen. */
const maxWarning = 1_000;

/** How long the first request waits for servers that nobody has seen before. */
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
  /** The message may contain a server's own words. Failures while everything is being closed are not reported. */
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

/** Starting a program blocks for some milliseconds. With many of them, other work gets a turn in between. */
function createTurns(): () => Promise<void> {
  let last = Promise.resolve();
  return () => (last = last.then(() => new Promise((resolve) => void setImmediate(resolve))));
}

interface Start extends Pick<WithDefaults, "registry" | "warn"> {
  readonly catalogue: Catalogue;
  readonly offers: Offers;
  readonly nextTurn: () => Promise<void>;
  /** Resolves when nobody waits any longer. */
  readonly patience: Promise<typeof late>;
  /** Whether a slow server is worth a warning. It is not if nobody waits for it anyway. */
  readonly warnsOfSlow: boolean;
}

/** The tools of a known server are offered at once, and it starts with its first call. A new server is started now. */
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
