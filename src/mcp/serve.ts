/** Serving an engine: stdio for a client that starts us, streamable HTTP on loopback for those that do not. */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { AnyTool, Engine } from "../index.ts";
import { createMcpServer } from "./server.ts";

export interface ServeOptions {
  readonly engine: Engine;
  readonly shows?: (tool: AnyTool) => boolean;
  /** Left out: stdio. */
  readonly port?: number;
  /** Left out: a new one, told through `tell`. */
  readonly token?: string;
  readonly version: string;
  /** For lines to the operator; never stdout, which belongs to the protocol. */
  readonly tell: (line: string) => void;
}

export interface Serving {
  readonly url?: string;
  /** Resolves when the client has gone or `close` was called. */
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

export async function serveMcp(options: ServeOptions): Promise<Serving> {
  return options.port === undefined ? serveOverStdio(options) : serveOverHttp(options, options.port);
}

function serveOverStdio(options: ServeOptions): Serving {
  const handle = serveStdio(() => createMcpServer(options));
  const closed = new Promise<void>((resolve) => {
    process.stdin.once("end", resolve);
    process.stdin.once("close", resolve);
    process.once("SIGTERM", resolve);
    process.once("SIGINT", resolve);
  });
  return { closed, close: () => handle.close() };
}

async function serveOverHttp(options: ServeOptions, port: number): Promise<Serving> {
  const token = options.token ?? randomBytes(24).toString("base64url");
  const isLocalHost = localhostHostValidation();
  const isLocalOrigin = localhostOriginValidation();
  const handle = toNodeHandler(createMcpHandler(() => createMcpServer(options)));
  const server = createServer((request, response) => {
    if (!isLocalHost(request, response) || !isLocalOrigin(request, response)) return;
    if ((request.url ?? "").split("?")[0] !== "/mcp") return refuse(response, 404, "the server is at /mcp");
    if (!hasToken(request, token))
      return refuse(response, 401, "a bearer token is needed: it is on the server's stderr");
    // Node leaves optional fields undefined where the adapter's type wants them absent.
    void handle(request as Parameters<typeof handle>[0], response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : port}/mcp`;
  options.tell(`callgate: MCP server at ${url}`);
  options.tell(`callgate: token ${token}`);
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const closed = new Promise<void>((resolve) => {
    server.once("close", resolve);
    process.once("SIGTERM", () => void close());
    process.once("SIGINT", () => void close());
  });
  return { url, closed, close };
}

function hasToken(request: IncomingMessage, token: string): boolean {
  const given = Buffer.from((request.headers.authorization ?? "").replace(/^Bearer /i, ""));
  const wanted = Buffer.from(token);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, {
    "content-type": "application/json",
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
  });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message } }));
}
