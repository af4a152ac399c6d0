/** Streams of events come and go by the thousand: what one leaves behind would never be given back. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { createFileStore, createService, openTokenFile, issueToken, startServing } from "../../src/serve/index.ts";
import type { Service } from "../../src/serve/index.ts";
import { newFolder } from "./service.ts";

/** The service, with a count of the streams that it would still end. */
function counted(service: Service, ends: Set<object>): Service {
  return Object.assign(Object.create(service) as Service, {
    forTenant: (tenant: string) => counted(service.forTenant(tenant), ends),
    onStop(end: () => void) {
      const entry = {};
      ends.add(entry);
      const forget = service.onStop(end);
      return () => {
        ends.delete(entry);
        forget();
      };
    },
  });
}

async function newService() {
  const folder = newFolder();
  const tokens = openTokenFile();
  const service = await createService({
    store: createFileStore({ folder, ownTenant: "main" }),
    tokens,
    checkSettings: async (_tenant, settings) => ({ cwd: folder, settings }),
    look: { tools: async () => [], rules: async () => [], checkPolicy: async () => ({ decision: "ask" }) },
    version: "0.0.0",
    model: "none",
  });
  return { service, tokens };
}

test("a stream whose client has gone is forgotten", async () => {
  const { service, tokens } = await newService();
  const ends = new Set<object>();
  const serving = await startServing({ service: counted(service, ends) });
  onTestFinished(serving.close);
  const { token } = await issueToken(tokens, { tenant: "main", name: "test", roles: ["watch"] });
  const headers = { authorization: `Bearer ${token}` };
  const streams = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const stop = new AbortController();
      const { status } = await fetch(`${serving.url}/v1/events`, { headers, signal: stop.signal });
      expect(status).toBe(200);
      return stop;
    }),
  );
  expect(ends.size).toBe(5);
  for (const stream of streams) stream.abort();
  await expect.poll(() => ends.size, { timeout: 5_000 }).toBe(0);
});

test("and one that still runs ends with the service", async () => {
  const { service } = await newService();
  const ended: string[] = [];
  service.onStop(() => void ended.push("running"));
  const forget = service.onStop(() => void ended.push("gone"));
  forget();
  await service.stop();
  expect(ended).toEqual(["running"]);
});

test("a client that is told to come back later does so, and misses nothing; what is forbidden stays forbidden", async () => {
  let asked = 0;
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/v1/sessions/other/")) return void response.writeHead(403).end("{}");
    if (asked++ === 0) return void response.writeHead(429, { "retry-after": "1" }).end('{"detail":"too many streams"}');
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('event: record\ndata: {"n":0,"at":0,"type":"session.started"}\n\n');
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server has one
  const client = createClient({ url: `http://127.0.0.1:${port}`, token: "t" });
  const stop = new AbortController();
  const first = await client.events("some", -1, stop.signal).next();
  stop.abort();
  expect(first.value).toMatchObject({ type: "record", record: { n: 0 } });
  expect(asked).toBe(2);
  const never = new AbortController().signal;
  await expect(client.events("other", -1, never).next()).rejects.toMatchObject({ status: 403 });
});

test("whoever watches all sessions learns whenever the stream was opened again", async () => {
  let opened = 0;
  const row = JSON.stringify({ id: "s", status: "idle" });
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`event: status\ndata: ${row}\n\n`);
    if (opened < 2) response.end(); // the service was restarted
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo; // a TCP server has one
  const stop = new AbortController();
  const rows = createClient({ url: `http://127.0.0.1:${port}` }).watch(stop.signal, () => void opened++);
  expect((await rows.next()).value).toMatchObject({ id: "s" });
  expect(opened).toBe(1);
  expect((await rows.next()).value).toMatchObject({ id: "s" });
  expect(opened).toBe(2);
  stop.abort();
});
