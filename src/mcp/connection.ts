/** One server: connected when first needed, again after it died, told to everybody in one way. */
import {
  InsufficientScopeError,
  SdkErrorCode,
  type CallToolResult,
  type Client,
  type Tool as ServerTool,
} from "@modelcontextprotocol/client";
import { CallError } from "../base/error.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { ServerConfig } from "./config.ts";
import { visitPages } from "./host.ts";
import { isSessionLost } from "./http-transport.ts";
import { openClient, type OpenOptions } from "./open-client.ts";

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
  /** Told beside the arguments to servers that ask for it. */
  readonly sandboxState?: () => JsonObject;
}

export interface ConnectionOptions extends OpenOptions {
  /** Told of every start that worked or did not, with how long it took. */
  readonly onStart?: (start: { readonly ok: boolean; readonly durationMs: number }) => void;
  readonly now?: () => number;
}

/** For requests that nobody will interrupt. */
const never = new AbortController().signal;
const firstBackoffMs = 500;
const maxBackoffMs = 30_000;
/** A server that ran this long before it died is taken as healthy: it may start again at once. */
const healthyMs = 60_000;
/** Servers that declare one of these as experimental are told what the sandbox allows, under the same name. */
const sandboxCapabilities = ["callgate/sandbox-state", "codex/sandbox-state-meta"];

export function createConnection(options: ConnectionOptions): Connection {
  const { config, now = Date.now } = options;
  let current: Promise<Client> | undefined;
  let state: ServerState = "idle";
  let problem: string | undefined;
  let failures = 0;
  let retryAt = 0;
  let fault: string | undefined;
  /** The client in use: what an earlier one still has to say changes nothing. */
  let live: Client | undefined;

  const fail = (healthy: boolean) => {
    current = undefined;
    failures = healthy ? 0 : failures + 1;
    retryAt = now() + backoff(failures);
  };
  const connect = async (): Promise<Client> => {
    state = "starting";
    const startedAt = now();
    let opened: Client | undefined;
    try {
      fault = undefined;
      opened = await openClient({ ...options, onFault: (error) => (fault = error.message) }, () => {
        if (state === "closed" || live !== opened) return;
        live = undefined;
        state = "idle";
        problem = fault;
        fail(now() - startedAt > healthyMs);
      });
      live = opened;
      state = "ready";
      problem = undefined;
      options.onStart?.({ ok: true, durationMs: now() - startedAt });
      return opened;
    } catch (error) {
      state = "failed";
      fail(false);
      problem = error instanceof Error ? error.message : String(error);
      options.onStart?.({ ok: false, durationMs: now() - startedAt });
      throw new CallError("mcp", `The MCP server '${config.name}' is not available: ${problem}`, { cause: error });
    }
  };

  const client = (): Promise<Client> => {
    if (current) return current;
    if (state === "closed") return Promise.reject(new CallError("mcp", `The MCP server '${config.name}' was closed.`));
    if (now() < retryAt) return Promise.reject(isDown(config, problem, retryAt - now()));
    return (current = connect());
  };
  /** Several calls may find the session lost at once: the first renews it for all, the others end first. */
  const renew = (lost: Promise<Client>) => {
    if (current !== lost) return;
    current = undefined;
    live = undefined;
    failures = 0;
    retryAt = 0;
  };
  const inUse = new Map<Client, number>();
  const use = async <Result>(connected: Client, ask: (client: Client) => Promise<Result>): Promise<Result> => {
    inUse.set(connected, (inUse.get(connected) ?? 0) + 1);
    try {
      return await ask(connected);
    } finally {
      const left = (inUse.get(connected) ?? 1) - 1;
      if (left > 0) inUse.set(connected, left);
      else inUse.delete(connected);
      if (left === 0 && live !== connected) void connected.close().catch(() => undefined);
    }
  };

  /** Once more at most, and never where the first request may have done something. */
  const onSession = async <Result>(
    ask: (client: Client) => Promise<Result>,
    signal: AbortSignal = never,
  ): Promise<Result> => {
    const asked = client();
    const connected = await asked;
    try {
      return await use(connected, async (at) => {
        try {
          return await ask(at);
        } catch (error) {
          if (neverRan(error, config)) renew(asked);
          throw error;
        }
      });
    } catch (error) {
      if (!neverRan(error, config) && !(await visitPages(error, options.host ?? {}, config.name, signal))) throw error;
      return use(await client(), ask);
    }
  };

  return {
    config,
    state: () => state,
    problem: () => problem,
    client,
    listTools: () => onSession(async (connected) => (await connected.listTools()).tools),
    callTool: (name, input, call) =>
      onSession((connected) => callTool(connected, config, name, input, call), call.signal).catch((error: unknown) => {
        throw toCallError(error, config, name, call.signal, fault);
      }),
    async close() {
      state = "closed";
      const open = current;
      current = undefined;
      await open?.then((connected) => connected.close()).catch(() => undefined);
    },
  };
}

function callTool(client: Client, config: ServerConfig, name: string, input: Json, options: CallOptions) {
  const { signal, onProgress, sandboxState } = options;
  const experimental = client.getServerCapabilities()?.experimental ?? {};
  const told = sandboxState && sandboxCapabilities.filter((key) => Object.hasOwn(experimental, key));
  return client.callTool(
    {
      name,
      // A tool's input is an object: its schema was checked before the call came here.
      arguments: input as Record<string, unknown>,
      ...(told?.length ? { _meta: Object.fromEntries(told.map((key) => [key, sandboxState!()])) } : {}),
    },
    {
      signal,
      timeout: config.callTimeoutMs,
      maxTotalTimeout: config.totalTimeoutMs,
      resetTimeoutOnProgress: true,
      onprogress: (progress) => onProgress?.(progress),
    },
  );
}

/** The server has forgotten our session, or the request never left: a new connection may be asked instead. */
function neverRan(error: unknown, { transport }: ServerConfig): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return code === SdkErrorCode.NotConnected || (transport.kind === "http" && isSessionLost(error));
}

function backoff(failures: number): number {
  return failures === 0 ? 0 : Math.min(maxBackoffMs, firstBackoffMs * 2 ** (failures - 1));
}

function isDown(config: ServerConfig, problem: string | undefined, waitMs: number): CallError {
  const seconds = Math.ceil(waitMs / 1000);
  return new CallError(
    "mcp",
    `The MCP server '${config.name}' is down (${problem ?? "it ended"}); it is tried again in ${seconds} s.`,
  );
}

function toCallError(
  error: unknown,
  config: ServerConfig,
  tool: string,
  signal: AbortSignal,
  fault: string | undefined,
): CallError {
  if (CallError.is(error)) return error;
  if (signal.aborted) return new CallError("aborted", "The call was interrupted before it ended.", { cause: error });
  const code = (error as { readonly code?: unknown } | null)?.code;
  const said = error instanceof Error ? error.message : String(error);
  const message = code === SdkErrorCode.ConnectionClosed ? (fault ?? "the server ended") : said;
  if (code === SdkErrorCode.RequestTimeout || code === -32001) {
    return new CallError("timeout", `${config.name}/${tool} gave no sign of life for ${config.callTimeoutMs} ms.`, {
      hint: "Ask for less at once.",
      cause: error,
    });
  }
  return new CallError("mcp", `${config.name}/${tool} failed: ${message}`, {
    hint: "Whether it did something before it failed is not known: look before you call it again.",
    cause: error,
  });
}
