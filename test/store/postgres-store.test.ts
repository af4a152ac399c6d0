import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Fenced } from "../../src/store/session-store.ts";
import { openDatabase } from "../../src/store/postgres/database.ts";
import { createPostgresStore } from "../../src/store/postgres/store.ts";
import { has } from "../needs.ts";
import { startPostgres, type TestPostgres } from "../postgres.ts";
import { sessionStoreLaws } from "./session-store.ts";

describe.skipIf(!has("PostgreSQL"))("sessions in a database (needs PostgreSQL)", () => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  }, 60_000);
  afterAll(() => postgres?.stop());
  const open = async (url?: string, frozenAfterMs = 10_000) =>
    createPostgresStore({
      database: await openDatabase({ url: url ?? (await postgres.database()) }),
      frozenAfterMs,
    });
  const session = (id: string, tenant = "main") => ({ id, tenant, title: id, model: "m", cwd: "/w", settings: {} });

  sessionStoreLaws("PostgreSQL", open);

  describe("two processes", () => {
    test("hear of each other's records, mail and live events, and share locks", async () => {
      const url = await postgres.database();
      const [a, b] = await Promise.all([open(url), open(url)]);
      await a.create(session("s"));
      const heard: string[] = [];
      const texts: string[] = [];
      b.watch((change) => {
        heard.push(change.type);
        if (change.type === "live") texts.push(String(change.event["delta"]));
      });
      await a.append("s", 0, [{ type: "x" }]);
      await a.post("s", { kind: "message", body: {} });
      const long = "ü".repeat(30_000);
      a.publish("s", "main", { type: "item.delta", index: 0, field: "text", delta: long });
      await expect.poll(() => heard).toEqual(expect.arrayContaining(["records", "mail", "live"]));
      await expect.poll(() => texts.join("") === long).toBe(true);
      const release = await a.take("s");
      expect(await b.take("s")).toBeUndefined();
      await release?.();
      expect(await b.take("s")).toBeDefined();
      await Promise.all([a.close(), b.close()]);
    });

    test("of two who write the same record one is fenced, whoever holds the lock", async () => {
      const url = await postgres.database();
      const [a, b] = await Promise.all([open(url), open(url)]);
      await a.create(session("s"));
      const outcomes = await Promise.allSettled(
        [a, b, a, b].map((store, place) => store.append("s", 0, [{ type: "x", place }])),
      );
      const refused = outcomes.filter((one) => one.status === "rejected");
      expect(refused).toHaveLength(3);
      for (const { reason } of refused) expect(reason).toBeInstanceOf(Fenced);
      expect(await a.read("s", -1)).toHaveLength(1);
      await Promise.all([a.close(), b.close()]);
    });

    test("a connection that is cut loses its locks, and both go on", async () => {
      const url = await postgres.database();
      const [a, b] = await Promise.all([open(url), open(url)]);
      await a.create(session("s"));
      expect(await a.take("s")).toBeDefined();
      const admin = await openDatabase({ url });
      await admin.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'callgate locks' or application_name = 'callgate changes'",
      );
      // Whoever is first has it; nobody has it twice.
      await expect.poll(async () => (await b.take("s")) !== undefined || (await a.take("s")) === undefined).toBe(true);
      const heard: string[] = [];
      b.watch(({ type }) => heard.push(type));
      await expect
        .poll(async () => {
          await a.update("s", { title: "again" });
          return heard;
        })
        .toContain("session");
      await Promise.all([a.close(), b.close(), admin.close()]);
    });

    test("the server can be killed and started again", async () => {
      const own = await startPostgres();
      const store = await open(own.url);
      await store.create(session("s"));
      await store.append("s", 0, [{ type: "x" }]);
      await own.restart();
      await expect.poll(() => store.read("s", -1).catch(() => []), { timeout: 20_000 }).toHaveLength(1);
      await expect.poll(() => store.take("s").catch(() => undefined), { timeout: 20_000 }).toBeDefined();
      await store.close();
      await own.stop();
    });
  });

  test("rows of another tenant are not there even for a query that forgets to ask whose they are", async () => {
    const url = await postgres.database();
    const store = await open(url);
    await store.create(session("of-a", "a"));
    await store.append("of-a", 0, [{ type: "x" }]);
    const post = await store.post("of-a", { kind: "message", body: {} });
    expect(post.isNew).toBe(true);
    const database = await openDatabase({ url });
    for (const table of ["session", "journal", "mail", "pack", "token", "usage", "audit"]) {
      const all = `select * from callgate.${table}`;
      expect((await database.as("b").query(all)).rows, table).toEqual([]);
      if (table === "session" || table === "journal" || table === "mail")
        expect((await database.as("a").query(all)).rows, table).toHaveLength(1);
      await expect(database.as("b").query(`truncate callgate.${table}`)).rejects.toThrow("permission denied");
    }
    expect((await database.as("b").query("delete from callgate.session")).rowCount).toBe(0);
    await expect(
      database
        .as("b")
        .query("insert into callgate.mail (session, tenant, kind, body) values ('of-a', 'a', 'cancel', '{}')"),
    ).rejects.toThrow("row-level security");
    await database.close();
    await store.close();
  });

  test("several processes may make the tables at once, and a newer database is refused", async () => {
    const url = await postgres.database();
    const opened = await Promise.all(Array.from({ length: 4 }, () => openDatabase({ url })));
    await opened[0]!.query("update callgate.version set step = 1000");
    await expect(openDatabase({ url })).rejects.toThrow("newer Callgate");
    await Promise.all(opened.map((database) => database.close()));
  });
});
