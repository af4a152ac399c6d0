/** The service on PostgreSQL: the same laws, and what only several processes can show. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createDbosDispatcher,
  createPostgresBooks,
  createPostgresLimits,
  createPostgresStore,
  createPostgresTokens,
  openDatabase,
} from "../../src/serve/postgres.ts";
import { has } from "../needs.ts";
import { startPostgres, type TestPostgres } from "../postgres.ts";
import { dispatcherLaws } from "./dispatcher.ts";
import { startTestService, untilEnded, untilStatus, type TestServiceOptions } from "./service.ts";
import { tenantLaws } from "./tenants.ts";

describe.skipIf(!has("PostgreSQL"))("the service over a database (needs PostgreSQL)", () => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  }, 60_000);
  afterAll(() => postgres?.stop());

  const open = async (url?: string, places = 20, placesPerTenant = 10) => {
    const database = await openDatabase({ url: url ?? (await postgres.database()) });
    const store = await createPostgresStore({ database });
    const dispatcher = await createDbosDispatcher({ database, store, places, placesPerTenant, lookMs: 100 });
    return { database, store, dispatcher };
  };
  const backing = async (url?: string) => {
    const { database, store, dispatcher } = await open(url);
    return { store, dispatcher, tokens: createPostgresTokens(database), shared: createPostgresBooks(database) };
  };
  /** Answers requests and runs nothing. */
  const api = async (url: string) => {
    return startTestService({ ...(await backing(url)), steps: [], isApi: true });
  };

  dispatcherLaws("DBOS", async () => {
    const { store, dispatcher } = await open(undefined, 2, 1);
    return { dispatcher, close: () => store.close() };
  });
  tenantLaws("two tenants", () => backing());

  const start = async (url: string, options: TestServiceOptions) =>
    startTestService({ ...(await backing(url)), ...options });

  test("a message to one process is answered by another, and every record is told once", async () => {
    const url = await postgres.database();
    const door = await api(url);
    const worker = await start(url, {
      steps: [{ text: "Looking.", calls: [{ name: "look", input: { text: "a" } }] }, { text: "Done." }],
    });
    const client = await door.client();
    const { id } = await client.create({});
    const seen: number[] = [];
    const live: string[] = [];
    const listening = (async () => {
      for await (const event of client.events(id, -1, AbortSignal.timeout(60_000))) {
        if (event.type === "live") live.push(event.event.type);
        if (event.type !== "record") continue;
        seen.push(event.record.n);
        if (event.record.type === "turn.ended") break;
      }
    })();
    await client.send(id, { text: "go" }, "key");
    await client.send(id, { text: "go" }, "key");
    await listening;
    expect(seen).toEqual(seen.map((_, index) => index));
    expect(live).toContain("item.delta");
    expect(worker.ran).toEqual(["look a"]);
    expect(await untilEnded(client, id)).toEqual(["done"]);
    await worker.close();
    await door.close();
  });

  test("a question waits without a worker, is answered meanwhile, and the next worker goes on", async () => {
    const url = await postgres.database();
    const steps = [{ calls: [{ name: "deploy", input: { text: "prod" } }] }, { text: "Deployed." }];
    const door = await api(url);
    const first = await start(url, { steps });
    const client = await door.client();
    const { id } = await client.create({});
    await client.send(id, { text: "deploy" });
    await untilStatus(client, id, "waiting");
    await first.close();
    const { request } = (await client.approvals())[0]!;
    await client.approve(id, request.call.id, { answer: "once", hash: request.hash });
    const second = await start(url, { steps });
    expect(await untilEnded(client, id)).toEqual(["done"]);
    expect([first.ran, second.ran]).toEqual([[], ["deploy prod"]]);
    await second.close();
    await door.close();
  });

  test("a worker that drains in the middle of a turn puts it into the queue of everybody", async () => {
    const url = await postgres.database();
    const steps = [{ calls: [{ name: "slow", input: { text: "one" } }] }, { text: "Done." }];
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const door = await api(url);
    const first = await start(url, { steps, hold: () => held });
    const client = await door.client();
    const { id } = await client.create({});
    await client.send(id, { text: "go" });
    const begun = async () => (await client.records(id)).records.some(({ type }) => type === "call.started");
    await expect.poll(begun, { timeout: 20_000 }).toBe(true);
    const closed = first.close();
    release();
    await closed;
    const database = await openDatabase({ url });
    const { rows } = await database.query(
      "select from callgate_dbos.workflow_status where status = 'ENQUEUED' and deduplication_id = $1",
      [`forgotten ${id}`],
    );
    expect(rows).toHaveLength(1);
    await database.close();
    const second = await start(url, { steps });
    expect(await untilEnded(client, id)).toEqual(["done"]);
    expect([first.ran, second.ran]).toEqual([["slow one"], []]);
    await second.close();
    await door.close();
  });

  test("a tenant runs as many sessions as it may on all processes together, and the others follow one by one", async () => {
    const url = await postgres.database();
    const door = await api(url);
    const now = { running: 0, most: 0 };
    const hold = async () => {
      now.most = Math.max(now.most, ++now.running);
      await new Promise((resolve) => setTimeout(resolve, 30));
      now.running--;
    };
    const limited = async () => {
      const database = await openDatabase({ url });
      const store = await createPostgresStore({ database });
      const dispatcher = await createDbosDispatcher({ database, store, mayRun: async () => 2, lookMs: 100 });
      const shared = createPostgresBooks(database);
      const steps = [{ calls: [{ name: "slow" }] }, { text: "Done." }];
      return startTestService({ store, dispatcher, shared, tokens: createPostgresTokens(database), steps, hold });
    };
    const worker = await limited();
    const client = await door.client("small");
    const ids = await Promise.all(Array.from({ length: 8 }, async () => (await client.create({})).id));
    await Promise.all(ids.map((id) => client.send(id, { text: "go" })));
    for (const id of ids) expect(await untilEnded(client, id)).toEqual(["done"]);
    expect(now.most).toBeLessThanOrEqual(2);
    expect(worker.ran).toHaveLength(8);
    await worker.close();
    await door.close();
  });

  test("the wish to end reaches the worker that runs the turn", async () => {
    const url = await postgres.database();
    const door = await api(url);
    let isRunning = () => {};
    const began = new Promise<void>((resolve) => (isRunning = resolve));
    const worker = await start(url, {
      steps: [{ calls: [{ name: "slow" }] }],
      hold: () => {
        isRunning();
        return new Promise((resolve) => setTimeout(resolve, 60_000).unref());
      },
    });
    const client = await door.client();
    const { id } = await client.create({});
    await client.send(id, { text: "go" });
    await began;
    await client.cancel(id);
    expect(await untilEnded(client, id)).toEqual(["interrupted"]);
    await worker.close();
    await door.close();
  });

  test("rates and budgets are one for all processes, and what was asked for is chained", async () => {
    const url = await postgres.database();
    const database = await openDatabase({ url });
    const [a, b] = [createPostgresBooks(database), createPostgresBooks(database)];
    const taken = [];
    for (const books of [a, b, a]) taken.push(await books.rates.take("messages t", 3));
    expect(taken).toEqual([0, 0, 0]);
    const [wait, again] = [await b.rates.take("messages t", 3), await a.rates.take("messages t", 3)];
    // Asking again takes nothing away from what has come in meanwhile.
    expect(wait).toBeGreaterThan(0);
    expect(again).toBeLessThanOrEqual(wait);
    await a.usage.add("t", { calls: 2, usd: 0.5 });
    expect(await b.usage.add("t", { calls: 1 })).toEqual({ calls: 3, usd: 0.5 });
    const limits = createPostgresLimits(database);
    await limits.set(undefined, { running: 3, callsPerDay: 7 });
    await limits.set("t", { callsPerDay: Infinity });
    expect(await limits.get("t")).toEqual({ running: 3, callsPerDay: Infinity });
    expect(await createPostgresLimits(database).get("other")).toEqual({ running: 3, callsPerDay: 7 });
    await limits.set("t", {});
    expect(await limits.list()).toEqual([{ limits: { running: 3, callsPerDay: 7 } }]);
    expect(await a.usage.today("t")).toEqual({ calls: 3, usd: 0.5 });
    expect(await a.usage.today("other")).toEqual({ calls: 0, usd: 0 });
    await Promise.all([a, b, a].map((books, n) => books.audit("t", { action: "x", n })));
    const { rows } = await database.query<{ n: string; hash: string; right: boolean }>(`
      select n, hash = encode(sha256(convert_to(coalesce(lag(hash) over (order by n), '') || entry, 'UTF8')), 'hex') as right
      from callgate.audit where tenant = 't' order by n`);
    expect(rows).toEqual([1, 2, 3].map((n) => ({ n: String(n), right: true })));
    await database.close();
  });
});
