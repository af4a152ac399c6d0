/** One HTTP exchange with a model: sent, waited for, read piece by piece, each with its own limit of time. */
import type { Agent, ClientRequest, IncomingMessage } from "node:http";

/** Separate limits, because a slow model, a dead host and a stuck stream are different troubles. */
export interface TimeLimits {
  readonly connectMs: number;
  /** From the request being sent to the first byte of the answer. */
  readonly firstByteMs: number;
  /** Between two pieces of the answer. */
  readonly silenceMs: number;
  readonly totalMs: number;
}

export const defaultLimits: TimeLimits = {
  connectMs: 15_000,
  firstByteMs: 300_000,
  silenceMs: 300_000,
  totalMs: 3_600_000,
};

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
}

/** What went wrong before or below HTTP. */
export class TransportError extends Error {
  override readonly name = "TransportError";
  readonly kind: "connect" | "timeout" | "broken" | "aborted";

  constructor(kind: TransportError["kind"], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

export interface Transport {
  post(url: URL, body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpAnswer>;
  close(): void;
}

/**
 * Kept-alive connections on node:http. Loaded when first used and not through `import`: on newer Node
 * versions the ES-module form of node:http costs as much as starting Node itself.
 */
export function createTransport(limits: TimeLimits = defaultLimits): Transport {
  const agents = new Map<string, Agent>();

  const load = (protocol: string) => {
    const secure = protocol === "https:";
    const module = process.getBuiltinModule(secure ? "node:https" : "node:http");
    let agent = agents.get(protocol);
    if (!agent) agents.set(protocol, (agent = new module.Agent({ keepAlive: true, timeout: 60_000 })));
    return { request: module.request, agent };
  };

  return {
    post(url, body, headers, signal) {
      const { request, agent } = load(url.protocol);
      const bytes = Buffer.from(body);
      return new Promise((resolve, reject) => {
        const outgoing = request(url, {
          method: "POST",
          agent,
          headers: { ...headers, "content-length": String(bytes.length) },
        });
        const clock = watch(outgoing, limits, signal, reject);
        outgoing.on("error", (error: NodeJS.ErrnoException) =>
          reject(asTransportError(error, url, signal, clock.expired())),
        );
        outgoing.on("response", (incoming) => {
          clock.answered();
          const flat = Object.entries(incoming.headers).map(
            ([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value] as const,
          );
          resolve({
            status: incoming.statusCode ?? 0,
            headers: Object.fromEntries(flat),
            body: readBody(incoming, clock, url, signal),
          });
        });
        outgoing.end(bytes);
      });
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
    },
  };
}

interface Clock {
  answered(): void;
  heard(): void;
  done(): void;
  expired(): string | undefined;
}

/** One timer at a time: connect, then first byte, then silence; and one for the whole. */
function watch(
  outgoing: ClientRequest,
  limits: TimeLimits,
  signal: AbortSignal,
  reject: (error: Error) => void,
): Clock {
  let expired: string | undefined;
  let phase: NodeJS.Timeout | undefined;
  const stop = (reason: string) => {
    expired = reason;
    outgoing.destroy(new TransportError("timeout", reason));
  };
  const arm = (ms: number, reason: string) => {
    clearTimeout(phase);
    phase = setTimeout(stop, ms, reason);
  };
  const total = setTimeout(stop, limits.totalMs, `the answer took longer than ${limits.totalMs} ms`);
  const onAbort = () => {
    const error = new TransportError("aborted", "the request was interrupted");
    outgoing.destroy(error);
    reject(error);
  };
  if (signal.aborted) queueMicrotask(onAbort);
  else signal.addEventListener("abort", onAbort, { once: true });
  arm(limits.connectMs, `no connection within ${limits.connectMs} ms`);
  const waitForFirstByte = () => arm(limits.firstByteMs, `no answer within ${limits.firstByteMs} ms`);
  outgoing.on("socket", (socket) => {
    if (socket.connecting) socket.once("connect", waitForFirstByte);
    else waitForFirstByte();
  });
  outgoing.on("close", () => {
    clearTimeout(phase);
    clearTimeout(total);
    signal.removeEventListener("abort", onAbort);
  });
  const silence = `the answer stopped: nothing came for ${limits.silenceMs} ms`;
  return {
    answered: () => arm(limits.silenceMs, silence),
    heard: () => phase?.refresh(),
    done: () => clearTimeout(phase),
    expired: () => expired,
  };
}

async function* readBody(
  incoming: IncomingMessage,
  clock: Clock,
  url: URL,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of incoming) {
      clock.heard();
      yield chunk as Uint8Array;
    }
  } catch (error) {
    throw asTransportError(error, url, signal, clock.expired());
  } finally {
    clock.done();
  }
}

function asTransportError(error: unknown, url: URL, signal: AbortSignal, expired: string | undefined): TransportError {
  if (signal.aborted) return new TransportError("aborted", "the request was interrupted", error);
  if (expired !== undefined) return new TransportError("timeout", `${url.host}: ${expired}`, error);
  if (error instanceof TransportError) return error;
  const code = (error as NodeJS.ErrnoException).code ?? "";
  const connect = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "ECONNRESET"].includes(
    code,
  );
  return connect
    ? new TransportError("connect", `cannot reach ${url.host} (${code})`, error)
    : new TransportError("broken", `the connection to ${url.host} broke (${code || String(error)})`, error);
}
