/** HTTP servers that forget, break off and flood: a bare server on loopback that counts what really ran. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { call, connect as open } from "./connect.ts";

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

interface Message {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly protocolVersion?: string };
}

/** Speaks the protocol of 2025 with sessions, and does as each call says. */
async function startServer() {
  const seen = { sessions: 0, ran: 0, headers: [] as (string | undefined)[] };
  let known = "";
  const tools = ["ping", "break_off", "flood", "forget"].map((name) => ({
    name,
    inputSchema: { type: "object" },
  }));
  const reply = (response: ServerResponse, id: number | undefined, result: unknown, headers = {}) => {
    response.writeHead(200, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  };
  const text = (value: string) => ({ content: [{ type: "text", text: value }] });
  const run = (response: ServerResponse, { id, params }: Message) => {
    seen.ran++;
    if (params?.name === "break_off") return void response.destroy();
    if (params?.name === "forget") known = "";
    if (params?.name === "flood") {
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(Buffer.alloc(100_000_000, "x"));
    }
    reply(response, id, text("pong"));
  };
  const server = createServer(async (request, response) => {
    const message = await read(request);
    seen.headers.push(request.headers.authorization);
    if (message === undefined || message.method === "server/discover") return void response.writeHead(405).end();
    if (message.method === "initialize") {
      known = `session-${++seen.sessions}`;
      const result = {
        protocolVersion: message.params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "bare", version: "1" },
      };
      return reply(response, message.id, result, { "mcp-session-id": known });
    }
    if (request.headers["mcp-session-id"] !== known) return void response.writeHead(404).end();
    if (message.id === undefined) return void response.writeHead(202).end();
    if (message.method === "tools/list") return reply(response, message.id, { tools });
    run(response, message);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, seen, forget: () => (known = "") };
}

async function read(request: IncomingMessage): Promise<Message | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return request.method === "POST" ? (JSON.parse(Buffer.concat(chunks).toString("utf8")) as Message) : undefined;
}

async function connect(url: string, settings: object = {}, env: NodeJS.ProcessEnv = process.env) {
  const connected = await open({ s: { url, ...settings } }, { clients: { env } });
  cleanups.push(connected.close);
  return connected;
}

test("a forgotten session is renewed, and the call runs once", async () => {
  const { url, seen, forget } = await startServer();
  const { engine } = await connect(url);
  expect((await call(engine, "s/ping")).text).toBe("pong");
  forget();
  expect((await call(engine, "s/ping")).text).toBe("pong");
  expect(seen).toMatchObject({ sessions: 2, ran: 2 });
});

test("many calls that find the session gone share one new one", async () => {
  const { url, seen, forget } = await startServer();
  const { engine } = await connect(url);
  forget();
  const ended = await Promise.all(Array.from({ length: 5 }, () => call(engine, "s/ping")));
  expect(ended.every(({ ok }) => ok)).toBe(true);
  expect(seen).toMatchObject({ sessions: 2, ran: 5 });
});

test("a call that may have run is never repeated", async () => {
  const { url, seen } = await startServer();
  const { engine } = await connect(url);
  expect(await call(engine, "s/break_off")).toMatchObject({
    ok: false,
    code: "mcp",
    text: expect.stringContaining("look before you call it again"),
  });
  expect(seen.ran).toBe(1);
  expect((await call(engine, "s/ping")).ok).toBe(true);
});

test("an answer of a hundred megabytes ends as an error, and the next call works", async () => {
  const { url } = await startServer();
  const { engine } = await connect(url);
  expect(await call(engine, "s/flood")).toMatchObject({ ok: false, text: expect.stringContaining("32 MB") });
  expect((await call(engine, "s/ping")).ok).toBe(true);
});

test("a token comes from the variable the settings name, on every request", async () => {
  const { url, seen } = await startServer();
  const { engine } = await connect(url, { bearer_token_env_var: "MY_TOKEN" }, { ...process.env, MY_TOKEN: "secret" });
  await call(engine, "s/ping");
  expect(new Set(seen.headers)).toEqual(new Set(["Bearer secret"]));
});
