/**
 * What a session adds to a call, early and late in a long conversation, against a bare loop of the same requests and
 * the same commands; and what a very long answer in very small pieces costs. One raw server for both sides.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { Agent, createServer, request as httpRequest, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createEngine } from "callgate";
import { createHttpModel } from "callgate/model";
import { createSession } from "callgate/session";
import { openJournal } from "callgate/store";
import { builtins } from "callgate/tools";
import { codecs } from "callgate/wire";
import { createStreamedText } from "../src/cli/tui/streamed-text.ts";
import { createTheme } from "../src/cli/tui/theme.ts";
import { median, type BenchRow } from "./measure.ts";

const calls = 300;
const rounds = 3;
/** Calls whose median stands for "at call N". */
const windows = [
  [10, 1, 20],
  [100, 90, 110],
  [300, 280, 300],
] as const;
const command = "true";

export async function run(): Promise<readonly BenchRow[]> {
  const folder = mkdtempSync(join(tmpdir(), "callgate-bench-"));
  try {
    return [...(await longSession(folder)), ...(await longAnswer(folder)), ...drawing()];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function longSession(folder: string): Promise<readonly BenchRow[]> {
  const server = await serveCalls();
  const heap: number[] = [];
  await runSession(server.url, folder, 5, []); // warm
  const bare: (readonly number[])[] = [];
  const ours: (readonly number[])[] = [];
  // Turn about, because the machine is never quiet.
  for (let round = 0; round < rounds; round++) {
    bare.push(await runBare(server.url, folder));
    ours.push(await runSession(server.url, folder, calls, heap));
  }
  server.close();
  const at = (runs: readonly (readonly number[])[], from: number, to: number) =>
    median(runs.flatMap((times) => times.slice(from - 1, to)));
  const rows = windows.map(([name, from, to]): BenchRow => {
    const floor = at(bare, from, to);
    return {
      name: `session, shell_command at call ${name} (bare loop ${floor.toFixed(1)} ms)`,
      value: at(ours, from, to),
      unit: "ms",
      ratio: at(ours, from, to) / floor,
      baseline: "fetch + spawn, same history",
      aim: "flat",
    };
  });
  const [early, late] = [heap.at(-2) ?? 0, heap.at(-1) ?? 0];
  return [
    ...rows,
    {
      name: `heap at call ${calls}`,
      value: late,
      unit: "MB",
      ratio: late / early,
      baseline: "at call 10",
      aim: "flat",
    },
  ];
}

/** Answers every request with one call, until there were enough of them. */
async function serveCalls(): Promise<{ readonly url: string; close(): void }> {
  let answered = 0;
  const server = createServer((incoming, response) => {
    let bytes = 0;
    incoming.on("data", (chunk: Buffer) => (bytes += chunk.length));
    incoming.on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(callFrames(++answered));
    });
  });
  return listen(server);
}

async function listen(server: Server): Promise<{ readonly url: string; close(): void }> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { readonly port: number };
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const frame = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

function callFrames(n: number): string {
  // Each differs from the last: the session stops a model that repeats itself.
  const item = {
    type: "function_call",
    id: `fc_${n}`,
    call_id: `call_${n}`,
    name: "shell_command",
    arguments: JSON.stringify({ command: `${command} ${n}` }),
    status: "completed",
  };
  return [
    frame("response.created", { response: { id: `r${n}` } }),
    frame("response.output_item.added", { output_index: 0, item: { ...item, arguments: "" } }),
    frame("response.output_item.done", { output_index: 0, item }),
    frame("response.completed", {
      response: { id: `r${n}`, status: "completed", usage: { input_tokens: 1, output_tokens: 1 } },
    }),
  ].join("");
}

/** The least anyone can do: keep a list, send it, spawn. */
async function runBare(url: string, cwd: string): Promise<readonly number[]> {
  const agent = new Agent({ keepAlive: true });
  const input: object[] = [{ type: "message", role: "user", content: [{ type: "input_text", text: "go" }] }];
  const times: number[] = [];
  for (let n = 0; n < calls; n++) {
    const start = performance.now();
    await post(`${url}/responses`, JSON.stringify({ model: "m", input, stream: true }), agent);
    const output = await bareSpawn(cwd, n);
    input.push(
      { type: "function_call", call_id: `call_${n}`, name: "shell_command", arguments: JSON.stringify({ command }) },
      { type: "function_call_output", call_id: `call_${n}`, output },
    );
    times.push(performance.now() - start);
  }
  agent.destroy();
  return times;
}

function post(url: string, body: string, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      url,
      { method: "POST", agent, headers: { "content-type": "application/json" } },
      (incoming) => {
        let text = "";
        incoming.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        incoming.on("end", () => resolve(text));
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function bareSpawn(cwd: string, n: number): Promise<string> {
  return new Promise((resolve) => {
    const child = spawn("bash", ["-c", `${command} ${n}`], { cwd, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    child.on("close", () => resolve(text));
  });
}

/** Everything on: gate, sandbox, journal, events. The time of a call is from one request to the next. */
async function runSession(url: string, folder: string, count: number, heap: number[]): Promise<readonly number[]> {
  const collectGarbage = exposeGc();
  const engine = createEngine({ tools: builtins, workspace: folder, approval: "never", sandbox: "workspace-write" });
  const model = createHttpModel({ codec: codecs.responses, baseUrl: url, model: "m" });
  const session = createSession({
    id: "bench",
    engine,
    model,
    tools: () => [],
    journal: openJournal(join(folder, `s${performance.now()}.jsonl`)),
    limits: { maxCalls: count },
  });
  const times: number[] = [];
  let last = performance.now();
  for await (const event of session.send("go")) {
    if (event.type !== "call.ended") continue;
    times.push(performance.now() - last);
    if (times.length % 10 === 0 && (times.length === 10 || times.length === count)) heap.push(collectGarbage());
    last = performance.now();
  }
  await session.close();
  await engine.close();
  model.close();
  return times;
}

function exposeGc(): () => number {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  return () => {
    gc();
    return process.memoryUsage().heapUsed / 1e6;
  };
}

const piece = "twenty bytes of text";

async function longAnswer(folder: string): Promise<readonly BenchRow[]> {
  const small = await hearAnswer(folder, 500_000);
  const large = await hearAnswer(folder, 5_000_000);
  return [
    {
      name: "5 MB answer in 20-byte deltas, over HTTP, recorded",
      value: large.ms,
      unit: "ms",
      ratio: large.ms / small.ms,
      baseline: "0.5 MB",
      aim: "≤ 11 (linear)",
    },
    {
      name: "its journal",
      value: large.journalBytes / 1e6,
      unit: "MB",
      ratio: large.journalBytes / 5_000_000,
      baseline: "the answer",
    },
  ];
}

async function hearAnswer(
  folder: string,
  bytes: number,
): Promise<{ readonly ms: number; readonly journalBytes: number }> {
  const server = await serveAnswer(bytes);
  const path = join(folder, `answer-${bytes}.jsonl`);
  const engine = createEngine({ tools: [], workspace: folder, approval: "never" });
  const model = createHttpModel({ codec: codecs.responses, baseUrl: server.url, model: "m" });
  const session = createSession({ id: "long", engine, model, tools: () => [], journal: openJournal(path) });
  const start = performance.now();
  let heard = 0;
  for await (const event of session.send("tell me")) if (event.type === "item.delta") heard += event.delta.length;
  const ms = performance.now() - start;
  if (heard !== bytes) throw new Error(`heard ${heard} of ${bytes}`);
  await session.close();
  await engine.close();
  model.close();
  server.close();
  return { ms, journalBytes: statSync(path).size };
}

async function serveAnswer(bytes: number): Promise<{ readonly url: string; close(): void }> {
  const item = { type: "message", id: "m1", role: "assistant", status: "completed" };
  const delta = frame("response.output_text.delta", { item_id: "m1", output_index: 0, content_index: 0, delta: piece });
  const server = createServer((incoming, response) => {
    incoming.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(frame("response.created", { response: { id: "r" } }));
    response.write(frame("response.output_item.added", { output_index: 0, item: { ...item, content: [] } }));
    const batch = delta.repeat(1_000);
    for (let sent = 0; sent < bytes; sent += piece.length * 1_000) response.write(batch);
    const content = [{ type: "output_text", text: piece.repeat(bytes / piece.length), annotations: [] }];
    response.write(frame("response.output_item.done", { output_index: 0, item: { ...item, content } }));
    response.end(
      frame("response.completed", {
        response: { id: "r", status: "completed", usage: { input_tokens: 1, output_tokens: 1 } },
      }),
    );
  });
  return listen(server);
}

/** As the interactive session draws it: sixty times a second at most, here every 2,000 pieces. */
function drawing(): readonly BenchRow[] {
  const draw = (bytes: number, end = "\n\n") => {
    const view = createStreamedText(createTheme(false));
    const start = performance.now();
    for (let sent = 0, n = 0; sent < bytes; sent += piece.length, n++) {
      view.append(n % 40 === 39 ? end : piece);
      if (n % 2_000 === 0) view.render(100);
    }
    view.render(100);
    return performance.now() - start;
  };
  draw(2_000_000); // warm
  const [small, large] = [draw(500_000), draw(5_000_000)];
  const marked = draw(500_000, " with a **mark**\n\n");
  return [
    {
      name: "the same, drawn in the terminal's view",
      value: large,
      unit: "ms",
      ratio: large / small,
      baseline: "0.5 MB",
      aim: "1 s, ≤ 11 (linear)",
    },
    {
      name: "0.5 MB with a mark in every paragraph, drawn",
      value: marked,
      unit: "ms",
      ratio: marked / small,
      baseline: "plain words",
    },
  ];
}
