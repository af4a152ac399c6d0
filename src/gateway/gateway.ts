/**
 * `callgate gateway`: one local server that speaks every wire to whatever client comes, and asks whatever model is
 * configured. This file is the door: who may come in, what is read, and which endpoint answers.
 */
import { checkOptions } from "../base/shape.ts";
import { gatewayShape, type GatewayOptions } from "./options.ts";
import { createHmac, randomBytes } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { defined, isObject } from "../base/json.ts";
import type { ModelExchange } from "../result/telemetry.ts";
import { createTransport } from "../model/transport.ts";
import { RequestError } from "../wire/index.ts";
import { createBudget } from "./budget.ts";
import { createConversations } from "./conversations.ts";
import { findEndpoint, guessWire, type Endpoint } from "./endpoints.ts";
import { exchange } from "./exchange.ts";
import type { RequestRecord, Services } from "./turn.ts";
import { createGatewayJournal } from "./journal.ts";
import { findKey } from "./keys.ts";
import { createMetrics, type GatewayMetrics } from "./metrics.ts";
import { bodyFor, checkQuestion, failWith, isTheirs, readJson, type Refused } from "./read-request.ts";
import { answerModels, countTokens, toCompaction } from "./side-endpoints.ts";
import { hostName, isLoopback, listen, requestUrl, urlOf } from "../http/server.ts";
import { writeJson } from "./reply.ts";
import { createSecrets } from "./secrets.ts";
import { createStateStore, fieldOf, stateOf } from "./state.ts";
import { createToolCache } from "./tool-cache.ts";
import { createConversation, refusal } from "./stored-responses.ts";
import { createUpstreams } from "./upstreams.ts";

/** A gateway that listens. */
export interface Gateway {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly metrics: GatewayMetrics;
  /** Takes nothing new and ends when running answers have ended; a second call ends at once. */
  close(): Promise<void>;
}

/** Starts a server that speaks Responses, Chat Completions, Messages and Gemini, and asks the models you configured. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  checkOptions("startGateway", options, gatewayShape);
  const { now = Date.now, host = "127.0.0.1", stateDir } = options;
  const secret = options.secret ?? randomBytes(32).toString("hex");
  const state = createStateStore(stateDir === undefined ? {} : { file: `${stateDir}/gateway/state.jsonl` });
  const upstreams = createUpstreams({
    routes: options.routes,
    now,
    ...(options.env === undefined ? {} : { env: options.env }),
  });
  const secrets = createSecrets(options.secrets ?? [], secret);
  const journal =
    stateDir === undefined || options.journal === false ? undefined : createGatewayJournal({ stateDir, state, now });
  const metrics = createMetrics();
  const services: Services = {
    upstreams,
    state,
    conversations: createConversations(state),
    budget: createBudget({
      ...options.budget,
      onError: options.onError,
      ...(stateDir === undefined ? {} : { file: `${stateDir}/gateway/usage.json` }),
    }),
    sign: (text) => createHmac("sha256", secret).update(text).digest("base64url").slice(0, 22),
    transport: createTransport(),
    tools: createToolCache(),
    keepAliveMs: options.keepAliveMs ?? 15_000,
    now,
    ...(secrets === undefined ? {} : { secrets }),
    ...(journal === undefined ? {} : { journal }),
    ...(options.judge === undefined ? {} : { governance: { judge: options.judge, enforce: options.enforce === true } }),
    ...(options.search === undefined ? {} : { search: options.search }),
  };
  const door = createDoor(options);

  const { createServer } = process.getBuiltinModule("node:http");
  let closing: Promise<void> | undefined;
  const server: Server = createServer((request, response) => {
    // While closing, a connection goes with its last answer instead of waiting for another request.
    response.on("close", () => closing && setImmediate(() => server.closeIdleConnections()));
    // A socket that breaks is the client's business: the answer is ended by its close event.
    response.on("error", () => undefined);
    serve(request, response, { door, services, metrics, options }).catch((error: unknown) => {
      options.onError?.(error);
      failWith(response, "chat", error);
    });
  });
  // Codex asks for a WebSocket first and goes on over HTTP when it is told that there is none.
  server.on("upgrade", (_request, socket) =>
    socket.end("HTTP/1.1 426 Upgrade Required\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"),
  );
  server.headersTimeout = 30_000;
  server.requestTimeout = 120_000;
  // Longer than clients keep a connection for their next request: one that is closed just then would fail it.
  server.keepAliveTimeout = 75_000;
  server.maxConnections = 1024;
  await listen(server, options.port ?? 0, host);

  return {
    url: urlOf(server, host),
    metrics,
    close() {
      if (closing !== undefined) {
        server.closeAllConnections();
        return closing;
      }
      closing = new Promise<void>((resolve) => server.close(() => resolve())).then(() => {
        upstreams.close();
        services.transport.close();
        journal?.close();
        services.budget.close();
      });
      server.closeIdleConnections();
      return closing;
    },
  };
}

interface Serving {
  readonly door: Door;
  readonly services: Services;
  readonly metrics: GatewayMetrics;
  readonly options: GatewayOptions;
}

async function serve(request: IncomingMessage, response: ServerResponse, serving: Serving): Promise<void> {
  const url = requestUrl(request);
  if (url === undefined) {
    const refused = { status: 400, message: "This is no address." };
    return failWith(response, "chat", new RequestError(400, refused.message, bodyFor("chat", refused)));
  }
  const endpoint = findEndpoint(request.method ?? "GET", url.pathname, request.headers);
  const wire = endpoint?.wire ?? guessWire(url.pathname, request.headers);
  const entry = serving.door(request, url);
  if ("status" in entry)
    return failWith(response, wire, new RequestError(entry.status, entry.message, bodyFor(wire, entry)));
  if (endpoint === undefined) {
    const message = `There is nothing at ${request.method} ${url.pathname}.`;
    return failWith(response, wire, new RequestError(404, message, bodyFor(wire, { status: 404, message })));
  }
  try {
    await answerEndpoint(endpoint, request, response, { ...serving, key: entry.key, query: url.search });
  } catch (error) {
    failWith(response, wire, error);
    if (!isTheirs(error)) serving.options.onError?.(error);
  }
}

async function answerEndpoint(
  endpoint: Endpoint,
  request: IncomingMessage,
  response: ServerResponse,
  { services, metrics, options, key, query }: Serving & { readonly key: string; readonly query: string },
): Promise<void> {
  const state = stateOf(services.state, key);
  switch (endpoint.kind) {
    case "health":
      return writeJson(response, 200, { ok: true });
    case "metrics": {
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4" });
      response.end(metrics.text());
      return;
    }
    case "models":
      return answerModels(endpoint, services.upstreams.models(), response);
    case "response": {
      const stored = state.get(`response ${endpoint.id}`);
      const whole = fieldOf(stored, "response");
      if (!isObject(whole)) throw refusal(404, "response_not_found", `Response with id '${endpoint.id}' not found.`);
      if (!endpoint.remove) return writeJson(response, 200, whole);
      state.delete(`response ${endpoint.id}`);
      return writeJson(response, 200, { id: endpoint.id, object: "response", deleted: true });
    }
    default:
  }
  const { bytes, body } = await readJson(request, endpoint.wire, options.maxBodyBytes ?? 64 * 1024 * 1024);
  if (endpoint.kind === "conversation")
    return writeJson(response, 200, createConversation(body, state, services.now()));
  if (endpoint.kind === "count") return countTokens(endpoint.wire, body, response);
  checkQuestion(endpoint.wire, body);
  const { wire, model, stream } =
    endpoint.kind === "ask" ? endpoint : { wire: endpoint.wire, model: undefined, stream: undefined };
  const asked = {
    wire,
    bytes,
    body,
    headers: request.headers,
    query,
    key,
    ...(model === undefined ? {} : { model }),
    ...(stream === undefined ? {} : { stream }),
  };
  const record = await exchange(endpoint.kind === "compact" ? toCompaction(asked) : asked, services, response);
  metrics.count(record);
  options.telemetry?.exchanged(toExchange(record, request.headers, services.now()));
  options.onRequest?.(record);
}

function toExchange(record: RequestRecord, headers: IncomingMessage["headers"], now: number): ModelExchange {
  const { model, conversation, inputTokens, outputTokens, costUsd, client, wire, target } = record;
  const isFailed = record.outcome === "error" || record.outcome === "truncated";
  return {
    model,
    conversation,
    startedAt: now - record.durationMs,
    endedAt: now,
    headers,
    attributes: {
      "gen_ai.response.model": target.split(" ").at(-1) ?? target,
      "gen_ai.provider.name": target.split(" ")[0] ?? target,
      "callgate.client": client,
      "callgate.wire": wire,
      "callgate.refused_calls": record.refused.length,
      "http.response.status_code": record.status,
    },
    ...(inputTokens === undefined ? {} : { usage: { input: inputTokens, output: outputTokens ?? 0 } }),
    ...defined({ costUsd, error: isFailed ? record.outcome : undefined }),
  };
}

type Door = (request: IncomingMessage, url: URL) => Refused | { readonly key: string };

/** A listener on loopback can be reached from every web page: the name it was called by and the page's origin are looked at. */
function createDoor({ keys, origins = [], host = "127.0.0.1" }: GatewayOptions): Door {
  const onLoopback = isLoopback(host);
  return (request, url) => {
    const named = hostName(request.headers.host);
    if (onLoopback && !isLoopback(named)) return { status: 403, message: `This gateway is not called '${named}'.` };
    const origin = request.headers.origin;
    if (origin !== undefined && !origins.includes(origin))
      return { status: 403, message: `Pages of ${origin} may not ask here.` };
    if (keys === "none") return { key: "anyone" };
    if (url.pathname === "/healthz" || url.pathname === "/api/hello") return { key: "anyone" };
    const given = keyOf(request, url);
    const name = given === undefined ? undefined : findKey(typeof keys === "function" ? keys() : keys, given);
    return name === undefined
      ? {
          status: 401,
          message: "This gateway wants its own key: it was printed at the start, or see 'callgate gateway key'.",
        }
      : { key: name };
  };
}

/** Each SDK sends its key in its own way. */
function keyOf(request: IncomingMessage, url: URL): string | undefined {
  const one = (name: string) => {
    const value = request.headers[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const bearer = /^Bearer\s+(.+)$/i.exec(one("authorization") ?? "")?.[1];
  return bearer ?? one("x-api-key") ?? one("x-goog-api-key") ?? url.searchParams.get("key") ?? undefined;
}
