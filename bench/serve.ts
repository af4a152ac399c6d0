/**
 * The service under load: many sessions at once with many listeners, on files and on PostgreSQL; what a call costs
 * there; what waits; how soon another worker goes on; what keeping a folder costs. The model is scripted and its tool
 * does nothing: what is measured is the service. `CALLGATE_BENCH_SERVE=files,folder,worker,postgres,takeover` runs parts.
 */
import { fork, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createClient, type Client } from "callgate/client";
import { createEngine, defineTool } from "callgate";
import {
  createFileStore,
  createService,
  openTokenFile,
  issueToken,
  startServing,
  type OpenSession,
  type ServiceOptions,
  type SessionStore,
} from "callgate/serve";
import {
  createDbosDispatcher,
  createPostgresBooks,
  createPostgresStore,
  createPostgresTokens,
  openDatabase,
} from "callgate/serve-postgres";
import { createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";
import { createRunner } from "../src/serve/runner.ts";
import { createFolderStates } from "../src/workspace/folder-states.ts";
import { startPostgres } from "../scripts/postgres.mjs";
import { postgresFolder } from "../test/needs.ts";
import { median, percentile, type BenchRow } from "./measure.ts";

const sessions = Number(process.env["CALLGATE_BENCH_SESSIONS"] ?? 200);
const listeners = 5 * sessions;
const calls = 5;
const waiting = 10_000;

const allParts = ["folder", "files", "worker", "postgres", "takeover"];

export async function run(): Promise<readonly BenchRow[]> {
  const parts = new Set(process.env["CALLGATE_BENCH_SERVE"]?.split(",") ?? allParts);
  const folder = mkdtempSync(join(tmpdir(), "callgate-bench-"));
  const rows: BenchRow[] = [];
  try {
    if (parts.has("folder")) rows.push(...(await keptFolder(join(folder, "kept"))));
    if (parts.has("files"))
      rows.push(
        ...(await load("files", folder, async () => ({
          store: createFileStore({ folder, ownTenant: "main" }),
          tokens: openTokenFile(),
        }))),
      );
    const bin = postgresFolder();
    if (bin === undefined) return rows;
    const postgres = await startPostgres(bin);
    try {
      if (parts.has("worker")) rows.push(...(await workers(folder, await postgres.database())));
      if (parts.has("postgres")) rows.push(...(await onPostgres(folder, await postgres.database())));
      if (parts.has("takeover")) rows.push(...(await takeOvers(folder, await postgres.database())));
    } finally {
      await postgres.stop();
    }
    return rows;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const noop = defineTool({
  name: "look",
  description: "Does nothing.",
  input: { type: "object", properties: { n: { type: "number" } } } as const,
  mutates: false,
  run: () => "done",
});

/** One service with its HTTP door, and a client of it. */
async function start(folder: string, backing: Pick<ServiceOptions, "store" | "tokens" | "dispatcher" | "shared">) {
  const open: OpenSession = async ({ stored, records, journal, approver, onEvent }) => {
    const engine = createEngine({ tools: [noop], workspace: folder, sandbox: "read-only" });
    const answered = records.filter(({ type, finish }) => type === "item.added" && finish !== undefined).length;
    const steps = [
      ...Array.from({ length: calls }, (_, n) => ({ calls: [{ name: "look", input: { n } }] })),
      { text: "Done." },
      ...Array.from({ length: 50 }, () => ({ text: "Yes." })),
    ];
    const session = createSession({
      id: stored.id,
      engine,
      model: createScriptedModel(steps.slice(answered)),
      approver,
      records,
      journal,
      onEvent,
    });
    return { session, close: engine.close };
  };
  const service = await createService({
    ...backing,
    open,
    checkSettings: async (_tenant, settings) => ({ cwd: folder, settings }),
    look: { tools: async () => [], rules: async () => [], checkPolicy: async () => ({}) },
    version: "0",
    model: "scripted",
    limits: () => ({ running: sessions, messagesPerMinute: Infinity, requestsPerMinute: Infinity }),
  });
  const serving = await startServing({ service });
  const { token } = await issueToken(backing.tokens, { tenant: "main", name: "bench", roles: ["watch", "talk"] });
  const { url } = serving;
  return { client: createClient({ url, token }), url, token, close: serving.close };
}

/** All sessions at once, each with its share of the listeners; every record is timed from its writing to its arrival. */
async function load(
  name: string,
  folder: string,
  open: () => Promise<Pick<ServiceOptions, "store" | "tokens" | "dispatcher" | "shared">>,
): Promise<readonly BenchRow[]> {
  const { client, url, token, close } = await start(folder, await open());
  const ids: string[] = [];
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let n = 0; n < sessions; n++) ids.push((await client.create({})).id);
  globalThis.gc?.();
  const perIdle = (process.memoryUsage().heapUsed - before) / sessions / 1024;
  const child = fork(fileURLToPath(new URL("../../bench/serve-listeners.mjs", import.meta.url)));
  const told = () => new Promise<unknown>((resolve) => child.once("message", resolve));
  const connected = told();
  child.send({ url, token, ids, count: listeners });
  await connected;
  const ended = told();
  const [cpu, at] = [process.cpuUsage(), performance.now()];
  await Promise.all(ids.map((id) => client.send(id, { text: "go" })));
  const { delays } = (await ended) as { readonly delays: readonly number[] };
  const seconds = (performance.now() - at) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const latency = await wakeLatency(client, ids.slice(0, 20));
  await close();
  const total = sessions * calls;
  return [
    {
      name: `${name}: ${sessions} sessions at once, ${listeners} listeners: calls`,
      value: total / seconds,
      unit: "/s",
    },
    {
      name: `${name}: CPU per call, with everything told to 5 listeners`,
      value: (user + system) / 1000 / total,
      unit: "ms",
    },
    { name: `${name}: records that reached a listener`, value: delays.length / seconds, unit: "/s" },
    { name: `${name}: p50 from a record to a listener`, value: median(delays), unit: "ms" },
    { name: `${name}: p99 from a record to a listener`, value: percentile(delays, 0.99), unit: "ms" },
    { name: `${name}: memory of an idle session`, value: perIdle, unit: "KB" },
    { name: `${name}: from a message to its turn, p50`, value: latency, unit: "ms", aim: "≤ 100" },
  ];
}

/** One message after the other to sessions that have nothing to do. */
async function wakeLatency(client: Client, ids: readonly string[]): Promise<number> {
  const delays: number[] = [];
  for (const id of ids) {
    const { records } = await client.records(id);
    const sentAt = Date.now();
    await client.send(id, { text: "and?" });
    for await (const event of client.events(id, records.length - 1, AbortSignal.timeout(60_000))) {
      if (event.type !== "record" || event.record.type !== "turn.started") continue;
      delays.push(event.record.at - sentAt);
      break;
    }
  }
  return median(delays);
}

async function onPostgres(folder: string, url: string): Promise<readonly BenchRow[]> {
  const open = async () => {
    const database = await openDatabase({ url });
    const store = await createPostgresStore({ database });
    const dispatcher = await createDbosDispatcher({ database, store, places: sessions, placesPerTenant: sessions });
    return { store, dispatcher, tokens: createPostgresTokens(database), shared: createPostgresBooks(database) };
  };
  return [...(await load("PostgreSQL", folder, open)), ...(await manyWaiting(folder, url, open))];
}

const [workerSessions, workerCalls] = [16, 25];

/** What a worker does for a call, without listeners and requests: the same sessions on files and on PostgreSQL. */
async function workers(folder: string, url: string): Promise<readonly BenchRow[]> {
  const database = await openDatabase({ url });
  const commits: number[] = [];
  await database.query("create table bench (n int)");
  for (let n = 0; n < 50; n++) {
    const at = performance.now();
    await database.query("insert into bench values (1)");
    commits.push(performance.now() - at);
  }
  const own = join(folder, "worker");
  const files = await playSessions(createFileStore({ folder: own, ownTenant: "main" }), own);
  const rows = await playSessions(await createPostgresStore({ database }), own);
  const alone = 1000 / (2 * median(commits));
  return [
    { name: "a commit of one row: the floor of every transaction, p50", value: median(commits), unit: "ms" },
    {
      name: "PostgreSQL: transactions that a call writes (and 2 for each turn)",
      value: rows.appends,
      unit: "",
      aim: "≤ 2",
    },
    {
      name: "PostgreSQL: calls of one session, one after the other",
      value: rows.serial,
      unit: "/s",
      ratio: rows.serial / alone,
      baseline: `two commits alone: ${alone.toFixed(0)} /s`,
    },
    {
      name: `PostgreSQL: calls of ${workerSessions} sessions on one worker`,
      value: rows.perSecond,
      unit: "/s",
      aim: "≥ 150",
    },
    { name: "PostgreSQL: calls for each second of the worker's CPU", value: 1000 / rows.cpu, unit: "/s", aim: "≥ 150" },
    {
      name: "PostgreSQL: worker's CPU per call",
      value: rows.cpu,
      unit: "ms",
      ratio: rows.cpu / files.cpu,
      baseline: "files",
      aim: "≤ 1.2 ×",
    },
  ];
}

/** Sessions on a bare runner, all at once, and one of them alone. */
async function playSessions(store: SessionStore, folder: string) {
  let appends = 0;
  const counted: SessionStore = { ...store, append: (...given) => (appends++, store.append(...given)) };
  const engine = createEngine({ tools: [noop], workspace: folder, sandbox: "read-only" });
  const runner = createRunner({
    store: counted,
    open: async ({ stored, records, journal, approver }) => ({
      session: createSession({
        id: stored.id,
        engine,
        model: createScriptedModel([
          ...Array.from({ length: workerCalls }, (_, n) => ({ calls: [{ name: "look", input: { n } }] })),
          { text: "Done." },
        ]),
        approver,
        records,
        journal,
      }),
      close: async () => undefined,
    }),
  });
  const prepare = async (id: string) => {
    await store.create({ id, tenant: "main", title: "", model: "m", cwd: folder, settings: {} });
    await store.post(id, { kind: "message", body: { content: [{ type: "text", text: "go" }] } });
    return id;
  };
  const timed = async (ids: readonly string[]) => {
    const [cpu, at] = [process.cpuUsage(), performance.now()];
    await Promise.all(ids.map((id) => runner.run(id)));
    const { user, system } = process.cpuUsage(cpu);
    return { ms: performance.now() - at, cpu: (user + system) / 1000 };
  };
  await timed([await prepare("warm")]);
  appends = 0;
  const one = await timed([await prepare("one")]);
  const perCall = (appends - 2) / workerCalls;
  const ids = await Promise.all(Array.from({ length: workerSessions }, (_, n) => prepare(`many-${n}`)));
  const many = await timed(ids);
  await engine.close();
  await store.close();
  const total = workerSessions * workerCalls;
  return {
    appends: perCall,
    serial: (workerCalls * 1000) / one.ms,
    perSecond: (total * 1000) / many.ms,
    cpu: many.cpu / total,
  };
}

/** A worker is killed in the middle of a turn, and another goes on: from the kill to its first record. */
async function takeOvers(folder: string, url: string): Promise<readonly BenchRow[]> {
  const cli = fileURLToPath(new URL("../../dist/cli.cjs", import.meta.url));
  const begin = async (name: string, ...args: string[]) => {
    const data = join(folder, name);
    const child = spawn(process.execPath, [cli, "serve", "--database", url, "--data", data, "--json", ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const line = await new Promise<string>((resolve) => createInterface(child.stdout).once("line", resolve));
    return { child, data, told: JSON.parse(line) as { url: string; token: string } };
  };
  const api = await begin("api", "--role", "api", "--port", "0");
  const client = createClient({ url: api.told.url, token: api.told.token });
  let live = [await begin("w0", "--role", "worker"), await begin("w1", "--role", "worker")];
  const silences: number[] = [];
  for (let round = 0; round < 8; round++) {
    const { id } = await client.create({ base: { kind: "empty" } });
    await client.send(id, { text: Array.from({ length: 60 }, () => "read nothing.txt").join("\n") });
    let killed: { readonly at: number; readonly data: string } | undefined;
    for await (const event of client.events(id, -1, AbortSignal.timeout(30_000))) {
      if (event.type !== "record") continue;
      const { type, at } = event.record;
      if (killed !== undefined && type === "session.started") {
        silences.push(at - killed.at);
        break;
      }
      if (killed !== undefined || type !== "call.ended") continue;
      const { records } = await client.records(id);
      const cwd = String(records.find((record) => record.type === "session.started")?.["cwd"]);
      const worker = live.find(({ data }) => cwd.startsWith(data))!;
      worker.child.kill("SIGKILL");
      killed = { at: Date.now(), data: worker.data };
    }
    live = live.filter(({ data }) => data !== killed?.data);
    live.push(await begin(`w${round + 2}`, "--role", "worker"));
  }
  for (const { child } of [api, ...live]) child.kill("SIGKILL");
  return [
    {
      name: "a worker is killed: another goes on after, p50 of 8",
      value: median(silences),
      unit: "ms",
      aim: "≤ 1,000",
    },
    { name: "the same, the longest", value: Math.max(...silences), unit: "ms", aim: "≤ 3,000" },
  ];
}

/** Sessions that wait for a person are rows: a worker's memory does not grow with them. */
async function manyWaiting(
  folder: string,
  url: string,
  open: () => Promise<Pick<ServiceOptions, "store" | "tokens" | "dispatcher" | "shared">>,
): Promise<readonly BenchRow[]> {
  const { client, close } = await start(folder, await open());
  const { id } = await client.create({});
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const database = await openDatabase({ url });
  await database.query(
    `insert into callgate.session (id, tenant, title, status, model, cwd, settings)
     select 'waiting-' || n, 'main', '', 'waiting', 'm', '/', '{}' from generate_series(1, ${waiting}) as n`,
  );
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  globalThis.gc?.();
  const grown = (process.memoryUsage().rss - before) / 1024 / 1024;
  const latency = await wakeLatency(client, [id]);
  await database.close();
  await close();
  return [
    { name: `memory that ${waiting} waiting sessions take in a worker`, value: grown, unit: "MB", aim: "0" },
    { name: `one of ${waiting} is awake after`, value: latency, unit: "ms", aim: "≤ 200" },
  ];
}

/** Processor time of the programs that have ended, in milliseconds. */
function childrenCpu(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) * 10; // a hundred ticks a second
}

async function keptFolder(root: string): Promise<readonly BenchRow[]> {
  const folder = join(root, "work");
  for (let n = 0; n < 5_000; n++) {
    if (n % 100 === 0) mkdirSync(join(folder, `d${n / 100}`), { recursive: true });
    writeFileSync(join(folder, `d${Math.floor(n / 100)}`, `f${n}`), `file ${n}\n`.repeat(20));
  }
  const states = createFolderStates(folder, join(root, "states"));
  await states.keep(async () => undefined);
  const rounds = 10;
  const [own, children] = [process.cpuUsage(), childrenCpu()];
  for (let round = 0; round < rounds; round++) {
    writeFileSync(join(folder, "d0", "f0"), `changed ${round}\n`);
    await states.keep(async () => undefined);
  }
  const { user, system } = process.cpuUsage(own);
  const cpu = ((user + system) / 1000 + childrenCpu() - children) / rounds;
  return [{ name: "keeping a folder of 5,000 files, one changed: CPU", value: cpu, unit: "ms", aim: "≤ 50" }];
}
