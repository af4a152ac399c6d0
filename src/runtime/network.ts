/**
 * `fetch` as a handler gets it: only to the granted hosts, never to a private address unless that was
 * granted, and with the same check for every redirect. Each name is looked up once, and the connection
 * uses the addresses that were checked.
 */
import { request as httpRequest } from "node:http";
import type { IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { LookupFunction } from "node:net";
import { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { CallError } from "../base/error.ts";
import { anySignal } from "../base/signal.ts";
import type { Fetch } from "../spec/capability.ts";
import { createDoor } from "./proxy/door.ts";
import type { Address, Door, DoorOptions } from "./proxy/door.ts";

export interface FetchOptions extends DoorOptions {
  readonly signal?: AbortSignal;
  /** Sent with requests that change something, so that a service can recognise a repeated one. */
  readonly idempotencyKey?: string;
}

const maxRedirects = 10;

export function createFetch(options: FetchOptions): Fetch {
  const door = createDoor(options);
  let changes = 0;
  return async (input, init = {}) => {
    const signals = [options.signal, init.signal].filter((signal) => signal instanceof AbortSignal);
    // A Request's own signal stops working once the Request has been garbage-collected, so it is not used.
    const signal = anySignal(signals);
    const first = new Request(input, { ...init, signal: null });
    const key = options.idempotencyKey;
    if (key !== undefined && !/^(?:GET|HEAD|OPTIONS)$/.test(first.method) && !first.headers.has("idempotency-key"))
      first.headers.set("idempotency-key", ++changes === 1 ? key : `${key}/${changes}`);
    const body = first.body === null ? undefined : Buffer.from(await first.arrayBuffer());
    return follow(
      door,
      { url: new URL(first.url), method: first.method, headers: first.headers, body, signal },
      init.redirect,
    );
  };
}

interface Step {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal;
}

async function follow(door: Door, first: Step, redirect: RequestInit["redirect"] = "follow"): Promise<Response> {
  let step = first;
  for (let count = 0; count <= maxRedirects; count++) {
    const message = await send(door, step);
    const next = redirect === "manual" ? undefined : redirectTarget(message, step.url);
    if (next === undefined) return toResponse(message, step);
    message.resume();
    if (redirect === "error")
      throw new CallError("network", `${step.url.host} redirects to ${next.href}, which was not asked for`);
    step = redirected(step, next, message.statusCode ?? 0);
  }
  throw new CallError("network", `${first.url.host} redirects more than ${maxRedirects} times`);
}

function redirectTarget({ statusCode = 0, headers }: IncomingMessage, from: URL): URL | undefined {
  const { location } = headers;
  if (![301, 302, 303, 307, 308].includes(statusCode) || location === undefined) return undefined;
  return URL.canParse(location, from.href) ? new URL(location, from) : undefined;
}

/** Follows the fetch standard: some redirects become GET, and another origin gets no credentials. */
function redirected(step: Step, url: URL, status: number): Step {
  const becomesGet =
    status === 303 ? step.method !== "HEAD" : (status === 301 || status === 302) && step.method === "POST";
  const headers = new Headers(step.headers);
  const dropped = [
    ...(becomesGet ? ["content-length", "content-type", "content-encoding"] : []),
    ...(url.origin === step.url.origin ? [] : ["authorization", "cookie", "proxy-authorization", "host"]),
  ];
  for (const name of dropped) headers.delete(name);
  return { ...step, url, headers, ...(becomesGet ? { method: "GET", body: undefined } : {}) };
}

async function send(door: Door, { url, method, headers, body, signal }: Step): Promise<IncomingMessage> {
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new CallError("network", `only http and https, not ${url.protocol}`);
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  const addresses = await door.open(url.hostname, port);
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const outgoing = (secure ? httpsRequest : httpRequest)(url, {
      method,
      headers: requestHeaders(headers, body),
      signal,
      agent: false,
      lookup: fixedLookup(addresses),
    });
    outgoing.once("response", resolve);
    outgoing.once("error", (cause) =>
      reject(signal.aborted ? signal.reason : new CallError("network", `${url.host} could not be reached`, { cause })),
    );
    outgoing.end(body);
  });
}

function requestHeaders(headers: Headers, body: Buffer | undefined): Record<string, string> {
  const all = Object.fromEntries(headers);
  return {
    accept: "*/*",
    "accept-encoding": "gzip, deflate, br",
    "user-agent": "callgate",
    ...all,
    ...(body === undefined ? {} : { "content-length": String(body.length) }),
  };
}

/** Node looks the name up again before it connects, and gets the addresses that were checked. */
function fixedLookup(addresses: readonly Address[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses;
    if (options.all === true) callback(null, [...addresses]);
    else if (first !== undefined) callback(null, first.address, first.family);
  };
}

function toResponse(message: IncomingMessage, { url, method }: Step): Response {
  const status = message.statusCode ?? 502;
  const isEmpty = method === "HEAD" || status === 204 || status === 205 || status === 304;
  const headers = new Headers();
  for (let index = 0; index + 1 < message.rawHeaders.length; index += 2)
    headers.append(message.rawHeaders[index] ?? "", message.rawHeaders[index + 1] ?? "");
  if (isEmpty) message.resume();
  // The stream types of Node and the DOM describe the same object.
  const body = isEmpty ? null : (Readable.toWeb(decoded(message)) as unknown as ReadableStream);
  const response = new Response(body, { status, statusText: message.statusMessage ?? "", headers });
  Object.defineProperty(response, "url", { value: url.href });
  return response;
}

function decoded(message: IncomingMessage): Readable {
  const encoding = message.headers["content-encoding"]?.toLowerCase();
  const decoder =
    encoding === "gzip"
      ? createGunzip()
      : encoding === "br"
        ? createBrotliDecompress()
        : encoding === "deflate"
          ? createInflate()
          : undefined;
  if (decoder === undefined) return message;
  message.once("error", (error) => decoder.destroy(error));
  return message.pipe(decoder);
}
