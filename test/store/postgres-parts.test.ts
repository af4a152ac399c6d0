/** What the store in PostgreSQL stands on: locks, notifications, confined connections, tables and pieces of folders. */
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createFolderBlobs } from "../../src/store/packs.ts";
import { createChanges, type ChangesOptions } from "../../src/store/postgres/changes.ts";
import { openDatabase, type Database } from "../../src/store/postgres/database.ts";
import { createHold, type HoldOptions } from "../../src/store/postgres/hold.ts";
import { createPostgresPacks } from "../../src/store/postgres/packs.ts";
import { createPostgresStore, type PostgresStoreOptions } from "../../src/store/postgres/store.ts";
import { Unavailable, type StoreChange } from "../../src/store/session-store.ts";
import { has } from "../needs.ts";
import { startPostgres, type TestPostgres } from "../postgres.ts";

describe.skipIf(!has("PostgreSQL"))("the parts of the store in a database (needs PostgreSQL)", () => {
  let postgres: TestPostgres;
  let url: string;
  beforeAll(async () => {
    postgres = await startPostgres();
    url = await postgres.database();
  });
  afterAll(() => postgres?.stop());

  const openDb = async (address = url): Promise<Database> => {
    const database = await openDatabase({ url: address });
    onTestFinished(() => database.close());
    return database;
  };
  const openHold = async (options: HoldOptions = {}, address = url) => {
    const hold = createHold(await openDb(address), options);
    onTestFinished(() => hold.close());
    return hold;
  };
  const openChanges = async (options: ChangesOptions = {}, address = url) => {
    const changes = await createChanges(await openDb(address), options);
    onTestFinished(() => changes.close());
    return changes;
  };
  const openStore = async (options: Partial<PostgresStoreOptions> = {}, address = url) => {
    const store = await createPostgresStore({ database: await openDatabase({ url: address }), ...options });
    onTestFinished(() => store.close());
    return store;
  };
  const session = (id: string, tenant = "main") => ({ id, tenant, title: id, model: "m", cwd: "/w", settings: {} });
  const cut = (database: Database, name: string) =>
    database.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [name]);
  const locks = async (database: Database) => {
    const { rows } = await database.query<{ n: string }>(
      "select count(*) as n from pg_locks join pg_database d on d.oid = database where locktype = 'advisory' and datname = current_database()",
    );
    return Number(rows[0]!.n);
  };

  describe("who holds what", () => {
    test("a tenant has so many places on all processes together, and another tenant its own", async () => {
      const [a, b] = [await openHold(), await openHold()];
      const taken = await Promise.all([a, b, a, b, a].map((hold) => hold.takePlace("t", 3)));
      expect(taken.filter((place) => place !== undefined).toSorted()).toEqual([1, 2, 3]);
      expect(await b.takePlace("other", 1)).toBe(1);
      expect(await a.takePlace("other", 1)).toBeUndefined();
      const [owner, place] = taken[0] === undefined ? [b, taken[1]!] : [a, taken[0]];
      await owner.releasePlace("t", place);
      await owner.releasePlace("t", place); // the second time there is nothing to give back
      expect(await b.takePlace("t", 3)).toBe(place);
      expect(await a.takePlace("t", 3)).toBeUndefined();
    });

    test("a connection that breaks while it is made ready leaves nothing behind that keeps its successor waiting", async () => {
      const own = await postgres.database();
      const [database, beside] = [await openDb(own), await openDb(own)];
      let broken = 0;
      // Each of the first connections after the loss is cut off at one of its first statements.
      const breaking: Database = {
        ...database,
        async connect(options) {
          const connection = await database.connect(options);
          let statements = 0;
          return {
            ...connection,
            // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as the connection that it wraps
            async query<Row>(text: string, values?: readonly unknown[]) {
              if (broken > 0 && ++statements === broken && broken < 4) {
                broken++;
                await cut(beside, "callgate locks");
              }
              return connection.query<Row>(text, values);
            },
          };
        },
      };
      const hold = createHold(breaking, { frozenAfterMs: 300 });
      onTestFinished(() => hold.close());
      await hold.appear("w");
      expect(await hold.take("before")).toBe(true);
      broken = 1;
      await cut(beside, "callgate locks");
      const takeOnce = async (id: string): Promise<void> => {
        for (let tries = 0; tries < 200; tries++) {
          if (broken === 4 && (await hold.take(id).catch(() => false))) return;
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        throw new Error(`nobody can take ${id}`);
      };
      await takeOnce("after");
      await new Promise((resolve) => setTimeout(resolve, 700)); // longer than a silent connection lives
      await takeOnce("later");
      const { rows } = await beside.query<{ n: string }>(
        "select count(*) as n from pg_stat_activity where application_name = $1 and datname = current_database()",
        ["callgate locks"],
      );
      expect(Number(rows[0]!.n)).toBe(1);
    });

    test("a place that one process has is not given back by another", async () => {
      const [a, b] = [await openHold(), await openHold()];
      expect(await a.takePlace("theirs", 1)).toBe(1);
      await b.releasePlace("theirs", 1);
      expect(await b.takePlace("theirs", 1)).toBeUndefined();
    });

    test("without a limit there is always a place, and nothing is locked for it", async () => {
      const own = await postgres.database();
      const hold = await openHold({}, own);
      const database = await openDb(own);
      expect(await Promise.all([1, 2, 3].map(() => hold.takePlace("free", Infinity)))).toEqual([0, 0, 0]);
      expect(await locks(database)).toBe(0);
      await hold.takePlace("free", 2);
      expect(await locks(database)).toBe(1);
    });

    test("places are lost with the connection, and sessions are held again by whoever still runs them", async () => {
      const own = await postgres.database();
      const errors: unknown[] = [];
      const [a, b] = [await openHold({ onError: (error) => errors.push(error) }, own), await openHold({}, own)];
      const database = await openDb(own);
      expect([await a.take("s"), await a.takePlace("t", 1)]).toEqual([true, 1]);
      expect(await locks(database)).toBe(2);
      await cut(database, "callgate locks");
      // The session's lock is taken again without anybody asking for it.
      await expect.poll(() => locks(database)).toBe(1);
      expect(await b.take("s")).toBe(false);
      expect(await b.takePlace("t", 1)).toBe(1);
      expect(errors.length).toBeGreaterThan(0);
      await a.release("s");
      expect(await b.take("s")).toBe(true);
    });

    test("what another has taken while the connection was gone is lost, and can be had again after it", async () => {
      const own = await postgres.database();
      const name = own.split("/").at(-1)!;
      const [a, b] = [await openHold({}, own), await openHold({}, own)];
      const database = await openDb(own);
      expect([await a.take("s"), await b.take("other")]).toEqual([true, true]);
      await postgres.query(`alter database ${name} with allow_connections false`);
      const { rows } = await database.query<{ pid: number }>(
        "select pid from pg_locks join pg_stat_activity using (pid) where locktype = 'advisory' and application_name = 'callgate locks' and objid = (hashtextextended('session s', 0) & 4294967295)::oid",
      );
      await postgres.query(`select pg_terminate_backend(${rows[0]!.pid})`);
      await expect.poll(() => b.take("s")).toBe(true);
      await postgres.query(`alter database ${name} with allow_connections true`);
      await expect.poll(() => a.take("third")).toBe(true);
      expect(await a.take("s")).toBe(false);
      await b.release("s");
      await expect.poll(() => a.take("s")).toBe(true);
    });

    test("a worker is dead once its process is gone, and never in its own eyes", async () => {
      const own = await postgres.database();
      const [a, b] = [await openHold({}, own), createHold(await openDb(own))];
      await a.appear("worker a");
      await b.appear("worker b");
      expect([await a.findDead(), await b.findDead()]).toEqual([[], []]);
      await b.close();
      await expect.poll(() => a.findDead()).toEqual(["worker b"]);
      await a.forget("worker b");
      expect(await a.findDead()).toEqual([]);
      await cut(await openDb(own), "callgate locks");
      const c = await openHold({}, own);
      await expect.poll(() => c.findDead()).toEqual([]); // it has appeared again by itself
    });

    test("after it is closed nothing can be taken", async () => {
      const hold = createHold(await openDb());
      expect(await hold.take("closing")).toBe(true);
      await hold.close();
      await expect(hold.take("another")).rejects.toThrow("closed");
      expect(await (await openHold()).take("closing")).toBe(true);
    });
  });

  describe("what happens elsewhere", () => {
    /** Two processes on a database of their own, and what the second hears. */
    const pair = async (options: ChangesOptions = {}) => {
      const own = await postgres.database();
      const [a, b] = [await openChanges(options, own), await openChanges(options, own)];
      const heard: StoreChange[] = [];
      b.watch((change) => void heard.push(change));
      return { own, a, b, heard, database: await openDb(own) };
    };
    const live = (event: Record<string, string | number>): StoreChange => ({
      type: "live",
      id: "s",
      tenant: "t",
      event,
    });
    const textOf = (heard: readonly StoreChange[]) =>
      heard.map((change) => (change.type === "live" ? String(change.event["delta"] ?? "") : "")).join("");

    test("is heard once here and once there", async () => {
      const { a, heard } = await pair({ lookMs: 60_000 });
      const here: StoreChange[] = [];
      a.watch((change) => void here.push(change));
      a.tell({ type: "session", id: "s", tenant: "t" });
      a.tell({ type: "records", id: "s", tenant: "t", head: 1, records: [{ type: "x", n: 0, at: 1 }] });
      a.tell({ type: "mail", id: "s", tenant: "t", worker: "w" });
      await expect.poll(() => heard.length).toBe(3);
      expect(here).toHaveLength(3);
      expect(here[1]).toMatchObject({ records: [{ type: "x" }] });
      expect(heard).toContainEqual({ type: "mail", id: "s", tenant: "t", worker: "w" });
      expect(heard).toContainEqual({ type: "records", id: "s", tenant: "t", head: 1 });
    });

    test("any text arrives there whole and in order, however it was cut and whatever is in it", async () => {
      const { a, heard } = await pair({ gatherMs: 1, lookMs: 60_000 });
      const text = fc.string({ unit: "binary", maxLength: 30 });
      const run = async (pieces: readonly string[], times: number) => {
        heard.length = 0;
        const long = pieces.map((piece) => piece.repeat(times));
        for (const delta of long) a.tell(live({ type: "item.delta", index: 0, field: "text", delta }));
        a.tell({ type: "session", id: "end", tenant: "t" });
        await expect.poll(() => heard.at(-1)?.id).toBe("end");
        expect(textOf(heard)).toBe(long.join(""));
      };
      await fc.assert(fc.asyncProperty(fc.array(text, { maxLength: 6 }), fc.constantFrom(1, 900), run), {
        numRuns: 12,
      });
      await run(["😀", "\u0000", "\ud800", "ü\n"], 6_000);
    });

    test("pieces of one text are joined on the way, and those of two are not mixed up", async () => {
      const { a, heard } = await pair({ gatherMs: 200, lookMs: 60_000 });
      for (let n = 0; n < 50; n++) a.tell(live({ type: "item.delta", index: 0, field: "text", delta: `${n},` }));
      a.tell(live({ type: "item.delta", index: 1, field: "text", delta: "other" }));
      for (let n = 0; n < 9; n++) a.tell(live({ type: "call.progress", id: "c", progress: `${n} of 9` }));
      await expect.poll(() => heard.length).toBeGreaterThanOrEqual(3);
      const events = heard.map((change) => (change.type === "live" ? change.event : {}));
      expect(events).toEqual([
        { type: "item.delta", index: 0, field: "text", delta: Array.from({ length: 50 }, (_, n) => `${n},`).join("") },
        { type: "item.delta", index: 1, field: "text", delta: "other" },
        { type: "call.progress", id: "c", progress: "8 of 9" },
      ]);
    });

    test("what is too large to be told is left out, and holds up nothing", async () => {
      const { a, heard } = await pair({ lookMs: 60_000 });
      a.tell({ type: "live", id: "s", tenant: "t", event: { type: "x", list: ["y".repeat(20_000)] } });
      a.tell({ type: "session", id: "z".repeat(9_000), tenant: "t" });
      for (let n = 0; n < 300; n++) a.tell({ type: "session", id: `session number ${n} `.repeat(5), tenant: "t" });
      a.tell({ type: "session", id: "last", tenant: "t" });
      await expect.poll(() => heard.at(-1)?.id).toBe("last");
      expect(heard).toHaveLength(301);
    });

    test("words of others on the channel change nothing", async () => {
      const { a, heard, database } = await pair({ lookMs: 60_000 });
      for (const words of ["rubbish", "[]", "{}", "null", '{"origin":"x"}', '{"origin":"x","changes":[]}'])
        await database.query(`select pg_notify('callgate', $1)`, [words]);
      a.tell({ type: "session", id: "s", tenant: "t" });
      await expect.poll(() => heard.map(({ id }) => id)).toEqual(["s"]);
    });

    test("what nobody told is found by looking, and told once", async () => {
      const { heard, database } = await pair({ lookMs: 30 });
      const told = (head: number) => [
        { type: "session", id: "silent", tenant: "t" },
        { type: "records", id: "silent", tenant: "t", head },
      ];
      await database.query(
        "insert into callgate.session (id, tenant, title, model, cwd, settings, head) values ('silent', 't', '', 'm', '/', '{}', 2)",
      );
      await expect.poll(() => heard).toEqual(told(2));
      await database.query("update callgate.session set head = 5, updated_at = updated_at + 1 where id = 'silent'");
      await expect.poll(() => heard).toEqual([...told(2), ...told(5)]);
      await database.query(
        "insert into callgate.mail (session, tenant, kind, body) values ('silent', 't', 'cancel', '{}')",
      );
      // Mail is told until it is taken, because whoever should take it may have been lost.
      await expect.poll(() => heard.filter(({ type }) => type === "mail").length).toBeGreaterThan(1);
      expect(heard.filter(({ type }) => type !== "mail")).toEqual([...told(2), ...told(5)]);
    });

    test("what was told last is sent before it is closed", async () => {
      const { own, heard } = await pair({ gatherMs: 5_000, lookMs: 60_000 });
      const leaving = await createChanges(await openDb(own), { gatherMs: 5_000 });
      leaving.tell({ type: "session", id: "farewell", tenant: "t" });
      await leaving.close();
      await expect.poll(() => heard.map(({ id }) => id)).toContain("farewell");
    });

    test("a connection that was cut is opened again, and what came meanwhile is told", async () => {
      const { heard, own, database } = await pair({ lookMs: 60_000 });
      await cut(database, "callgate changes");
      const store = await openStore({}, own);
      await store.create(session("meanwhile", "t"));
      await expect.poll(() => heard.some(({ id }) => id === "meanwhile")).toBe(true);
    });
  });

  describe("confined connections", () => {
    test("however many tenants ask at once, each sees its own", async () => {
      const own = await postgres.database();
      const store = await openStore({}, own);
      const tenants = ["a", "b", "it's", '"', "", "\\", "ünï", "a'; drop schema callgate cascade; --", "$1"];
      for (const [n, tenant] of tenants.entries()) await store.create(session(`s${n}`, tenant));
      const database = await openDb(own);
      const asks = Array.from({ length: 60 }, (_, n) => n % tenants.length);
      const seen = await Promise.all(
        asks.map(async (n) => {
          const confined = database.as(tenants[n]!);
          const query = "select id from callgate.session";
          const { rows } =
            n % 2 === 0
              ? await confined.query<{ id: string }>(query)
              : await confined.transaction((transaction) => transaction.query<{ id: string }>(query));
          return rows.map(({ id }) => id);
        }),
      );
      expect(seen).toEqual(asks.map((n) => [`s${n}`]));
    });

    test("a transaction does all or nothing, and part of it as the service where it says so", async () => {
      const own = await postgres.database();
      const store = await openStore({}, own);
      await store.create(session("of-a", "a"));
      await store.create(session("of-b", "b"));
      const database = (await openDb(own)).as("a");
      const counts = await database.transaction(async (transaction) => {
        const count = async () =>
          (await transaction.query<{ n: string }>("select count(*) as n from callgate.session")).rows[0]!.n;
        const before = await count();
        const inside = await transaction.unconfined(count);
        return [before, inside, await count()];
      });
      expect(counts).toEqual(["1", "2", "1"]);
      const failed = database.transaction(async (transaction) => {
        await transaction.query("update callgate.session set title = 'half'");
        throw new Error("on purpose");
      });
      await expect(failed).rejects.toThrow("on purpose");
      expect((await store.get("of-a"))?.title).toBe("of-a");
      await expect(
        database.transaction(async (transaction) => {
          await transaction.query("update callgate.session set title = 'half'");
          await transaction.query("no such words");
        }),
      ).rejects.toThrow("syntax error");
      expect((await store.get("of-a"))?.title).toBe("of-a");
      expect((await database.query("select id from callgate.session")).rows).toHaveLength(1);
    });

    test("a connection answers its questions one after the other, and goes on after one that failed", async () => {
      let isLost = false;
      const connection = await (await openDb()).connect({ name: "test", onLost: () => (isLost = true) });
      const asked = ["select 1 as n", "no such words", "select 2 as n"].map((text) =>
        connection.query<{ n: number }>(text).then(
          ({ rows }) => rows[0]!.n,
          () => "failed",
        ),
      );
      expect(await Promise.all(asked)).toEqual([1, "failed", 2]);
      await connection.end();
      expect(isLost).toBe(false); // whoever ends it knows
    });

    test("a server that is not there is told as such, and a wrong statement as its own fault", async () => {
      await expect(openDatabase({ url: "postgres://postgres@127.0.0.1:1/x" })).rejects.toThrow(Unavailable);
      await expect(openDatabase({ url: "postgres://postgres@127.0.0.1:1/x" })).rejects.toThrow(
        /the store cannot be reached: .*ECONNREFUSED/,
      );
      const database = await openDb();
      await expect(database.query("select * from nowhere")).rejects.toThrow("nowhere");
      await expect(database.query("select * from nowhere")).rejects.not.toThrow(Unavailable);
      const killed = database.query("select pg_terminate_backend(pg_backend_pid())");
      await expect(killed).rejects.toThrow(Unavailable);
      expect((await database.query("select 1 as n")).rows).toEqual([{ n: 1 }]);
    });
  });

  describe("the tables", () => {
    test("of an older version are brought up to date, and what was in them is still there", async () => {
      const own = await postgres.database();
      const first = await openStore({}, own);
      await first.create(session("old", "t"), "key");
      await first.post("old", { kind: "message", body: { content: "kept" }, key: "m" });
      const database = await openDb(own);
      await database.query("alter table callgate.session drop column request");
      await database.query("alter table callgate.mail drop column request");
      const { rows } = await database.query<{ step: number }>("select step from callgate.version");
      await database.query("update callgate.version set step = $1", [rows[0]!.step - 1]);
      const store = await openStore({}, own);
      // What was stored without its request is taken as the same.
      expect(await store.create(session("new", "t"), "key", "a request")).toMatchObject({
        isNew: false,
        session: { id: "old" },
      });
      expect((await store.post("old", { kind: "message", body: {}, key: "m", request: "x" })).isNew).toBe(false);
      expect((await database.query("select step from callgate.version")).rows).toEqual(rows);
    });

    test("cannot be made confined by a user who may make no role, who is told what to do", async () => {
      const own = await startPostgres(); // roles belong to the whole server
      onTestFinished(() => own.stop());
      await own.query("create role plain login");
      const theirs = own.url.replace("postgres@", "plain@");
      await own.query("grant create on database postgres to plain");
      await expect(openDatabase({ url: theirs })).rejects.toThrow(
        /as an administrator, run 'create role callgate_tenant nologin; grant callgate_tenant to'/,
      );
      await own.query("create role callgate_tenant nologin");
      await expect(openDatabase({ url: theirs })).rejects.toThrow("as an administrator");
      await own.query("grant callgate_tenant to plain");
      await (await openDatabase({ url: theirs })).close();
    });
  });

  describe("pieces of folders", () => {
    const collect = async (pieces: AsyncIterable<Uint8Array>) => {
      const texts: string[] = [];
      for await (const piece of pieces) texts.push(Buffer.from(piece).toString());
      return texts;
    };

    test("come back in their order, the large ones from where they were put", async () => {
      const own = await postgres.database();
      const folder = mkdtempSync(join(tmpdir(), "callgate-packs-"));
      const database = await openDb(own);
      const packs = createPostgresPacks({ database, blobs: createFolderBlobs(folder), maxBytes: 10 });
      const store = await openStore({ packs }, own);
      await store.create(session("s"));
      await store.create(session("other"));
      const pieces = ["small", "exactly 10", "more than ten bytes", "", "more than ten bytes", "last"];
      for (const piece of pieces) await packs.add("s", Buffer.from(piece));
      await packs.add("other", Buffer.from("more than ten bytes, of another"));
      expect(await collect(packs.read("s"))).toEqual(pieces);
      expect(readdirSync(join(folder, "s"))).toHaveLength(1); // the same bytes have the same name
      await expect(collect(createPostgresPacks({ database }).read("s"))).rejects.toThrow("not named here");
      await store.remove("s");
      expect(await collect(packs.read("s"))).toEqual([]);
      expect(readdirSync(join(folder, "s"))).toEqual([]);
      expect(await collect(packs.read("other"))).toHaveLength(1);
    });

    test("of a session that is not there are not kept", async () => {
      const packs = createPostgresPacks({ database: await openDb() });
      await packs.add("nobody", Buffer.from("x"));
      expect(await collect(packs.read("nobody"))).toEqual([]);
    });
  });

  test("an option that nobody knows is refused with the nearest one", async () => {
    const database = await openDb();
    await expect(createPostgresStore({ database, frozenAfter: 5 } as never)).rejects.toThrow("frozenAfterMs");
    await expect(createPostgresStore({ database, frozenAfterMs: 0 })).rejects.toThrow("frozenAfterMs");
    expect(() => createPostgresPacks({ database, blob: {} } as never)).toThrow("blobs");
  });
});
