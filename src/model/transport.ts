/** One HTTP exchange with a model: sending, waiting and reading piece by piece, each with its own time limit. */
import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { Readable } from "node:stream";
import { errorCode } from "../base/error.ts";
import { extend } from "../base/extend.ts";
import { defaultAnswerLimits } from "../wire/limits.ts";

/** Separate limits, because a slow model, a dead host and a stuck stream are different problems. */
export interface TimeLimits {
  readonly connectMs: number;
  /** From the request being sent to the first byte of the answer. */
  readonly firstByteMs: number;
  /** Between two pieces of the answer. */
  readonly silenceMs: number;
  readonly totalMs: number;
}

/** How long a model server may take, unless set otherwise. */
export const defaultLimits: TimeLimits = {
  connectMs: 15_000,
  firstByteMs: 300_000,
  silenceMs: 300_000,
  totalMs: 3_600_000,
};

/** An answer over HTTP, its body still arriving. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
}

/** What went wrong before or below HTTP. */
export class TransportError extends Error {
  override readonly name = "TransportError";
  readonly kind: "connect" | "timeout" | "broken" | "aborted" | "too_large";

  constructor(kind: TransportError["kind"], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
  }
}

/** Sends requests; your own may be given for tests or proxies. */
export interface Transport {
  /** `body` is its bytes, in any number of pieces. */
  post(
    url: URL,
    body: readonly Uint8Array[],
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<HttpAnswer>;
  close(): void;
}

/**
 * Kept-alive connections on node:http. It is loaded when first used and not through `import`, because
 * on newer versions of Node the ES module form of node:http costs as much as starting Node itself. A
 * body longer than `bodyBytes`, unpacked, is cut off.
 */
export function createTransport(
  given: Partial<TimeLimits> = {},
  bodyBytes: number = defaultAnswerLimits.bodyBytes,
): Transport {
  const limits = { ...defaultLimits, ...given };
  const agents = new Map<string, Agent>();

  const load = (protocol: string) => {
    const secure = protocol === "https:";
    const module = process.getBuiltinModule(secure ? "node:https" : "node:http");
    let agent = agents.get(protocol);
    if (!agent) agents.set(protocol, (agent = new module.Agent({ keepAlive: true, timeout: 60_000 })));
    return { request: module.request, agent };
  };
  /** An address is taken apart once, because a session asks the same one again and again. */
  const targets = new WeakMap<URL, RequestOptions>();
  const toTarget = (url: URL): RequestOptions => {
    let target = targets.get(url);
    if (!target)
      targets.set(url, (target = { ...process.getBuiltinModule("node:url").urlToHttpOptions(url), method: "POST" }));
    return target;
  };

  return {
    post(url, body, headers, signal) {
      const { request, agent } = load(url.protocol);
      const length = body.reduce((sum, piece) => sum + piece.length, 0);
      const send = (isSecond: boolean): Promise<HttpAnswer> =>
        new Promise((resolve, reject) => {
          const own = { agent: isSecond ? false : agent, headers: extend(headers, { "content-length": length }) };
          const outgoing = request(extend(toTarget(url), own));
          const clock = watch(outgoing, limits, signal, reject);
          let isAnswered = false;
          outgoing.on("error", (error: NodeJS.ErrnoException) => {
            // The server closed a kept connection while we were about to reuse it, so it never saw the request.
            const isStale =
              outgoing.reusedSocket && !isAnswered && (error.code === "ECONNRESET" || error.code === "EPIPE");
            if (isStale && !isSecond && !signal.aborted && clock.expired() === undefined) resolve(send(true));
            else reject(asTransportError(error, url, signal, clock.expired()));
          });
          outgoing.on("response", (incoming) => {
            isAnswered = true;
            clock.answered();
            const flat = Object.entries(incoming.headers).map(
              ([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value] as const,
            );
            resolve({
              status: incoming.statusCode ?? 0,
              headers: Object.fromEntries(flat),
              body: readBody(incoming, clock, url, signal, bodyBytes),
            });
          });
          if (length > mostCopied) {
            for (const piece of body) outgoing.write(piece);
            outgoing.end();
          } else outgoing.end(body.length === 1 ? body[0] : Buffer.concat(body, length));
        });
      return send(false);
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
    },
  };
}

/** A body up to this size is copied into one piece: each piece costs more than the copy. */
const mostCopied = 256 * 1024;

/** In milliseconds, never backwards. Not `performance`, whose first use loads four modules before the first request. */
const now = () => process.uptime() * 1000;

interface Clock {
  answered(): void;
  heard(): void;
  expired(): string | undefined;
}

/**
 * Limits for connecting, the first byte, silence and the whole. There is one timer for all of them: it
 * is set to the earliest time at which a limit could be reached, and checks again when it fires,
 * because setting one for each piece of each answer is expensive.
 */
function watch(
  outgoing: ClientRequest,
  limits: TimeLimits,
  signal: AbortSignal,
  reject: (error: Error) => void,
): Clock {
  const { connectMs, firstByteMs, silenceMs, totalMs } = limits;
  const soonest = Math.min(connectMs, firstByteMs, silenceMs, totalMs);
  const end = now() + totalMs;
  let expired: string | undefined;
  let until = now() + connectMs;
  let reason = `no connection within ${connectMs} ms`;
  const look = () => {
    const left = Math.min(until, end) - now();
    if (left > 0) return (timer = setTimeout(look, Math.min(left, soonest)));
    expired = until < end ? reason : `the answer took longer than ${totalMs} ms`;
    return outgoing.destroy(new TransportError("timeout", expired));
  };
  let timer = setTimeout(look, soonest);
  const waitForFirstByte = () => {
    until = now() + firstByteMs;
    reason = `no answer within ${firstByteMs} ms`;
  };
  const onAbort = () => {
    const error = new TransportError("aborted", "the request was interrupted");
    outgoing.destroy(error);
    reject(error);
  };
  if (signal.aborted) queueMicrotask(onAbort);
  else signal.addEventListener("abort", onAbort, { once: true });
  outgoing.on("socket", (socket) => {
    if (socket.connecting) socket.once("connect", waitForFirstByte);
    else waitForFirstByte();
  });
  outgoing.on("close", () => {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  });
  const heard = () => {
    until = now() + silenceMs;
  };
  return {
    answered() {
      reason = `the answer stopped: nothing came for ${silenceMs} ms`;
      heard();
    },
    heard,
    expired: () => expired,
  };
}

/** How many pieces may wait for a slow reader before the server is slowed down. */
const maxWaiting = 16;

/** Reads by events, because a stream's own iterator costs as much as reading a short answer. */
async function* readBody(
  incoming: IncomingMessage,
  clock: Clock,
  url: URL,
  signal: AbortSignal,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  const body = unpacked(incoming);
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let over: { readonly error?: unknown } | undefined;
  let wake: (() => void) | undefined;
  const end = (error?: unknown) => {
    over ??= { error };
    wake?.();
  };
  body.on("data", (chunk: Uint8Array) => {
    clock.heard();
    bytes += chunk.length;
    if (bytes > maxBytes) {
      end(new TransportError("too_large", `${url.host} sent more than ${maxBytes} bytes: the answer was ended`));
      return void incoming.destroy();
    }
    if (chunks.push(chunk) === maxWaiting) body.pause();
    wake?.();
  });
  body.on("end", () => end());
  body.on("error", end);
  incoming.on("error", end);
  incoming.on("close", () => {
    // Compressed data may still be on its way through the decompressor.
    const isBroken = over === undefined && (body === incoming || !incoming.complete);
    if (isBroken) end(new TransportError("broken", `the connection to ${url.host} broke`));
  });
  try {
    for (;;) {
      const ready = chunks;
      chunks = [];
      if (body.isPaused()) body.resume();
      // What arrived together is passed on together, because a reader pays for each piece.
      if (ready.length > 0) yield ready.length === 1 ? ready[0]! : Buffer.concat(ready);
      if (chunks.length > 0) continue;
      if (over?.error !== undefined) throw asTransportError(over.error, url, signal, clock.expired());
      if (over !== undefined) return;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    if (over === undefined) letGo(incoming);
  }
}

/** For servers that compress an answer although nobody asked them to. */
function unpacked(incoming: IncomingMessage): Readable {
  const coding = incoming.headers["content-encoding"]?.trim().toLowerCase();
  if (coding === undefined || coding === "" || coding === "identity") return incoming;
  const zlib = process.getBuiltinModule("node:zlib");
  switch (coding) {
    case "gzip":
    case "x-gzip":
    case "deflate":
      return incoming.pipe(zlib.createUnzip({ finishFlush: zlib.constants.Z_SYNC_FLUSH }));
    case "br":
      return incoming.pipe(zlib.createBrotliDecompress());
    default:
      return incoming;
  }
}

/** How long a body that nobody reads any more may take to end. */
const graceMs = 500;

/** The answer is complete but the body is not. If the body ends as well, the connection can serve the next request. */
function letGo(incoming: IncomingMessage): void {
  incoming.removeAllListeners("data");
  incoming.resume();
  const timer = setTimeout(() => incoming.destroy(), graceMs);
  timer.unref();
  incoming.once("close", () => clearTimeout(timer));
}

function asTransportError(error: unknown, url: URL, signal: AbortSignal, expired: string | undefined): TransportError {
  if (signal.aborted) return new TransportError("aborted", "the request was interrupted", error);
  if (expired !== undefined) return new TransportError("timeout", `${url.host}: ${expired}`, error);
  if (error instanceof TransportError) return error;
  const code = errorCode(error) ?? "";
  const connect = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"].includes(code);
  return connect
    ? new TransportError("connect", `cannot reach ${url.host} (${code})`, error)
    : new TransportError("broken", `the connection to ${url.host} broke (${code || String(error)})`, error);
}

/** A whole body as text, cut off at this many bytes. */
export async function readText(answer: HttpAnswer, longest: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of answer.body) {
    chunks.push(chunk);
    if ((length += chunk.length) > longest) break;
  }
  return Buffer.concat(chunks).toString("utf8").slice(0, longest);
}
