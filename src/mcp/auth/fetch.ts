/**
 * Requests of a login. Where they go is said by documents that the server names, so where they may go is
 * decided here: a server on the internet cannot have us ask around in our own network.
 */
import { lookup } from "node:dns/promises";
import type { FetchLike } from "@modelcontextprotocol/client";
import { isPrivateAddress } from "../../runtime/proxy/hosts.ts";
import { limitedFetch } from "../client/limited-fetch.ts";

const maxRedirects = 5;

export function createAuthFetch(serverUrl: string): FetchLike {
  const server = new URL(serverUrl);
  let fromInside: Promise<boolean> | undefined;
  const check = async (url: URL) => {
    if (url.origin === server.origin) return;
    fromInside ??= isInside(server);
    if (await fromInside) return checkScheme(url, ["https:", "http:"]);
    checkScheme(url, ["https:"]);
    if (await isInside(url)) throw new Error(`${server.host} sends the login to ${url.host}, inside our own network`);
  };
  return async (input, init) => {
    let url = new URL(input);
    for (let count = 0; count <= maxRedirects; count++) {
      await check(url);
      const response = await limitedFetch(url, { ...init, redirect: "manual" });
      const to = response.headers.get("location");
      // What is posted is secret: it goes where it was sent, and nowhere else.
      const follows =
        to !== null && response.status >= 300 && response.status < 400 && (init?.method ?? "GET") === "GET";
      if (!follows) return response;
      await response.body?.cancel();
      url = new URL(to, url);
    }
    throw new Error(`${server.host} redirects the login more than ${maxRedirects} times`);
  };
}

function checkScheme(url: URL, schemes: readonly string[]): void {
  if (!schemes.includes(url.protocol)) throw new Error(`${url.href.slice(0, 200)} is no address for a login`);
}

async function isInside({ hostname }: URL): Promise<boolean> {
  const found = await lookup(hostname.replace(/^\[|\]$/g, ""), { all: true }).catch(() => []);
  return found.some(({ address }) => isPrivateAddress(address));
}
