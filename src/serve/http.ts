/**
 * The service over HTTP. This file decides what a request must look like, who it comes from and what it may
 * do, and writes answers and refusals.
 */
import { checkOptions } from "../base/shape.ts";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { isObject, parseJson, type JsonObject } from "../base/json.ts";
import { readBody } from "../http/read-body.ts";
import { hostName, isLoopback, listen, requestUrl, urlOf } from "../http/server.ts";
import { toSchema } from "../schema/schema.ts";
import { createEntrance, type Entrance, readBearer, readCookie } from "./entrance.ts";
import { answerPage } from "./page.ts";
import { Problem, toProblem } from "./problem.ts";
import { toOpenApi } from "./openapi.ts";
import { serveShape, type ServeOptions } from "./serve-options.ts";
import type { Reply } from "./api-request.ts";
import { findRoute, type Match } from "./routes.ts";
import type { Service } from "./service.ts";
import { hashToken, type Principal } from "./tenants.ts";

/** A service that listens. */
export interface Serving {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** An address that lets one browser in, once. */
  link(principal: Principal): string;
  /** Accepts nothing new, lets running turns finish their calls, and ends. */
  close(): Promise<void>;
}

interface Door extends ServeOptions {
  readonly entrance: Entrance;
  readonly openApi: JsonObject;
}

/** Puts a service behind an HTTP API and its page. */
export async function startServing(options: ServeOptions): Promise<Serving> {
  checkOptions("startServing", options, serveShape);
  const { service, host = "127.0.0.1" } = options;
  const door: Door = { ...options, entrance: createEntrance(service), openApi: toOpenApi(service.version) };
  let closing: Promise<void> | undefined;
  const server = createServer((request, response) => {
    const startedAt = performance.now();
    const seen = { route: "other" };
    response.on("close", () => {
      service.metrics.request(seen.route, response.statusCode, performance.now() - startedAt);
      if (closing !== undefined) setImmediate(() => server.closeIdleConnections());
    });
    response.on("error", () => undefined); // a broken socket only concerns its client
    answer(request, response, door, seen).catch((error: unknown) => fail(response, error, seen.route, options));
  });
  server.headersTimeout = 20_000;
  server.requestTimeout = 60_000;
  server.keepAliveTimeout = 15_000;
  server.maxConnections = 4096;
  server.maxHeadersCount = 100;
  await listen(server, options.port ?? 0, host);
  const url = urlOf(server, host);
  return {
    url,
    link: (principal) => `${url}/?link=${door.entrance.createCode(principal)}`,
    close() {
      closing ??= (async () => {
        const closed = new Promise<void>((resolve) => server.close(() => resolve()));
        await service.stop();
        server.closeIdleConnections();
        // Answers that are being written get a moment to finish. Connections that are only kept open are
        // closed at once.
        const forced = setTimeout(() => server.closeAllConnections(), 500);
        await closed;
        clearTimeout(forced);
      })();
      return closing;
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  door: Door,
  seen: { route: string },
): Promise<void> {
  const { service } = door;
  const url = requestUrl(request);
  if (url === undefined) throw new Problem(400, "invalid", "This is no address.");
  checkDoor(request, door);
  const open = await answerOpen(url, request, response, door);
  if (open) return void (seen.route = open);
  const found = findRoute(request.method ?? "GET", url.pathname);
  if (!("route" in found)) {
    seen.route = url.pathname.startsWith("/v1/") ? "unknown" : "page";
    if (url.pathname.startsWith("/v1/")) return refuseUnknown(found.methods, url.pathname);
    if (request.method !== "GET" && request.method !== "HEAD")
      throw new Problem(405, "method", "Only GET is known here.", undefined, ["GET", "HEAD"]);
    return answerPage(url.pathname, request, response, door.page);
  }
  seen.route = `${found.route.method} ${found.route.path}`;
  const principal = await identify(request, door);
  if (!principal.roles.includes(found.route.role))
    throw new Problem(403, "role", `This token may not do that: it needs the role '${found.route.role}'.`);
  await service.takeRate(principal, "requests");
  if (service.isStopping) throw new Problem(503, "stopping", "The service is stopping: try again in a moment.", 5_000);
  const body = await readInput(request, found, door.maxBodyBytes ?? 32 * 1024 * 1024);
  checkQuery(found, url.searchParams);
  const reply = await found.route.run(
    { principal, params: found.params, query: url.searchParams, body, request, response },
    service.forTenant(principal.tenant),
  );
  write(response, reply);
}

/**
 * Answers what needs no token: health, the description of the API, and the link that lets a browser in.
 * Returns the route's name for the metrics.
 */
async function answerOpen(
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
  door: Door,
): Promise<string | undefined> {
  const { service } = door;
  switch (url.pathname) {
    case "/healthz":
      write(response, { status: 200, json: { ok: true } });
      return "/healthz";
    case "/readyz":
      write(response, { status: service.isStopping ? 503 : 200, json: { ready: !service.isStopping } });
      return "/readyz";
    case "/openapi.json":
      write(response, { status: 200, json: door.openApi });
      return "/openapi.json";
    case "/metrics": {
      const { tenant, roles } = await identify(request, door);
      if (!roles.includes("administer") || tenant !== service.operator)
        throw new Problem(403, "role", "This needs a token of the operator with the role 'administer'.");
      const text = service.metrics.text(await service.store.counts(tenant));
      write(response, { status: 200, text, headers: { "content-type": "text/plain; version=0.0.4" } });
      return "/metrics";
    }
    case "/enter":
      if (request.method !== "POST") throw new Problem(405, "method", "Only POST is known here.", undefined, ["POST"]);
      await identify(request, door);
      write(response, { status: 204, headers: door.entrance.keepToken(request) });
      return "/enter";
    default:
  }
  const code = url.pathname === "/" ? url.searchParams.get("link") : null;
  if (code === null) return undefined;
  await throttle(request, service);
  response.writeHead(303, {
    location: "/",
    "cache-control": "no-store",
    ...(await door.entrance.useCode(code, request)),
  });
  response.end();
  return "link";
}

/**
 * Every web page can send requests to a listener on loopback, so the host name of the request and the
 * origin of the page are checked.
 */
function checkDoor(request: IncomingMessage, { host = "127.0.0.1", names, origins = [] }: Door): void {
  const named = hostName(request.headers.host);
  if (isLoopback(host) ? !isLoopback(named) : names !== undefined && !names.includes(named))
    throw new Problem(403, "host", `This service is not called '${named}'.`);
  const { origin } = request.headers;
  if (origin === undefined || origins.includes(origin)) return;
  const own = request.headers.host;
  if (origin !== `http://${own}` && origin !== `https://${own}`)
    throw new Problem(403, "origin", `Pages of ${origin} may not ask here.`);
}

async function identify(request: IncomingMessage, door: Door): Promise<Principal> {
  const { service } = door;
  const bearer = readBearer(request);
  const cookie = bearer === undefined ? readCookie(request.headers.cookie) : undefined;
  const given = bearer ?? cookie;
  const token = given === undefined ? undefined : await service.tokens.find(hashToken(given));
  if (token === undefined || (token.expiresAt ?? Infinity) <= service.now()) {
    await throttle(request, service);
    throw new Problem(
      401,
      "token",
      "This service wants a token: it was printed at the start, or an administrator makes one.",
    );
  }
  if (cookie !== undefined && request.method !== "GET" && request.method !== "HEAD") {
    // Another site's page can send the cookie with a form, but cannot set this header.
    if (request.headers["x-callgate"] !== "1" || request.headers["sec-fetch-site"] === "cross-site")
      throw new Problem(403, "csrf", "A request by cookie that changes something needs the header 'x-callgate: 1'.");
  }
  const { tenant, name, roles } = token;
  return { tenant, name, roles };
}

/** Limits how often one address may guess a token. Requests with a valid token are not counted. */
async function throttle(request: IncomingMessage, { rates }: Service): Promise<void> {
  const waitMs = await rates.take(`guesses ${request.socket.remoteAddress ?? ""}`, 60);
  if (waitMs > 0) throw new Problem(429, "rate", "Too many requests without a good token.", waitMs);
}

async function readInput(request: IncomingMessage, { route }: Match, maxBytes: number): Promise<JsonObject> {
  if (route.body === undefined) return {};
  const type = request.headers["content-type"] ?? "";
  // A page of another site cannot send this type without a preflight request, which is refused.
  if (!/^application\/json\b/i.test(type)) throw new Problem(415, "type", "Send the body as application/json.");
  const bytes = await readBody(request, maxBytes);
  const parsed = parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  if (!parsed.ok || !isObject(parsed.value)) throw new Problem(400, "json", "The body is not a JSON object.");
  const checked = await toSchema(route.body).validate(parsed.value);
  if (checked.ok) return parsed.value;
  const words = checked.issues.map(({ path, message }) =>
    path === "" ? `The body ${message}` : `${path}: ${message}`,
  );
  throw new Problem(400, "invalid", words.join("; "));
}

function checkQuery({ route }: Match, query: URLSearchParams): void {
  for (const name of query.keys())
    if (!Object.hasOwn(route.query ?? {}, name))
      throw new Problem(400, "invalid", `There is no parameter '${name}' here.`);
  const status = query.get("status");
  const allowed = route.query?.["status"]?.["enum"];
  if (status !== null && status !== "" && Array.isArray(allowed) && !allowed.includes(status))
    throw new Problem(400, "invalid", `'status' is one of ${allowed.join(", ")}.`);
}

function refuseUnknown(methods: readonly string[], path: string): never {
  if (methods.length === 0) throw new Problem(404, "not-found", `There is nothing at ${path}.`);
  throw new Problem(405, "method", `${path} takes ${methods.join(", ")}.`, undefined, methods);
}

function write(response: ServerResponse, reply: Reply): void {
  if (reply === undefined) return;
  const common = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
  if ("text" in reply) {
    response.writeHead(reply.status, { ...common, ...reply.headers });
    response.end(reply.text);
    return;
  }
  const body = reply.json === undefined ? undefined : JSON.stringify(reply.json);
  response.writeHead(reply.status, {
    ...common,
    ...reply.headers,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  });
  response.end(body);
}

function fail(response: ServerResponse, error: unknown, where: string, { onError }: ServeOptions): void {
  const problem = toProblem(error);
  if (problem.status === 500) onError?.(error, where);
  if (response.headersSent) return void response.destroy();
  response.writeHead(problem.status, {
    "content-type": "application/problem+json",
    "cache-control": "no-store",
    ...(problem.status === 401 ? { "www-authenticate": "Bearer" } : {}),
    ...(problem.allow === undefined ? {} : { allow: problem.allow.join(", ") }),
    ...(problem.retryAfterMs === undefined
      ? {}
      : { "retry-after": String(Math.max(1, Math.ceil(problem.retryAfterMs / 1000))) }),
    // The rest of a refused body is not read, so the connection cannot be used again.
    connection: "close",
  });
  response.end(JSON.stringify(problem.toJson()));
}
