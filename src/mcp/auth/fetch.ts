/**
 * Requests of a login. Documents that the server names say where they go, so this file decides where
 * they may go: a server on the internet must not make us send requests inside our own network.
 */
import { lookup } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { isIPv6 } from "node:net";
import { Readable } from "node:stream";
import type { FetchLike } from "@modelcontextprotocol/client";
import { isPrivateAddress } from "../../runtime/proxy/hosts.ts";
import { limitedFetch, limitResponse } from "../client/limited-fetch.ts";

const maxRedirects = 5;

export function createAuthFetch(serverUrl: string): FetchLike {
  const server = new URL(serverUrl);
  let fromInside: Promise<boolean> | undefined;
  /** The address to connect to. Undefined if the name may be looked up on the way. */
  const check = async (url: URL): Promise<string | undefined> => {
    if (url.origin === server.origin) return undefined;
    fromInside ??= addressesOf(server).then((found) => found.some(isPrivateAddress));
    if (await fromInside) return checkScheme(url, ["https:", "http:"]);
    checkScheme(url, ["https:"]);
    const addresses = await addressesOf(url);
    if (addresses.some(isPrivateAddress))
      throw new Error(`${server.host} sends the login to ${url.host}, inside our own network`);
    // The address that was checked is the one that is used, because a name may lead elsewhere a moment later.
    const [address] = addresses;
    if (address === undefined) throw new Error(`${url.host}, where ${server.host} sends the login, is not known`);
    return address;
  };
  return async (input, init) => {
    let url = new URL(input);
    for (let count = 0; count <= maxRedirects; count++) {
      const address = await check(url);
      const response = await (address === undefined
        ? limitedFetch(url, { ...init, redirect: "manual" })
        : pinnedFetch(url, address, { ...init, redirect: "manual" }));
      const to = response.headers.get("location");
      // What is posted is secret, so redirects are not followed.
      const follows =
        to !== null && response.status >= 300 && response.status < 400 && (init?.method ?? "GET") === "GET";
      if (!follows) return response;
      await response.body?.cancel();
      url = new URL(to, url);
    }
    throw new Error(`${server.host} redirects the login more than ${maxRedirects} times`);
  };
}

function checkScheme(url: URL, schemes: readonly string[]): undefined {
  if (!schemes.includes(url.protocol)) throw new Error(`${url.href.slice(0, 200)} is no address for a login`);
}

async function addressesOf({ hostname }: URL): Promise<readonly string[]> {
  const found = await lookup(hostname.replace(/^\[|\]$/g, ""), { all: true }).catch(() => []);
  return found.map(({ address }) => address);
}

/**
 * Connects to an address that was checked before. The name is not looked up again, but the certificate
 * is still checked against it.
 */
async function pinnedFetch(url: URL, address: string, init: RequestInit = {}): Promise<Response> {
  const family = isIPv6(address) ? 6 : 4;
  // The body of a form is a few hundred bytes, and is read at once.
  const given = new Request(url, init);
  const body = Buffer.from(await given.arrayBuffer());
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(
      url,
      {
        method: given.method,
        headers: {
          ...Object.fromEntries(given.headers),
          ...(body.length > 0 ? { "content-length": body.length } : {}),
        },
        lookup: (_name, options, found) =>
          options.all === true ? found(null, [{ address, family }]) : found(null, address, family),
        ...(init.signal == null ? {} : { signal: init.signal }),
      },
      resolve,
    );
    sent.on("error", reject);
    sent.end(body);
  });
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers))
    for (const each of [value ?? []].flat()) headers.append(name, each);
  const status = answer.statusCode ?? 502;
  const isEmpty = given.method === "HEAD" || [101, 204, 205, 304].includes(status);
  // Node's own stream type lacks the name of the web's; they are the same object.
  const stream = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
  if (isEmpty) answer.resume();
  const response = new Response(stream, { status, headers });
  Object.defineProperty(response, "url", { value: url.href });
  return limitResponse(response);
}
