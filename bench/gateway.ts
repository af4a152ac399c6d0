/** What the gateway costs: processor time of its own process for each request, against a proxy that only passes bytes on. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { firstText } from "./gateway-first-text.ts";
import { createToolCache } from "../src/gateway/tool-cache.ts";
import { codecs } from "../src/wire/index.ts";
import { type BenchRow, median, perOperation } from "./measure.ts";

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

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
}

async function start(args: readonly string[], settings = ""): Promise<Started> {
  const home = mkdtempSync(join(tmpdir(), "callgate-bench-"));
  writeFileSync(join(home, "callgate.toml"), settings);
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

/** Processor time of all threads of a process, as the scheduler counts it. */
function cpuMs(pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, used) => sum + used, 0) / 1e6;
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

/** As many conversations as one person has at the same time. */
const conversations = 10;

interface Lane {
  readonly name: string;
  readonly pid: number;
  readonly url: string;
  /** The body without its words; called for every request. */
  readonly body: () => object;
  /** For a stream, as a multiple of pass-through. */
  readonly aim?: string;
}

/** Milliseconds of processor time a request for each lane: the median of rounds in turn, because the machine changes. */
async function measure(
  lanes: readonly Lane[],
  how: { readonly warm: number; readonly rounds: number; readonly each: number },
) {
  const costs = lanes.map((): number[] => []);
  const send = async ({ url, body }: Lane, count: number) => {
    for (let sent = 0; sent < count; sent++) {
      const content = `hi, this is conversation ${sent % conversations}`;
      await ask(url, { ...body(), messages: [{ role: "user", content }] });
    }
  };
  for (const lane of lanes) await send(lane, how.warm);
  for (let round = 0; round < how.rounds; round++)
    for (const [at, lane] of lanes.entries()) {
      const before = cpuMs(lane.pid);
      await send(lane, how.each);
      costs[at]!.push((cpuMs(lane.pid) - before) / how.each);
    }
  return costs.map(median);
}

/** Other tools with every request. */
function withNewTools(): () => object {
  let count = 0;
  return () => {
    count += 1;
    const renewed = tools.map((tool) => ({ ...tool, description: `${count} ${tool.description}` }));
    return { ...asMessages, tools: renewed };
  };
}

/** A request of a Messages client read and written for a Chat server, when the same tools came before. */
async function encodeKnown(): Promise<BenchRow> {
  const cache = createToolCache();
  const text = JSON.stringify(asMessages);
  const encode = (body: typeof asMessages) => {
    const request = codecs.messages.decodeRequest(body);
    const known = cache("messages", body.tools, () => request.tools);
    return codecs.chat.encodeRequest({ ...request, tools: known }, { target: "openai" });
  };
  encode(asMessages);
  // Parsed anew, as every request is: it must be known by its content.
  const bodies = Array.from({ length: 200 }, () => JSON.parse(text) as typeof asMessages);
  let at = 0;
  const microseconds = await perOperation(200, 5, () => encode(bodies[at++ % bodies.length]!));
  return { name: "decode and encode with 20 known tools", value: microseconds / 1000, unit: "ms", aim: "≤ 0.3" };
}

export async function run(): Promise<readonly BenchRow[]> {
  const upstream = await startUpstream();
  const proxy = await start(["-e", passThrough, upstream.url]);
  const command = "dist/cli.cjs gateway --port 0 --json --no-key --wire chat --model m --base-url";
  const flags = [...command.split(" "), `${upstream.url}/v1`];
  const gateway = await start(flags);
  const silent = await start(flags, "[gateway]\njournal = false\n");
  const chat = "/v1/chat/completions";
  const lane = (name: string, { child, url }: Started, path: string, body: () => object, aim?: string): Lane => ({
    name,
    pid: child.pid!,
    url: `${url}${path}`,
    body,
    ...(aim === undefined ? {} : { aim }),
  });
  const lanes: readonly Lane[] = [
    lane("pass-through", proxy, chat, () => asChat),
    lane("Chat → Chat, untouched", gateway, chat, () => asChat, "≤ 1.3"),
    lane("the same without a journal", silent, chat, () => asChat),
    lane("Messages → Chat", gateway, "/v1/messages", () => asMessages, "≤ 4"),
  ];
  const short = { warm: 400, rounds: 5, each: 60 };
  upstream.deltas = 5;
  const costs = await measure(lanes, short);
  const memory = peakMb(gateway.child.pid!);
  const strange = lane("Messages → Chat", silent, "/v1/messages", withNewTools());
  const [withNew = Number.NaN] = await measure([strange], { ...short, warm: 100 });
  upstream.deltas = 150_000;
  const long = await measure(lanes, { warm: 3, rounds: 5, each: 1 });
  const rows = lanes.flatMap(({ name, aim }, at): readonly BenchRow[] => {
    const isBase = at === 0;
    return [
      {
        name: `${name}: a request with 20 known tools`,
        value: costs[at]!,
        unit: "ms CPU",
        ...(isBase ? {} : { ratio: costs[at]! / costs[0]!, baseline: "pass-through" }),
      },
      ...(isBase ? [] : [{ name: "… over pass-through", value: costs[at]! - costs[0]!, unit: "ms CPU", aim: "≤ 1.5" }]),
      {
        name: `${name}: 3 MB in 20-byte deltas`,
        value: long[at]!,
        unit: "ms CPU",
        ...(isBase ? {} : { ratio: long[at]! / long[0]!, baseline: "pass-through" }),
        ...(aim === undefined ? {} : { aim }),
      },
    ];
  });
  const news: BenchRow = {
    name: "Messages → Chat: a request with 20 tools that were never seen, over pass-through",
    value: withNew - costs[0]!,
    unit: "ms CPU",
    aim: "≤ 3",
  };
  const asked = 2 * (short.warm + short.rounds * short.each);
  const peaks: readonly BenchRow[] = [
    {
      name: `peak memory of the gateway after ${asked} requests of ${conversations} conversations`,
      value: memory,
      unit: "MB",
      aim: "≤ 120",
    },
    { name: "and after 16 answers of 3 MB", value: peakMb(gateway.child.pid!), unit: "MB" },
  ];
  for (const { child } of [proxy, gateway, silent]) child.kill();
  upstream.server.close();
  upstream.server.closeAllConnections();
  return [...rows, news, await encodeKnown(), ...(await firstText()), ...peaks];
}
