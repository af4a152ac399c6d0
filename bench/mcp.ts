/** MCP: a call through our client against the bare SDK client, starting with many servers, a thousand tools. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { createEngine, normalizeSchema } from "../src/index.ts";
import { createMcpClients, readServers } from "../src/mcp/index.ts";
import { toToolSpecs } from "../src/registry/tool-spec.ts";
import { codecs } from "../src/wire/index.ts";
import { median, type BenchRow } from "./measure.ts";

/** A plain script, so that what is counted is ours; and a server as people really run them. */
const server = "test/mcp/hostile-server.mjs";
const everything = {
  command: process.execPath,
  args: ["node_modules/@modelcontextprotocol/server-everything/dist/index.js", "stdio"],
};
const stdio = (mode: string) => ({ command: process.execPath, args: [server, mode] });

function setUp(table: object, stateDir = mkdtempSync(join(tmpdir(), "callgate-bench-"))) {
  const engine = createEngine({ approval: "never", sandbox: "full-access" });
  const { registry } = engine;
  const clients = createMcpClients({
    servers: readServers(table).servers,
    registry,
    stateDir,
    cwd: process.cwd(),
    env: process.env,
    sandbox: engine.sandbox(),
    version: "0",
    warn: () => undefined,
  });
  const close = async () => {
    await clients.close();
    await engine.close();
  };
  return { engine, registry, clients, close };
}

async function each(count: number, body: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  for (let n = 0; n < count; n++) await body();
  return ((performance.now() - started) * 1000) / count;
}

/** In turns, so that the machine's other work hits both alike. */
async function callOverhead(): Promise<readonly BenchRow[]> {
  const bare = new Client({ name: "bare", version: "0" });
  await bare.connect(new StdioClientTransport(everything));
  const { engine, clients, close } = setUp({ s: everything });
  await clients.start({ waitMs: 30_000 });
  const connection = clients.connections.get("s")!;
  const { signal } = new AbortController();
  const input = { message: "hello" };
  const times = { bare: [] as number[], client: [] as number[], line: [] as number[] };
  for (let round = 0; round < 12; round++) {
    times.bare.push(await each(150, () => bare.callTool({ name: "echo", arguments: input })));
    times.client.push(await each(150, () => connection.callTool("echo", input, { signal })));
    times.line.push(await each(150, () => engine.call("s/echo", input)));
  }
  await close();
  await bare.close();
  const base = median(times.bare);
  const row = (name: string, value: number): BenchRow => ({
    name,
    value: Math.round(value),
    unit: "µs",
    baseline: `bare SDK client ${Math.round(base)} µs`,
    ratio: value / base,
  });
  return [
    { ...row("one call through our client", median(times.client)), aim: "≤ 1.3×" },
    row("one call down the whole line (check, gate, run, shape)", median(times.line)),
  ];
}

async function starts(): Promise<readonly BenchRow[]> {
  const rows: BenchRow[] = [];
  const many = (count: number, entry: object) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${n}`, entry]));
  const time = async (table: object, stateDir?: string) => {
    const { clients, close } = setUp(table, stateDir);
    const started = performance.now();
    await clients.start();
    const ms = performance.now() - started;
    await close();
    return Math.round(ms);
  };
  rows.push({ name: "ready with 0 servers", value: await time({}), unit: "ms" });
  for (const count of [10, 50]) {
    rows.push({
      name: `ready with ${count} dead servers`,
      value: await time(many(count, { command: "/no/such/server" })),
      unit: "ms",
    });
    const hanging = mkdtempSync(join(tmpdir(), "callgate-bench-"));
    rows.push({
      name: `ready with ${count} servers that hang, never seen before`,
      value: await time(many(count, stdio("hang")), hanging),
      unit: "ms",
      aim: "≤ 600 ms",
    });
    rows.push({
      name: `ready with ${count} servers that hang, the next time`,
      value: await time(many(count, stdio("hang")), hanging),
      unit: "ms",
    });
    rows.push({
      name: `ready with ${count} live servers, never seen before`,
      value: await time(many(count, stdio("plain"))),
      unit: "ms",
      aim: "≤ 600 ms",
    });
  }
  const stateDir = mkdtempSync(join(tmpdir(), "callgate-bench-"));
  const first = setUp(many(10, stdio("plain")), stateDir);
  await first.clients.start({ waitMs: 30_000 });
  await first.close();
  rows.push({
    name: "ready with 10 live servers, known",
    value: await time(many(10, stdio("plain")), stateDir),
    unit: "ms",
  });
  return rows;
}

async function thousandTools(): Promise<readonly BenchRow[]> {
  const { clients, registry, close } = setUp({ s: stdio("many") });
  await clients.start({ waitMs: 30_000 });
  const ms = (since: number) => Number((performance.now() - since).toFixed(1));
  let since = performance.now();
  await clients.connections.get("s")!.listTools();
  const list = ms(since);
  since = performance.now();
  for (const { input } of registry.list()) normalizeSchema(input, "anthropic");
  const normalised = ms(since);
  since = performance.now();
  const { body } = codecs.messages.encodeRequest({ model: "m", input: [], tools: toToolSpecs(registry.list()) });
  const bytes = Buffer.byteLength(JSON.stringify(body));
  const encoded = ms(since);
  await close();
  return [
    { name: "1,000 tools: list", value: list, unit: "ms" },
    { name: "1,000 tools: normalise", value: normalised, unit: "ms" },
    { name: "1,000 tools: encode a Messages request", value: encoded, unit: "ms" },
    { name: "1,000 tools: bytes of that request", value: bytes, unit: "B" },
  ];
}

export async function run(): Promise<readonly BenchRow[]> {
  return [...(await callOverhead()), ...(await starts()), ...(await thousandTools())];
}
