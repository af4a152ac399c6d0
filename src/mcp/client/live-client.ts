/** A connection that is opened when needed, opened again after it broke, and renewed if the server lost the session. */
import { SdkErrorCode, type Client } from "@modelcontextprotocol/client";
import { CallError } from "../../base/error.ts";
import { toVisible } from "../../gate/show.ts";
import { errorBudget, truncate } from "../../result/truncate.ts";
import type { ServerConfig } from "../config.ts";
import { visitPages } from "../host.ts";
import { isSessionLost } from "./http-transport.ts";
import { openClient, type OpenOptions } from "./open-client.ts";

/** Where a server stands. */
export type ServerState = "idle" | "starting" | "ready" | "failed" | "closed";

/** @internal */
export interface LiveClient {
  state(): ServerState;
  /** Why it is not ready, where it failed. */
  problem(): string | undefined;
  /** What the last connection broke on. */
  fault(): string | undefined;
  client(): Promise<Client>;
  /** Asks once more at most, and never if the first request may have done something. */
  ask<Result>(request: (client: Client) => Promise<Result>, signal?: AbortSignal): Promise<Result>;
  close(): Promise<void>;
}

/** Options of a client that starts its server anew when it has to. */
export interface LiveClientOptions extends Omit<OpenOptions, "signal"> {
  /** Called for every start, whether it worked or not, with its duration. */
  readonly onStart?: (start: { readonly ok: boolean; readonly durationMs: number }) => void;
  /** The clock, for tests. */
  readonly now?: () => number;
}

const firstBackoffMs = 500;
const maxBackoffMs = 30_000;
/** A server that ran this long before it died counts as healthy, and may start again at once. */
const healthyMs = 60_000;
/** For requests that nobody will interrupt. */
const never = new AbortController().signal;

/** @internal */
export function createLiveClient(options: LiveClientOptions): LiveClient {
  const { config, host = {}, now = Date.now } = options;
  let current: Promise<Client> | undefined;
  /** The client in use. What an earlier one still sends changes nothing. */
  let live: Client | undefined;
  let state: ServerState = "idle";
  let problem: string | undefined;
  let fault: string | undefined;
  let failures = 0;
  let retryAt = 0;
  const stop = new AbortController();
  const users = createUsers((client) => live !== client);

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
      opened = await openClient(
        { ...options, signal: stop.signal, onFault: (error) => (fault = wordsOf(error)) },
        () => {
          if (state === "closed" || live !== opened) return;
          live = undefined;
          state = "idle";
          problem = fault;
          fail(now() - startedAt > healthyMs);
        },
      );
      live = opened;
      state = "ready";
      problem = undefined;
      options.onStart?.({ ok: true, durationMs: now() - startedAt });
      return opened;
    } catch (error) {
      if (!stop.signal.aborted) state = "failed";
      fail(false);
      problem = wordsOf(error);
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
  /** Several calls may find the session lost at the same time. The first one renews it for all. */
  const renew = (lost: Promise<Client>) => {
    if (current !== lost) return;
    current = undefined;
    live = undefined;
    failures = 0;
    retryAt = 0;
  };

  return {
    state: () => state,
    problem: () => problem,
    fault: () => fault,
    client,
    async ask(request, signal = never) {
      const asked = client();
      try {
        return await users.use(await asked, request, (error) => neverRan(error, config) && renew(asked));
      } catch (error) {
        if (!neverRan(error, config) && !(await visitPages(error, host, config.name, signal))) throw error;
        return users.use(await client(), request);
      }
    },
    async close() {
      state = "closed";
      stop.abort();
      const open = current;
      current = undefined;
      await open?.then((connected) => connected.close()).catch(() => undefined);
    },
  };
}

/** A client that was replaced is closed when the last request on it has ended. */
function createUsers(isReplaced: (client: Client) => boolean) {
  const counts = new Map<Client, number>();
  return {
    async use<Result>(
      client: Client,
      request: (client: Client) => Promise<Result>,
      onError: (error: unknown) => void = () => undefined,
    ): Promise<Result> {
      counts.set(client, (counts.get(client) ?? 0) + 1);
      try {
        return await request(client);
      } catch (error) {
        onError(error);
        throw error;
      } finally {
        const left = (counts.get(client) ?? 1) - 1;
        if (left > 0) counts.set(client, left);
        else counts.delete(client);
        if (left === 0 && isReplaced(client)) void client.close().catch(() => undefined);
      }
    },
  };
}

/** What went wrong, in words that may be the server's own. They appear on a screen and in a model's context. */
export function wordsOf(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  return toVisible(truncate(said, errorBudget).text);
}

/** The server has lost our session, or the request was never sent, so it may be sent on a new connection. */
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
