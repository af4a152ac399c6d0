/**
 * Streamable HTTP on loopback, for clients of both protocol versions. Nobody without the token, and no
 * web page, gets in.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
  toWebRequest,
} from "@modelcontextprotocol/node";
import {
  CLIENT_INFO_META_KEY,
  createMcpHandler,
  isLegacyRequest,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { isObject, parseJson } from "../../base/json.ts";
import { readBody, TooLarge, Unreadable } from "../../http/read-body.ts";
import { listen, urlOf } from "../../http/server.ts";
import type { Conversation, Engine } from "../../index.ts";
import { createHttpSessions } from "./http-sessions.ts";
import type { ServedResources } from "./served-resources.ts";
import type { ServeOptions, Serving } from "./serve-options.ts";
import { createMcpServer, type McpServerOptions } from "./server.ts";

const maxBodyBytes = 16 * 1024 * 1024;

export async function serveOverHttp(options: ServeOptions, served: McpServerOptions, port: number): Promise<Serving> {
  const token = options.token ?? randomBytes(24).toString("base64url");
  const sessions = createHttpSessions({ ...options.sessions, open: () => createMcpServer(served) });
  const followed = new Set<ServedResources>();
  const clients = createStatelessClients(options.engine, (conversation) => {
    const resources = served.resources?.(conversation);
    if (resources === undefined || followed.has(resources)) return; // all clients may read the same ones
    followed.add(resources);
    endings.push(resources.onChange?.(() => modern.notify.resourcesChanged()));
    endings.push(resources.onUpdate?.((uri) => modern.notify.resourceUpdated(uri)));
  });
  // Here every request has its own server object, so only the handler knows who listens for changes.
  const modern = createMcpHandler(() => createMcpServer({ ...served, conversation: clients.find, follows: false }), {
    legacy: "reject",
  });
  const endings = [
    options.engine.registry.onChange(() => modern.notify.toolsChanged()),
    options.prompts?.onChange(() => modern.notify.promptsChanged()),
  ];
  const answerModern = toNodeHandler(modern);

  const server = createServer((request, response) => {
    const refuse = (status: number, message: string) => refuseWith(response, status, message);
    if (!isAllowed(request, response, token)) return;
    answer(request, response).catch(() => refuse(500, "the request could not be answered"));
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refuse = (status: number, message: string) => refuseWith(response, status, message);
    const body = request.method === "POST" ? await readJson(request) : { value: undefined };
    if ("status" in body) return refuse(body.status, body.message);
    // Node leaves optional fields undefined where the adapters' type wants them absent.
    const plain = request as Parameters<typeof answerModern>[0];
    if (await isLegacyRequest(await toWebRequest(plain, body.value), body.value))
      return sessions.serve(request, response, body.value, refuse);
    await answerModern(plain, response, body.value);
  }

  await listen(server, port, "127.0.0.1");
  const url = `${urlOf(server, "127.0.0.1")}/mcp`;
  options.tell(`callgate: MCP server at ${url}`);
  options.tell(`callgate: token ${token}`);
  const closed = new Promise<void>((resolve) => server.once("close", resolve));
  return {
    url,
    token,
    closed,
    async close() {
      for (const end of endings) end?.();
      server.close();
      await Promise.all([sessions.close(), modern.close(), clients.close()]);
      server.closeAllConnections();
      await closed;
    },
  };
}

interface StatelessClients {
  find(request: ServerContext | undefined): Conversation;
  close(): Promise<void>;
}

/** How many programs are told apart by the name they give. The least recently used goes first. */
const maxStatelessClients = 64;

/**
 * The newer protocol has no sessions: each request states which program makes it. Requests of one
 * program belong to one conversation, so that it finds what it left running.
 */
function createStatelessClients(engine: Engine, opened: (conversation: Conversation) => void): StatelessClients {
  const open = new Map<string, Conversation>();
  return {
    find(request) {
      const envelope: Readonly<Record<string, unknown>> = { ...request?.mcpReq.envelope };
      const info = envelope[CLIENT_INFO_META_KEY];
      const key = isObject(info) ? JSON.stringify([info["name"], info["version"]]) : "";
      const known = open.get(key);
      const conversation = known ?? engine.conversation();
      if (!known) opened(conversation);
      open.delete(key);
      open.set(key, conversation); // the order of the map is the order of last use
      for (const [oldest, { close }] of open) {
        if (open.size <= maxStatelessClients) break;
        open.delete(oldest);
        void close();
      }
      return conversation;
    },
    async close() {
      await Promise.all([...open.values()].map(({ close }) => close()));
    },
  };
}

const isLocalHost = localhostHostValidation();
const isLocalOrigin = localhostOriginValidation();

/** False if the request was answered with a refusal. */
function isAllowed(request: IncomingMessage, response: ServerResponse, token: string): boolean {
  if (!isLocalHost(request, response) || !isLocalOrigin(request, response)) return false;
  if (!isOwnOrigin(request)) {
    refuseWith(response, 403, "a page of another port may not ask here");
    return false;
  }
  if ((request.url ?? "").split("?")[0] !== "/mcp") {
    refuseWith(response, 404, "the server is at /mcp");
    return false;
  }
  if (!hasToken(request, token)) {
    refuseWith(response, 401, "a bearer token is needed: it is on the server's stderr");
    return false;
  }
  return true;
}

/** A page on this machine that belongs to another server is a stranger too. */
function isOwnOrigin({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return true;
  // Both are names of this machine. The port distinguishes servers, here or behind a proxy.
  const called = `http://${host ?? ""}`;
  return URL.canParse(origin) && URL.canParse(called) && new URL(origin).port === new URL(called).port;
}

function hasToken(request: IncomingMessage, token: string): boolean {
  const given = Buffer.from((request.headers.authorization ?? "").replace(/^Bearer /i, ""));
  const wanted = Buffer.from(token);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

async function readJson(
  request: IncomingMessage,
): Promise<{ readonly value: unknown } | { readonly status: number; readonly message: string }> {
  try {
    const bytes = await readBody(request, maxBodyBytes);
    const body = parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
    return body.ok ? { value: body.value } : { status: 400, message: "the body is not JSON" };
  } catch (error) {
    if (error instanceof TooLarge) return { status: 413, message: `a request has at most ${maxBodyBytes} bytes` };
    if (error instanceof Unreadable) return { status: error.status, message: error.message };
    throw error;
  }
}

function refuseWith(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) return void response.end();
  response.writeHead(status, {
    "content-type": "application/json",
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  });
  const code = status === 400 ? -32700 : -32000;
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } }));
}
