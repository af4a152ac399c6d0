/** One server: connected when first needed, again after it died, told to everybody in one way. */
import {
  Client,
  StreamableHTTPClientTransport,
  SSEClientTransport,
  type CallToolResult,
  type Tool as ServerTool,
  type Transport,
} from "@modelcontextprotocol/client";
import { CallError } from "../base/error.ts";
import type { Json } from "../base/json.ts";
import type { HttpConfig, ServerConfig, StdioConfig } from "./config.ts";
import { startServer, type StartContext } from "./start-server.ts";
import { createStdioTransport, type StdioTransport } from "./stdio-transport.ts";

export type ServerState = "idle" | "starting" | "ready" | "failed" | "closed";

export interface Connection {
  readonly config: ServerConfig;
  state(): ServerState;
  /** Why it is not ready, where it failed. */
  problem(): string | undefined;
  client(): Promise<Client>;
  listTools(): Promise<readonly ServerTool[]>;
  callTool(name: string, input: Json, options: CallOptions): Promise<CallToolResult>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: {
    readonly progress: number;
    readonly total?: number | undefined;
    readonly message?: string | undefined;
  }) => void;
  /** Told to the server beside the arguments (the sandbox state, for servers that ask for it). */
  readonly meta?: Readonly<Record<string, Json>>;
}

export interface ConnectionOptions extends StartContext {
  readonly config: ServerConfig;
  readonly onToolsChanged: (tools: readonly ServerTool[]) => void;
  /** Registers what the host answers: elicitation, roots, sampling. */
  readonly prepare?: (client: Client) => void;
  readonly authProvider?: NonNullable<ConstructorParameters<typeof StreamableHTTPClientTransport>[1]>["authProvider"];
  readonly version: string;
  readonly now?: () => number;
}

const firstBackoffMs = 500;
const maxBackoffMs = 30_000;
/** A server that ran this long before it died is taken as healthy: it may start again at once. */
const healthyMs = 60_000;

export function createConnection(options: ConnectionOptions): Connection {
  const { config } = options;
  const now = options.now ?? Date.now;
  let current: Promise<Client> | undefined;
  let state: ServerState = "idle";
  let problem: string | undefined;
  let failures = 0;
  let retryAt = 0;
  let readyAt = 0;

  const connect = async (): Promise<Client> => {
    state = "starting";
    try {
      const client = await open(options, () => {
        if (state !== "closed") state = "idle";
        current = undefined;
        failures = now() - readyAt > healthyMs ? 0 : failures + 1;
        retryAt = now() + backoff(failures);
      });
      state = "ready";
      problem = undefined;
      readyAt = now();
      return client;
    } catch (error) {
      state = "failed";
      current = undefined;
      failures++;
      retryAt = now() + backoff(failures);
      problem = error instanceof Error ? error.message : String(error);
      throw new CallError("mcp", `The MCP server '${config.name}' is not available: ${problem}`, { cause: error });
    }
  };

  const client = (): Promise<Client> => {
    if (current) return current;
    if (state === "closed") return Promise.reject(new CallError("mcp", `The MCP server '${config.name}' was closed.`));
    if (now() < retryAt) {
      const seconds = Math.ceil((retryAt - now()) / 1000);
      return Promise.reject(
        new CallError(
          "mcp",
          `The MCP server '${config.name}' is down (${problem ?? "it ended"}); it is tried again in ${seconds} s.`,
        ),
      );
    }
    return (current = connect());
  };

  return {
    config,
    state: () => state,
    problem: () => problem,
    client,
    async listTools() {
      const { tools } = await (await client()).listTools();
      return tools;
    },
    async callTool(name, input, { signal, onProgress, meta }) {
      const connected = await client();
      try {
        return await connected.callTool(
          { name, arguments: input as Record<string, unknown>, ...(meta === undefined ? {} : { _meta: meta }) },
          {
            signal,
            timeout: config.callTimeoutMs,
            maxTotalTimeout: config.totalTimeoutMs,
            resetTimeoutOnProgress: true,
            onprogress: (progress) => onProgress?.(progress),
          },
        );
      } catch (error) {
        throw toCallError(error, config, name, signal);
      }
    },
    async close() {
      state = "closed";
      const open = current;
      current = undefined;
      await open?.then((connected) => connected.close()).catch(() => undefined);
    },
  };
}

function backoff(failures: number): number {
  return failures === 0 ? 0 : Math.min(maxBackoffMs, firstBackoffMs * 2 ** (failures - 1));
}

async function open(options: ConnectionOptions, onClose: () => void): Promise<Client> {
  const { config } = options;
  const client = new Client(
    { name: "callgate", version: options.version },
    {
      capabilities: { elicitation: { form: {}, url: {} }, roots: {} },
      listChanged: {
        tools: { onChanged: (error, tools) => (error || !tools ? undefined : options.onToolsChanged(tools)) },
      },
    },
  );
  options.prepare?.(client);
  const transport =
    config.transport.kind === "stdio" ? stdio(options, config.transport) : http(options, config.transport);
  try {
    await client.connect(transport, { timeout: config.startTimeoutMs });
  } catch (error) {
    await transport.close().catch(() => undefined);
    if (config.transport.kind === "http" && isNotStreamable(error))
      return openSse(options, config.transport, client, onClose);
    throw withStderr(error, transport);
  }
  // oxlint-disable-next-line prefer-add-event-listener -- the protocol library has only this hook
  client.onclose = onClose;
  return client;
}

function stdio(options: ConnectionOptions, transport: StdioConfig): Transport {
  return createStdioTransport(() => startServer({ ...options.config, transport }, options));
}

function http(options: ConnectionOptions, transport: HttpConfig): Transport {
  return new StreamableHTTPClientTransport(new URL(transport.url), {
    requestInit: { headers: headersOf(transport, options.env) },
    ...(options.authProvider === undefined ? {} : { authProvider: options.authProvider }),
  });
}

/** Servers from before streamable HTTP answer its POST with 404 or 405. */
async function openSse(
  options: ConnectionOptions,
  transport: HttpConfig,
  client: Client,
  onClose: () => void,
): Promise<Client> {
  const headers = headersOf(transport, options.env);
  await client.connect(new SSEClientTransport(new URL(transport.url), { requestInit: { headers } }), {
    timeout: options.config.startTimeoutMs,
  });
  // oxlint-disable-next-line prefer-add-event-listener -- the protocol library has only this hook
  client.onclose = onClose;
  return client;
}

function isNotStreamable(error: unknown): boolean {
  const status =
    (error as { readonly code?: unknown; readonly status?: unknown } | null)?.status ??
    (error as { readonly code?: unknown } | null)?.code;
  return status === 404 || status === 405;
}

function headersOf(transport: HttpConfig, env: NodeJS.ProcessEnv): Record<string, string> {
  const fromEnv = Object.entries(transport.headerEnvs).flatMap(([header, name]) =>
    env[name] === undefined ? [] : [[header, env[name]]],
  );
  const token = transport.bearerTokenEnv === undefined ? undefined : env[transport.bearerTokenEnv];
  return {
    ...transport.headers,
    ...Object.fromEntries(fromEnv),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
}

function withStderr(error: unknown, transport: Transport): Error {
  const tail = "stderrTail" in transport ? (transport as StdioTransport).stderrTail() : "";
  const message = error instanceof Error ? error.message : String(error);
  return new Error(tail === "" ? message : `${message}; it said: ${tail.split("\n").slice(-5).join(" / ")}`, {
    cause: error,
  });
}

function toCallError(error: unknown, config: ServerConfig, tool: string, signal: AbortSignal): CallError {
  if (CallError.is(error)) return error;
  if (signal.aborted) return new CallError("aborted", "The call was interrupted before it ended.", { cause: error });
  const message = error instanceof Error ? error.message : String(error);
  const isTimeout =
    (error as { readonly code?: unknown } | null)?.code === "REQUEST_TIMEOUT" ||
    (error as { readonly code?: unknown } | null)?.code === -32001;
  if (isTimeout) {
    return new CallError("timeout", `${config.name}/${tool} gave no sign of life for ${config.callTimeoutMs} ms.`, {
      hint: "Ask for less at once.",
      cause: error,
    });
  }
  return new CallError("mcp", `${config.name}/${tool} failed: ${message}`, { cause: error });
}
