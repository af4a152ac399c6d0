/** What our HTTP servers share: listening, their address, and who may call a listener on loopback. */
import type { IncomingMessage, Server } from "node:http";

const loopbackName = /^(?:127\.\d+\.\d+\.\d+|localhost|\[?::1\]?)$/;

export function isLoopback(host: string): boolean {
  return loopbackName.test(host);
}

/** The name in a `Host` header, without its port. */
export function hostName(header: string | undefined): string {
  return (header ?? "").replace(/:\d+$/, "");
}

export function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
}

export function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The address that a request names. Undefined if it names none: anybody may send `//`. */
export function requestUrl(request: IncomingMessage): URL | undefined {
  const [given, base] = [request.url ?? "/", "http://server"];
  return URL.canParse(given, base) ? new URL(given, base) : undefined;
}
