/**
 * The service under load: many sessions at once with many listeners, on files and on PostgreSQL; what a call costs
 * there; what waits; what keeping a folder costs. The model is scripted and its tool does nothing: what is measured is
 * the service.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type Client } from "callgate/client";
import { createEngine, defineTool } from "callgate";
import {
  createFileStore,
  createRunner,
  createService,
  createTokenFile,
  issueToken,
  startServing,
  type OpenSession,
  type ServiceOptions,
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
import { createFolderStates } from "../src/workspace/folder-states.ts";
import { startPostgres, type OwnPostgres } from "../scripts/postgres.mjs";
import { postgresFolder } from "../test/needs.ts";
import { median, percentile, type BenchRow } from "./measure.ts";

const sessions = Number(process.env["CALLGATE_BENCH_SESSIONS"] ?? 200);
const listeners = 5 * sessions;
const calls = 5;
const waiting = 10_000;

export async function run(): Promise<readonly BenchRow[]> {
  const folder = mkdtempSync(join(tmpdir(), "callgate-bench-"));
  const rows: BenchRow[] = [];
  try {
    const files = await load("files", folder, async () => ({
      store: createFileStore({ folder, ownTenant: "main" }),
      tokens: createTokenFile(),
    }));
    rows.push(...files.rows, ...(await keptFolder(join(folder, "kept"))));
    const bin = postgresFolder();
    if (bin === undefined) return rows;
    const postgres = await startPostgres(bin);
    try {
      rows.push(...(await onPostgres(folder, postgres, files.cpuPerCall)));
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
  return { client: createClient({ url: serving.url, token }), close: serving.close };
}

/** All sessions at once, each with its share of the listeners; every record is timed from its writing to its arrival. */
async function load(
  name: string,
  folder: string,
  open: () => Promise<Pick<ServiceOptions, "store" | "tokens" | "dispatcher" | "shared">>,
): Promise<{ readonly rows: readonly BenchRow[]; readonly cpuPerCall: number }> {
  const { client, close } = await start(folder, await open());
  const ids: string[] = [];
  const before = process.memoryUsage().rss;
  for (let n = 0; n < sessions; n++) ids.push((await client.create({})).id);
  const perIdle = (process.memoryUsage().rss - before) / sessions / 1024;
  const delays: number[] = [];
  let connected = 0;
  let allConnected = () => {};
  const connecting = new Promise<void>((resolve) => (allConnected = resolve));
  const follow = async (id: string) => {
    let isConnected = false;
    for await (const event of client.events(id, -1, new AbortController().signal)) {
      if (!isConnected && ++connected === listeners) allConnected();
      isConnected = true;
      if (event.type !== "record") continue;
      delays.push(Date.now() - event.record.at);
      if (event.record.type === "turn.ended") return;
    }
  };
  const following = Array.from({ length: listeners }, (_, n) => follow(ids[n % sessions]!));
  await connecting;
  const [cpu, at] = [process.cpuUsage(), performance.now()];
  await Promise.all(ids.map((id) => client.send(id, { text: "go" })));
  await Promise.all(following);
  const seconds = (performance.now() - at) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const latency = await wakeLatency(client, ids.slice(0, 20));
  await close();
  const total = sessions * calls;
  const cpuPerCall = (user + system) / 1000 / total;
  return {
    cpuPerCall,
    rows: [
      {
        name: `${name}: ${sessions} sessions at once, ${listeners} listeners: calls`,
        value: total / seconds,
        unit: "/s",
      },
      { name: `${name}: CPU per call, the listeners' reading included`, value: cpuPerCall, unit: "ms" },
      { name: `${name}: p99 from a record to a listener`, value: percentile(delays, 0.99), unit: "ms" },
      { name: `${name}: p50 from a record to a listener`, value: median(delays), unit: "ms" },
      { name: `${name}: memory of an idle session`, value: perIdle, unit: "KB" },
      { name: `${name}: from a message to its turn, p50`, value: latency, unit: "ms", aim: "≤ 100" },
    ],
  };
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

async function onPostgres(folder: string, postgres: OwnPostgres, filesCpu: number): Promise<readonly BenchRow[]> {
  const url = await postgres.database();
  const open = async () => {
    const database = await openDatabase({ url });
    const store = await createPostgresStore({ database });
    const dispatcher = await createDbosDispatcher({ database, store, places: sessions, placesPerTenant: sessions });
    return { store, dispatcher, tokens: createPostgresTokens(database), shared: createPostgresBooks(database) };
  };
  const { rows, cpuPerCall } = await load("PostgreSQL", folder, open);
  const written = await appendsPerCall(folder, url);
  const parked = await manyWaiting(folder, url, open);
  return [
    ...rows,
    { name: "PostgreSQL: CPU per call against files", value: cpuPerCall / filesCpu, unit: "×", aim: "≤ 1.2" },
    ...written,
    ...parked,
  ];
}

/** Transactions of one session's calls alone: what the journal takes, without listeners and the engine's own looking. */
async function appendsPerCall(folder: string, url: string): Promise<readonly BenchRow[]> {
  const database = await openDatabase({ url });
  const store = await createPostgresStore({ database });
  let appends = 0;
  const counted = {
    ...store,
    append: (...given: Parameters<typeof store.append>) => (appends++, store.append(...given)),
  };
  await store.create({ id: "counted", tenant: "main", title: "", model: "m", cwd: folder, settings: {} });
  const engine = createEngine({ tools: [noop], workspace: folder, sandbox: "read-only" });
  const runner = createRunner({
    store: counted,
    open: async ({ stored, records, journal, approver }) => ({
      session: createSession({
        id: stored.id,
        engine,
        model: createScriptedModel([
          ...Array.from({ length: 40 }, (_, n) => ({ calls: [{ name: "look", input: { n } }] })),
          { text: "Done." },
        ]),
        approver,
        records,
        journal,
      }),
      close: async () => undefined,
    }),
  });
  await store.post("counted", { kind: "message", body: { content: [{ type: "text", text: "go" }] } });
  const at = performance.now();
  await runner.run("counted");
  const ms = performance.now() - at;
  await engine.close();
  await store.close();
  return [
    { name: "PostgreSQL: transactions that a call writes", value: appends / 40, unit: "", aim: "≤ 2" },
    { name: "PostgreSQL: calls of one session, one after the other", value: 40_000 / ms, unit: "/s", aim: "≥ 150" },
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
  await states.keep();
  const rounds = 10;
  const [own, children] = [process.cpuUsage(), childrenCpu()];
  for (let round = 0; round < rounds; round++) {
    writeFileSync(join(folder, "d0", "f0"), `changed ${round}\n`);
    await states.keep();
  }
  const { user, system } = process.cpuUsage(own);
  const cpu = ((user + system) / 1000 + childrenCpu() - children) / rounds;
  return [{ name: "keeping a folder of 5,000 files, one changed: CPU", value: cpu, unit: "ms", aim: "≤ 50" }];
}
