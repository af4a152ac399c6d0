/** What the gateway costs: processor time of its own process for each request, against a proxy that only passes bytes on. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchRow } from "./measure.ts";

const tools = Array.from({ length: 20 }, (_, at) => ({
  name: `tool_${at}`,
  description: "It does something useful, and this says what. ".repeat(8),
  input_schema: {
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: 6 }, (__, field) => [
        `field_${field}`,
        { type: "string", description: "What it is for. ".repeat(4) },
      ]),
    ),
    required: ["field_0"],
  },
}));
const asMessages = { model: "m", max_tokens: 100, stream: true, tools, messages: [{ role: "user", content: "hi" }] };
const asChat = {
  model: "m",
  stream: true,
  tools: tools.map(({ name, description, input_schema }) => ({
    type: "function",
    function: { name, description, parameters: input_schema },
  })),
  messages: [{ role: "user", content: "hi" }],
};

const passThrough = `
const http = require("node:http");
const target = new URL(process.argv[1]);
const agent = new http.Agent({ keepAlive: true });
http.createServer((request, response) => {
  const out = http.request({ host: target.hostname, port: target.port, path: request.url, method: request.method, headers: { ...request.headers, host: target.host }, agent }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  request.pipe(out);
}).listen(0, "127.0.0.1", function () { console.log(JSON.stringify({ url: "http://127.0.0.1:" + this.address().port })); });
`;

const chunk = (text: string) =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content: text } }] })}\n\n`;
const end = 'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

/** Answers with as many deltas of twenty bytes as the path says. */
async function startUpstream(): Promise<{ readonly server: Server; readonly url: string; deltas: number }> {
  const upstream = { deltas: 5 } as { server: Server; url: string; deltas: number };
  upstream.server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const piece = chunk("twenty bytes of text").repeat(50);
      for (let sent = 0; sent < upstream.deltas; sent += 50)
        response.write(upstream.deltas < 50 ? chunk("a few words").repeat(upstream.deltas) : piece);
      response.end(end);
    });
  });
  await new Promise<void>((resolve) => upstream.server.listen(0, "127.0.0.1", resolve));
  const address = upstream.server.address();
  upstream.url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  return upstream;
}

async function start(args: readonly string[]): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const home = mkdtempSync(join(tmpdir(), "callgate-bench-"));
  const child = spawn(process.execPath, [...args], {
    env: { PATH: process.env["PATH"] ?? "", HOME: home, CALLGATE_HOME: home },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const line = await new Promise<string>((resolve) =>
    child.stdout!.once("data", (text: Buffer) => resolve(text.toString("utf8"))),
  );
  child.stdout!.resume();
  return { child, url: (JSON.parse(line.split("\n")[0] ?? "{}") as { url: string }).url };
}

/** Clock ticks of ten milliseconds that a process has used. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function peakMb(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

async function ask(url: string, body: unknown): Promise<void> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  for await (const _ of response.body!) void _;
}

export async function run(): Promise<readonly BenchRow[]> {
  const upstream = await startUpstream();
  const proxy = await start(["-e", passThrough, upstream.url]);
  const flags = [
    "dist/cli.js",
    "gateway",
    "--port",
    "0",
    "--json",
    "--no-key",
    "--base-url",
    `${upstream.url}/v1`,
    "--wire",
    "chat",
  ];
  const gateway = await start([...flags, "--model", "m"]);
  const lanes = [
    { name: "pass-through", pid: proxy.child.pid!, url: `${proxy.url}/v1/chat/completions`, body: asChat },
    {
      name: "Chat → Chat, untouched",
      pid: gateway.child.pid!,
      url: `${gateway.url}/v1/chat/completions`,
      body: asChat,
    },
    { name: "Messages → Chat", pid: gateway.child.pid!, url: `${gateway.url}/v1/messages`, body: asMessages },
  ];
  const measure = async (count: number): Promise<readonly number[]> => {
    const costs: number[] = [];
    for (const { pid, url, body } of lanes) {
      for (let warm = 0; warm < Math.min(20, count); warm++) await ask(url, body);
      const before = cpuMs(pid);
      for (let sent = 0; sent < count; sent++) await ask(url, body);
      costs.push((cpuMs(pid) - before) / count);
    }
    return costs;
  };
  upstream.deltas = 5;
  const short = await measure(300);
  const memoryOfShort = peakMb(gateway.child.pid!);
  upstream.deltas = 150_000;
  const long = await measure(4);
  const rows = lanes.flatMap(({ name }, at): readonly BenchRow[] => [
    {
      name: `${name}: a request with 20 known tools`,
      value: short[at]!,
      unit: "ms CPU",
      ...(at === 0 ? {} : { ratio: short[at]! / short[0]!, baseline: "pass-through" }),
    },
    {
      name: `${name}: 3 MB in 20-byte deltas`,
      value: long[at]!,
      unit: "ms CPU",
      ...(at === 0 ? {} : { ratio: long[at]! / long[0]!, baseline: "pass-through", aim: at === 1 ? "≤ 1.3" : "≤ 4" }),
    },
  ]);
  const memory: readonly BenchRow[] = [
    { name: "peak memory of the gateway after 640 requests", value: memoryOfShort, unit: "MB", aim: "≤ 120" },
    { name: "and after answers of 3 MB", value: peakMb(gateway.child.pid!), unit: "MB" },
  ];
  proxy.child.kill();
  gateway.child.kill();
  upstream.server.close();
  upstream.server.closeAllConnections();
  return [...rows, ...memory];
}
