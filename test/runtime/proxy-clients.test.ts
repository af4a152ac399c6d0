/**
 * Clients and hosts that do not behave: they hang up early, send half of what they announced, reset the connection.
 * What one side does must reach the other, or a command waits for ever and connections pile up.
 */
import { createServer, request } from "node:http";
import type { IncomingMessage } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { createProxy } from "../../src/runtime/proxy.ts";
import type { ProxiedRequest, ProxyOptions } from "../../src/runtime/proxy.ts";
import { serve, toLoopback } from "./network-hosts.ts";

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

async function proxied(options: Partial<ProxyOptions> = {}) {
  const log: ProxiedRequest[] = [];
  const proxy = createProxy({
    network: ["api.test:*"],
    lookup: toLoopback,
    allowPrivate: true,
    onRequest: (entry) => log.push(entry),
    ...options,
  });
  onTestFinished(() => proxy.close());
  return { proxy, port: await listening(proxy.server), log };
}

/** A host that speaks bytes, with every connection that was made to it. */
async function tcpHost(onConnection: (socket: Socket) => void) {
  const sockets: Socket[] = [];
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {}).on("data", () => {}); // read, or the end would never come
    sockets.push(socket);
    onConnection(socket);
  });
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: await listening(server), sockets };
}

/** The other side has hung up, in whatever way. */
const left = (socket: Socket) =>
  new Promise<void>((resolve) => {
    if (socket.destroyed || socket.readableEnded) resolve();
    socket.once("end", resolve).once("close", () => resolve());
  });

/** Connects and sends the bytes; `text()` is what has come so far, `until` waits for some of it. */
function client(port: number, bytes: string) {
  let text = "";
  const waiting = new Set<() => void>();
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {}).write(bytes);
  socket.setEncoding("latin1").on("data", (part: string) => {
    text += part;
    for (const look of waiting) look();
  });
  const until = (wanted: string) =>
    new Promise<string>((resolve) => {
      const look = () => {
        if (!text.includes(wanted)) return;
        waiting.delete(look);
        resolve(text);
      };
      waiting.add(look);
      look();
    });
  const ended = new Promise<string>((resolve) => {
    socket.once("end", () => resolve(text)).once("close", () => resolve(text));
  });
  onTestFinished(() => void socket.destroy());
  return { socket, until, ended };
}

const established = "200 Connection Established\r\n\r\n";

test("bytes go through a tunnel both ways unchanged, those sent along with the request too", async () => {
  const host = await tcpHost((socket) => void socket.pipe(socket));
  const { port } = await proxied();
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 2_000 }), async (bytes) => {
      const one = client(port, `CONNECT api.test:${host.port} HTTP/1.1\r\n\r\n${bytes}`);
      one.socket.end();
      expect((await one.ended).split(established)[1]).toBe(bytes);
    }),
    { numRuns: 20 },
  );
});

test("a client that has said everything still hears the answer to its end", async () => {
  const host = await tcpHost((socket) => {
    let heard = 0;
    socket.on("data", (part) => (heard += part.length));
    socket.once("end", () => socket.end(`heard ${heard}`));
  });
  const { port } = await proxied();
  const one = client(port, `CONNECT api.test:${host.port} HTTP/1.1\r\n\r\n`);
  await one.until(established);
  one.socket.end("x".repeat(300_000));
  expect(await one.ended).toMatch(/heard 300000$/);
});

test("a host that hangs up in a tunnel ends the client's connection, whether it says so or not", async () => {
  for (const hangUp of [(socket: Socket) => socket.end("bye"), (socket: Socket) => socket.resetAndDestroy()]) {
    const host = await tcpHost((socket) => void socket.once("data", () => hangUp(socket)));
    const { port } = await proxied();
    const one = client(port, `CONNECT api.test:${host.port} HTTP/1.1\r\n\r\nhello`);
    expect(await one.ended).toContain(established);
  }
});

test("a client that goes away takes its connection to the host with it", async () => {
  const host = await tcpHost((socket) => void socket.write("greetings"));
  const { port } = await proxied();
  const one = client(port, `CONNECT api.test:${host.port} HTTP/1.1\r\n\r\n`);
  await one.until("greetings");
  one.socket.resetAndDestroy();
  await left(host.sockets[0]!);
});

test("a client that goes away in the middle of an answer takes the request with it", async () => {
  const endless = await serve((_incoming, response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write("x".repeat(1_000)), 1);
    response.once("close", () => {
      clearInterval(timer);
      gone();
    });
  });
  let gone = () => {};
  const stopped = new Promise<void>((resolve) => (gone = resolve));
  const { port } = await proxied();
  const one = client(port, `GET http://api.test:${endless}/ HTTP/1.1\r\nhost: a\r\n\r\n`);
  await one.until("xxx");
  one.socket.destroy();
  await stopped;
});

test("a client that goes away before it is answered takes the request with it", async () => {
  let asked = () => {};
  const arrived = new Promise<void>((resolve) => (asked = resolve));
  const host = await tcpHost((socket) => void socket.once("data", () => asked()));
  const { port } = await proxied();
  const one = client(port, `GET http://api.test:${host.port}/ HTTP/1.1\r\nhost: a\r\n\r\n`);
  await arrived;
  one.socket.destroy();
  await left(host.sockets[0]!);
});

test("an answer that breaks off is not told as a whole one", async () => {
  const upstream = await serve((_incoming, response) => {
    response.writeHead(200, { "content-length": "1000" });
    response.write("half");
    setImmediate(() => response.destroy());
  });
  const { port } = await proxied();
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ host: "127.0.0.1", port, path: `http://api.test:${upstream}/` }, resolve)
      .on("error", reject)
      .end();
  });
  const outcome = new Promise((resolve) => {
    incoming.on("data", () => {}).once("end", () => resolve("whole"));
    incoming.once("error", () => resolve("broken"));
  });
  expect(await outcome).toBe("broken");
});

test("a host that breaks off before it answers ends the request", async () => {
  const host = await tcpHost((socket) => void socket.once("data", () => socket.resetAndDestroy()));
  const { port } = await proxied();
  const one = client(port, `GET http://api.test:${host.port}/ HTTP/1.1\r\nhost: a\r\n\r\n`);
  expect(await one.ended).not.toContain(" 200 ");
});

test("a body goes along, announced or in pieces, and nothing that is meant for the proxy does", async () => {
  let seen: IncomingMessage["headers"] = {};
  const upstream = await serve((incoming, response) => {
    seen = incoming.headers;
    let body = "";
    incoming.setEncoding("utf8").on("data", (part: string) => (body += part));
    incoming.on("end", () => response.writeHead(201, { "x-of": "host", connection: "close" }).end(body.toUpperCase()));
  });
  const { port, log } = await proxied({ token: "t" });
  const head = [
    `POST http://api.test:${upstream}/a HTTP/1.1`,
    "host: somewhere.else",
    `proxy-authorization: Basic ${btoa("callgate:t")}`,
    "proxy-connection: keep-alive",
    "te: trailers",
    "x-own: kept",
  ].join("\r\n");
  const announced = client(port, `${head}\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello`);
  expect(await announced.ended).toMatch(/^HTTP\/1\.1 201 [^]*x-of: host[^]*HELLO/);
  expect(seen).toMatchObject({ host: `api.test:${upstream}`, "x-own": "kept", "content-length": "5" });
  for (const name of ["proxy-authorization", "proxy-connection", "te"]) expect(seen).not.toHaveProperty([name]);
  const inPieces = client(
    port,
    `${head}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n`,
  );
  expect(await inPieces.ended).toMatch(/HELLO/);
  expect(log.map(({ method, allowed }) => [method, allowed])).toEqual([
    ["POST", true],
    ["POST", true],
  ]);
});

test("each request of a connection that stays open is asked about anew", async () => {
  const upstream = await serve((incoming, response) => response.end(`served ${incoming.url}`));
  const { port, log, proxy } = await proxied();
  const ask = (host: string, more = "") => `GET http://${host}:${upstream}/x HTTP/1.1\r\nhost: a\r\n${more}\r\n`;
  const one = client(port, ask("api.test") + ask("evil.test", "connection: close\r\n"));
  const text = await one.ended;
  expect(text).toMatch(/^HTTP\/1\.1 200 [^]*HTTP\/1\.1 403 /);
  expect(new Map(log.map(({ host, allowed }) => [host, allowed]))).toEqual(
    new Map([
      ["api.test", true],
      ["evil.test", false],
    ]),
  );
  expect(proxy.refused()).toMatchObject({ what: "network", target: `evil.test:${upstream}` });
});

test("the denial is the first host that was refused, whatever came after it", async () => {
  const { port, proxy } = await proxied({ network: [] });
  expect(proxy.refused()).toBeUndefined();
  for (const host of ["first.test", "second.test"]) await client(port, `CONNECT ${host}:443 HTTP/1.1\r\n\r\n`).ended;
  expect(proxy.refused()).toEqual({
    what: "network",
    target: "first.test:443",
    reason: "first.test:443 is not among the allowed hosts",
  });
});

test("a tunnel needs the token too", async () => {
  const host = await tcpHost((socket) => void socket.pipe(socket));
  const { port, log } = await proxied({ token: "right" });
  const ask = (token: string) => {
    const secret = btoa(`callgate:${token}`);
    return client(port, `CONNECT api.test:${host.port} HTTP/1.1\r\nproxy-authorization: Basic ${secret}\r\n\r\n`);
  };
  expect(await ask("wrong").ended).toMatch(/^HTTP\/1\.1 407 [^]*belongs to another command/);
  expect([host.sockets.length, log]).toEqual([0, []]);
  await ask("right").until(established);
});

test("the next address of a host is tried where one does not answer", async () => {
  const upstream = await serve((_incoming, response) => response.end("found"));
  const lookup = async () => [
    { address: "::1", family: 6 },
    { address: "127.0.0.1", family: 4 },
  ];
  const { port } = await proxied({ lookup });
  const one = client(port, `GET http://api.test:${upstream}/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
  expect(await one.ended).toMatch(/found/);
});

test("what is no HTTP gets an answer or an end, and the proxy goes on", async () => {
  const upstream = await serve((_incoming, response) => response.end("still there"));
  const { port } = await proxied();
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary-ascii", minLength: 1, maxLength: 200 }), async (bytes) => {
      const one = client(port, bytes);
      one.socket.end();
      expect(await one.ended).not.toContain(" 200 ");
    }),
    { numRuns: 30 },
  );
  const after = client(port, `GET http://api.test:${upstream}/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
  expect(await after.ended).toContain("still there");
});

test("closing ends every tunnel and request at once, on both sides", async () => {
  const host = await tcpHost((socket) => void socket.write("greetings"));
  const hanging = createServer(() => {});
  onTestFinished(() => {
    hanging.close();
    hanging.closeAllConnections();
  });
  const silent = await listening(hanging);
  const { port, proxy } = await proxied();
  const tunnel = client(port, `CONNECT api.test:${host.port} HTTP/1.1\r\n\r\n`);
  await tunnel.until("greetings");
  const arrived = new Promise<void>((resolve) => hanging.once("request", () => resolve()));
  const asking = client(port, `GET http://api.test:${silent}/ HTTP/1.1\r\nhost: a\r\n\r\n`);
  await arrived;
  await proxy.close();
  await Promise.all([tunnel.ended, asking.ended, left(host.sockets[0]!)]);
});

test("a connection that is over is forgotten", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const upstream = await serve((_incoming, response) => response.end("ok"));
  const { port, proxy } = await proxied();
  const seen: WeakRef<Socket>[] = [];
  const closings: Promise<void>[] = [];
  proxy.server.on("connection", (socket: Socket) => {
    seen.push(new WeakRef(socket));
    closings.push(new Promise((resolve) => socket.once("close", () => resolve())));
  });
  for (let round = 0; round < 20; round++)
    await client(port, `GET http://api.test:${upstream}/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`).ended;
  await Promise.all(closings);
  for (let round = 0; round < 10; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  // A parser that is used again may hold the last one.
  expect(seen.filter((socket) => socket.deref() !== undefined).length).toBeLessThan(10);
});
