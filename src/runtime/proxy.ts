/**
 * The one way out for a command whose network is a list of hosts: an HTTP proxy of its own (CONNECT
 * and plain requests), so that every request belongs to a call. It checks hosts and ports, and does
 * not look into what is sent.
 */
import { createServer, request as httpRequest, STATUS_CODES } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { pipeline, type Duplex } from "node:stream";
import { CallError } from "../base/error.ts";
import type { Denial } from "../spec/access.ts";
import { createDoor, isRefusal } from "./proxy/door.ts";
import type { Address, DoorOptions } from "./proxy/door.ts";

export interface ProxyOptions extends DoorOptions {
  /** Called for every request, allowed or not. */
  readonly onRequest?: (request: ProxiedRequest) => void;
  readonly connectTimeoutMs?: number;
  /** If given, clients must send it as the password. */
  readonly token?: string;
}

/** A request that a confined command made through our proxy. */
export interface ProxiedRequest {
  readonly host: string;
  readonly port: number;
  readonly method: string;
  readonly allowed: boolean;
  readonly reason?: string;
}

export interface Proxy {
  readonly server: Server;
  /** The first host that was refused, as the call's denial. */
  refused(): Denial | undefined;
  close(): Promise<void>;
}

export function createProxy(options: ProxyOptions): Proxy {
  const door = createDoor(options);
  const open = new Set<Duplex>();
  let denial: Denial | undefined;

  const track = <T extends Duplex>(stream: T): T => {
    open.add(stream);
    stream.once("close", () => open.delete(stream));
    stream.on("error", () => stream.destroy());
    return stream;
  };

  /** Asks the door whether the host may be reached, and keeps the log. */
  async function admit(host: string, port: number, method: string): Promise<readonly Address[] | CallError> {
    try {
      const addresses = await door.open(host, port);
      options.onRequest?.({ host, port, method, allowed: true });
      return addresses;
    } catch (error) {
      if (!CallError.is(error)) throw error;
      if (isRefusal(error)) denial ??= { what: "network", target: `${host}:${port}`, reason: error.message };
      options.onRequest?.({ host, port, method, allowed: false, reason: error.message });
      return error;
    }
  }

  const isKnown = ({ headers }: IncomingMessage) =>
    options.token === undefined || headers["proxy-authorization"] === `Basic ${btoa(`callgate:${options.token}`)}`;

  async function tunnel(request: IncomingMessage, client: Socket, head: Buffer): Promise<void> {
    if (!isKnown(request)) return void client.end(answer(stranger));
    const target = parseAuthority(request.url ?? "");
    if (target === undefined) return void client.end(answer(badRequest));
    const admitted = await admit(target.host, target.port, "CONNECT");
    if (CallError.is(admitted)) return void client.end(answer(admitted));
    const upstream = await dial(admitted, target.port, options.connectTimeoutMs);
    if (upstream === undefined) return void client.end(answer(unreachable(target.host)));
    track(upstream);
    client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
    upstream.write(head);
    join(client, upstream);
    join(upstream, client);
  }

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isKnown(request)) return void reply(response, stranger);
    const url = parseAbsolute(request.url ?? "");
    if (url === undefined) return void reply(response, badRequest);
    const port = url.port === "" ? 80 : Number(url.port);
    const admitted = await admit(url.hostname, port, request.method ?? "GET");
    if (CallError.is(admitted)) return void reply(response, admitted);
    const upstream = await dial(admitted, port, options.connectTimeoutMs);
    if (upstream === undefined) return void reply(response, unreachable(url.hostname));
    track(upstream);
    const onward = httpRequest({
      createConnection: () => upstream,
      method: request.method,
      path: url.pathname + url.search,
      // The host that was checked, whatever the client wrote into its own header.
      headers: { ...withoutHopByHop(request.headers), host: url.host, connection: "close" },
    });
    onward.once("response", (from) => {
      response.writeHead(from.statusCode ?? 502, withoutHopByHop(from.headers));
      join(from, response);
    });
    onward.once("error", () => response.destroy());
    // A client that hangs up while it waits for an answer.
    response.once("close", () => onward.destroy());
    join(request, onward);
  }

  const server = createServer((request, response) => void forward(request, response).catch(() => response.destroy()));
  server.on("connection", track);
  server.on(
    "connect",
    (request: IncomingMessage, socket: Socket, head: Buffer) =>
      void tunnel(request, socket, head).catch(() => socket.destroy()),
  );
  return {
    server,
    refused: () => denial,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const stream of open) stream.destroy();
      }),
  };
}

/** If one side disappears, the other is closed too, because it would otherwise wait for ever. */
function join(from: NodeJS.ReadableStream, to: NodeJS.WritableStream): void {
  pipeline(from, to, () => {}); // both sides are destroyed, so there is nothing more to report
}

const badRequest = new CallError("network", "not a request this proxy understands");

const stranger = new CallError("network", "this proxy belongs to another command");

function unreachable(host: string): CallError {
  return new CallError("network", `${host} does not answer`);
}

function reply(response: ServerResponse, error: CallError): void {
  response
    .writeHead(statusOf(error), { "content-type": "text/plain", connection: "close" })
    .end(`callgate: ${error.message}\n`);
}

function answer(error: CallError): string {
  const body = `callgate: ${error.message}\n`;
  const status = statusOf(error);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\ncontent-type: text/plain\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`;
}

function statusOf(error: CallError): number {
  if (error === stranger) return 407;
  if (error === badRequest) return 400;
  return isRefusal(error) ? 403 : 502;
}

function parseAuthority(text: string): { readonly host: string; readonly port: number } | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]/\s@]+):(\d{1,5})$/i.exec(text);
  const port = Number(match?.[2]);
  return match?.[1] === undefined || port < 1 || port > 65535 ? undefined : { host: match[1], port };
}

function parseAbsolute(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url?.protocol === "http:" && url.username === "" ? url : undefined;
}

const hopByHop = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

function withoutHopByHop(headers: IncomingMessage["headers"]): IncomingMessage["headers"] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name)));
}

/** Connects to the first address that answers. */
async function dial(addresses: readonly Address[], port: number, timeoutMs = 15_000): Promise<Socket | undefined> {
  for (const { address } of addresses) {
    const socket = await attempt(address, port, timeoutMs);
    if (socket !== undefined) return socket;
  }
  return undefined;
}

function attempt(host: string, port: number, timeoutMs: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs });
    const fail = () => {
      socket.destroy();
      resolve(undefined);
    };
    socket.once("error", fail).once("timeout", fail);
    socket.once("connect", () => {
      socket.off("error", fail).off("timeout", fail);
      socket.setTimeout(0);
      resolve(socket);
    });
  });
}
