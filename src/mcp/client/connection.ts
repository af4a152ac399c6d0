/** One server's tools: listed and called, with every ending reported in the same way. */
import { SdkErrorCode, type Client } from "@modelcontextprotocol/client";
import { CallError } from "../../base/error.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import type { ServerConfig } from "../config.ts";
import { createLiveClient, wordsOf, type LiveClientOptions, type ServerState } from "./live-client.ts";
import type { ServerClient, ServerTool, ServerToolResult } from "../protocol.ts";

/** One server: started when it is first needed, and again after it ended. */
export interface Connection {
  readonly config: ServerConfig;
  state(): ServerState;
  /** Why it is not ready, if it failed. */
  problem(): string | undefined;
  client(): Promise<ServerClient>;
  /** Any request to the server. It is sent once more if it was refused before anything ran. */
  ask<Result>(request: (client: ServerClient) => Promise<Result>): Promise<Result>;
  listTools(): Promise<readonly ServerTool[]>;
  callTool(name: string, input: Json, options: CallOptions): Promise<ServerToolResult>;
  /** Tells a running server that asks for it what the sandbox allows, if that has changed. */
  tellSandbox(): Promise<void>;
  close(): Promise<void>;
}

/** What goes with a call to a server. */
export interface CallOptions {
  /** Ends the call. */
  readonly signal: AbortSignal;
  /** Our own id of the call. Questions that the server asks meanwhile belong to it. */
  readonly callId?: string;
  /** Sent to the server with the call, so that it can recognise a repeated one. */
  readonly idempotencyKey?: string;
  /** Called when the server reports how far it is. */
  readonly onProgress?: (progress: {
    readonly progress: number;
    readonly total?: number | undefined;
    readonly message?: string | undefined;
  }) => void;
  /** Sent beside the arguments to servers that ask for it. */
  readonly sandboxState?: () => JsonObject;
}

/** Options of a connection. */
export interface ConnectionOptions extends Omit<LiveClientOptions, "runningCall"> {
  /** What the sandbox allows, for servers that want to know. */
  readonly sandboxState?: () => JsonObject;
}

/**
 * Servers that declare one of these as experimental are told with each call, under the same name, what
 * the sandbox allows.
 */
const sandboxCapabilities = ["callgate/sandbox-state", "codex/sandbox-state-meta"];
/** Servers that declare one of these are notified, `…/update`, when they have started and when it has changed. */
const notifiedCapabilities = ["callgate/sandbox-state", "codex/sandbox-state"];

export function createConnection(options: ConnectionOptions): Connection {
  const { config } = options;
  const running = new Set<string>();
  const runningCall = () => (running.size === 1 ? [...running][0] : undefined);
  const told = { state: "" };
  const { state, problem, client, close, ask, fault } = createLiveClient({
    ...options,
    runningCall,
    onStart(start) {
      told.state = ""; // a new process has heard nothing yet
      options.onStart?.(start);
      if (start.ok) void tellSandbox();
    },
  });
  const tellSandbox = async () => {
    if (options.sandboxState === undefined || state() !== "ready") return;
    const now = options.sandboxState();
    const text = JSON.stringify(now);
    if (text === told.state) return;
    told.state = text;
    // A server that ends while it is being told has nothing left to confine.
    await notifySandbox(await client(), now).catch(() => undefined);
  };
  return {
    tellSandbox,
    config,
    state,
    problem,
    client,
    close,
    ask,
    async listTools() {
      try {
        const options = { timeout: config.startTimeoutMs };
        return await ask(async (connected) => {
          // The library would report this on stdout, which does not belong to it.
          if (connected.getServerCapabilities()?.tools === undefined) return [];
          return (await connected.listTools(undefined, options)).tools;
        });
      } catch (error) {
        if (CallError.is(error)) throw error;
        const message = `The MCP server '${config.name}' does not say what it has: ${wordsOf(error)}`;
        throw new CallError("mcp", message, { cause: error });
      }
    },
    async callTool(name, input, call) {
      const { callId = name, signal } = call;
      running.add(callId);
      try {
        await tellSandbox();
        return await ask((connected) => callTool(connected, config, name, input, call), signal);
      } catch (error) {
        throw toCallError(error, config, name, signal, fault());
      } finally {
        running.delete(callId);
      }
    },
  };
}

async function notifySandbox(client: Client, state: JsonObject): Promise<void> {
  const experimental = client.getServerCapabilities()?.experimental ?? {};
  for (const name of notifiedCapabilities.filter((key) => Object.hasOwn(experimental, key)))
    await client.notification({
      method: `${name}/update`,
      params: name.startsWith("codex/") ? toCodexState(state) : state,
    });
}

/** The state of the sandbox in the form that codex sends. */
function toCodexState({ policy, writableRoots, network, cwd }: JsonObject): JsonObject {
  const isOpen = network !== "off";
  const sandboxPolicy =
    policy === "full-access"
      ? { type: "danger-full-access" }
      : policy === "read-only"
        ? { type: "read-only" }
        : {
            type: "workspace-write",
            writable_roots: writableRoots ?? [],
            network_access: isOpen,
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: false,
          };
  return { sandboxPolicy, codexLinuxSandboxExe: null, sandboxCwd: cwd ?? null };
}

function callTool(client: Client, config: ServerConfig, name: string, input: Json, options: CallOptions) {
  const { signal, onProgress, sandboxState, idempotencyKey } = options;
  const experimental = client.getServerCapabilities()?.experimental ?? {};
  const told = sandboxState && sandboxCapabilities.filter((key) => Object.hasOwn(experimental, key));
  return client.callTool(
    {
      name,
      // A tool's input is an object, because its schema was checked before the call came here.
      arguments: input as Record<string, unknown>,
      _meta: {
        ...(idempotencyKey === undefined ? {} : { "callgate/idempotency-key": idempotencyKey }),
        ...Object.fromEntries((told || []).map((key) => [key, sandboxState!()])),
      },
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
  const message = code === SdkErrorCode.ConnectionClosed ? (fault ?? "the server ended") : wordsOf(error);
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
