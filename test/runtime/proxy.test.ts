import { request } from "node:http";
import { BlockList, connect } from "node:net";
import type { AddressInfo } from "node:net";
import * as fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { createProxy } from "../../src/runtime/proxy.ts";
import type { ProxiedRequest, ProxyOptions } from "../../src/runtime/proxy.ts";
import { isPrivateAddress, matchesRule, parseHostRule } from "../../src/runtime/proxy/hosts.ts";
import { serve, toLoopback } from "./network-hosts.ts";

async function proxied(options: Partial<ProxyOptions> & Pick<ProxyOptions, "network">) {
  const log: ProxiedRequest[] = [];
  const proxy = createProxy({
    lookup: toLoopback,
    allowPrivate: true,
    onRequest: (entry) => log.push(entry),
    ...options,
  });
  await new Promise<void>((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => proxy.close());
  const { port } = proxy.server.address() as AddressInfo;
  return { proxy, port, log };
}

function get(
  proxyPort: number,
  url: string,
  headers: Record<string, string> = {},
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: "127.0.0.1", port: proxyPort, path: url, headers: { host: new URL(url).host, ...headers } },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => (body += text));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    outgoing.on("error", reject).end();
  });
}

/** Everything the proxy answers to raw bytes until it closes or falls silent. */
function raw(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.setEncoding("utf8").on("data", (part: string) => (text += part));
    socket.setTimeout(1000, () => socket.destroy());
    socket.on("error", () => {}).on("close", () => resolve(text));
  });
}

test("an allowed host is reached by a plain request, with the host that was checked", async () => {
  const upstream = await serve((incoming, response) =>
    response.end(`${incoming.method} ${incoming.url} ${incoming.headers.host}`),
  );
  const { port, log } = await proxied({ network: [`api.test:${upstream}`] });
  const answer = await get(port, `http://api.test:${upstream}/a?b=1`, {
    host: "metadata.internal",
    "proxy-authorization": "x",
  });
  expect(answer).toEqual({ status: 200, body: `GET /a?b=1 api.test:${upstream}` });
  expect(log).toEqual([{ host: "api.test", port: upstream, method: "GET", allowed: true }]);
});

test("an allowed host is reached through a tunnel", async () => {
  const upstream = await serve((_incoming, response) => response.end("through"));
  const { port } = await proxied({ network: [`api.test:${upstream}`] });
  const text = await raw(
    port,
    `CONNECT api.test:${upstream} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
  );
  expect(text).toContain("200 Connection Established");
  expect(text).toContain("through");
});

test("another host, or another port of it, is refused with the reason, and becomes the call's denial", async () => {
  const { proxy, port, log } = await proxied({ network: ["api.test:8443"] });
  expect(await get(port, "http://evil.test/")).toEqual({
    status: 403,
    body: "callgate: evil.test:80 is not among the allowed hosts\n",
  });
  expect(await raw(port, "CONNECT api.test:22 HTTP/1.1\r\n\r\n")).toContain("403 Forbidden");
  expect(log.map(({ allowed }) => allowed)).toEqual([false, false]);
  expect(proxy.refused()).toMatchObject({ what: "network", target: "evil.test:80" });
});

test("an allowed name at a private address is refused, unless that was allowed", async () => {
  const upstream = await serve((_incoming, response) => response.end("inside"));
  const { port } = await proxied({ network: [`rebound.test:${upstream}`], allowPrivate: false });
  expect((await get(port, `http://rebound.test:${upstream}/`)).body).toContain("private address");
  const named = await proxied({ network: [`127.0.0.1:${upstream}`], allowPrivate: false });
  expect((await get(named.port, `http://127.0.0.1:${upstream}/`)).body).toBe("inside");
});

test("a host that does not answer and one that has no address are no refusals", async () => {
  const { proxy, port } = await proxied({ network: ["gone.test:1"], lookup: toLoopback });
  expect((await get(port, "http://gone.test:1/")).status).toBe(502);
  const unknown = await proxied({ network: ["*.test"], lookup: () => Promise.reject(new Error("NXDOMAIN")) });
  expect((await get(unknown.port, "http://a.test/")).status).toBe(502);
  expect([proxy.refused(), unknown.proxy.refused()]).toEqual([undefined, undefined]);
});

test("no list allows nothing", async () => {
  for (const network of [[], "off"] as const) {
    const { port } = await proxied({ network });
    expect((await get(port, "http://a.test/")).status).toBe(403);
  }
});

test("a proxy on a port serves only the command that has its token", async () => {
  const upstream = await serve((_incoming, response) => response.end("ok"));
  const { port } = await proxied({ network: [`api.test:${upstream}`], token: "t" });
  expect((await get(port, `http://api.test:${upstream}/`)).status).toBe(407);
  const authorization = `Basic ${btoa("callgate:t")}`;
  expect((await get(port, `http://api.test:${upstream}/`, { "proxy-authorization": authorization })).status).toBe(200);
});

test.each([
  "CONNECT api.test HTTP/1.1\r\n\r\n",
  "CONNECT api.test:0 HTTP/1.1\r\n\r\n",
  "CONNECT api.test:99999 HTTP/1.1\r\n\r\n",
  "CONNECT user@api.test:443 HTTP/1.1\r\n\r\n",
  "GET / HTTP/1.1\r\nhost: api.test\r\n\r\n",
  "GET ftp://api.test/ HTTP/1.1\r\nhost: a\r\n\r\n",
  "GET http://u:p@api.test/ HTTP/1.1\r\nhost: a\r\n\r\n",
  "CONNECT api.test\0.evil.test:443 HTTP/1.1\r\n\r\n",
  "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n",
  "CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n",
])("%j is not let through", async (bytes) => {
  const { port } = await proxied({ network: ["*.test", "api.test"] });
  expect(await raw(port, bytes)).toMatch(/^HTTP\/1\.1 (400|403) /);
});

test("rules are read by their parts", () => {
  expect(parseHostRule("Example.COM.")).toEqual({ host: "example.com", subdomains: false, port: undefined });
  expect(parseHostRule("*.example.com:8080")).toEqual({ host: "example.com", subdomains: true, port: 8080 });
  expect(parseHostRule("[::1]:3000")).toEqual({ host: "::1", subdomains: false, port: 3000 });
  expect(parseHostRule("db.local:*")).toMatchObject({ port: "any" });
  for (const wrong of ["", "*", "a b", "http://a", "a/b", "a:0", "a:70000", "*.", "a..b"])
    expect([wrong, parseHostRule(wrong)]).toEqual([wrong, undefined]);
});

test("a rule matches whole labels only, and without a port the web's two", () => {
  const wild = parseHostRule("*.example.com")!;
  const plain = parseHostRule("example.com")!;
  expect(matchesRule(wild, "a.b.example.com", 443)).toBe(true);
  for (const host of ["example.com", "badexample.com", "example.com.evil.test"])
    expect(matchesRule(wild, host, 443)).toBe(false);
  expect([80, 443, 22, 8080].map((port) => matchesRule(plain, "example.com", port))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("every spelling of a private address is private", () => {
  const octet = fc.integer({ min: 0, max: 255 });
  const network = fc.constantFrom("10", "127", "169.254", "172.16", "192.168", "0", "100.64", "224");
  fc.assert(
    fc.property(network, octet, octet, octet, (prefix, a, b, c) => {
      const address = [...prefix.split("."), a, b, c].slice(0, 4).join(".");
      expect(isPrivateAddress(address)).toBe(true);
      expect(isPrivateAddress(`::ffff:${address}`)).toBe(true);
      expect(isPrivateAddress(`64:ff9b::${address}`)).toBe(true);
    }),
  );
  for (const address of ["::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:7f00:1", "2002:7f00:1::"])
    expect([address, isPrivateAddress(address)]).toEqual([address, true]);
  for (const address of ["1.1.1.1", "8.8.8.8", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8"])
    expect([address, isPrivateAddress(address)]).toEqual([address, false]);
});

/** The networks of RFC 6890 and its followers that lead to no host of the internet, read by Node's own matcher. */
const notPublic = new BlockList();
for (const [network, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const)
  notPublic.addSubnet(network, bits, "ipv4");
for (const [network, bits] of [
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
  ["2001:db8::", 32],
] as const)
  notPublic.addSubnet(network, bits, "ipv6");

test("an IPv4 address is private exactly where the registry of special networks says so, in every notation of IPv6 too", () => {
  const first = fc.constantFrom(0, 1, 9, 10, 11, 99, 100, 101, 126, 127, 128, 168, 169, 170, 171, 172, 173, 191, 192);
  const more = fc.constantFrom(193, 197, 198, 199, 202, 203, 204, 223, 224, 255);
  const near = fc.constantFrom(0, 1, 2, 15, 16, 17, 18, 19, 20, 31, 32, 50, 51, 63, 64, 99, 100, 101, 112, 113, 114);
  const octet = fc.oneof(near, fc.constantFrom(127, 128, 167, 168, 169, 253, 254, 255));
  fc.assert(
    fc.property(fc.oneof(first, more), octet, octet, octet, (a, b, c, d) => {
      const address = [a, b, c, d].join(".");
      const hex = (high: number, low: number) => ((high << 8) | low).toString(16);
      const expected = notPublic.check(address, "ipv4");
      const spellings = [
        address,
        `::ffff:${address}`,
        `64:ff9b::${address}`,
        `2002:${hex(a, b)}:${hex(c, d)}::1`,
        ...(a === 0 && b === 0 ? [] : [`::${address}`]),
      ];
      for (const spelling of spellings) expect([spelling, isPrivateAddress(spelling)]).toEqual([spelling, expected]);
    }),
    { numRuns: 2_000 },
  );
});

test("an IPv6 address is private exactly where the registry says so", () => {
  const first = fc.constantFrom(0x2000, 0x2001, 0x2003, 0x2606, 0xdb8, 0xfbff, 0xfc00, 0xfdff, 0xfe00, 0xfe7f, 0xfe80);
  const more = fc.constantFrom(0xfebf, 0xfec0, 0xfeff, 0xff00, 0xffff, 0x1, 0x100);
  const word = fc.oneof(fc.constantFrom(0, 1, 0xdb7, 0xdb8, 0xdb9), fc.integer({ min: 0, max: 0xffff }));
  fc.assert(
    fc.property(fc.oneof(first, more), fc.array(word, { minLength: 7, maxLength: 7 }), (head, rest) => {
      fc.pre(rest.some((value, index) => index < 5 && value !== 0));
      const address = [head, ...rest].map((value) => value.toString(16)).join(":");
      expect([address, isPrivateAddress(address)]).toEqual([address, notPublic.check(address, "ipv6")]);
    }),
    { numRuns: 2_000 },
  );
});
