/**
 * Which process runs which session: advisory locks of one connection. A killed process loses them at
 * once, and a frozen one when the database ends a connection that was silent for too long. They are
 * for speed; safety comes from the record numbers.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Connection, Database } from "./database.ts";

/** Which sessions this process holds, and which workers live. */
export interface Hold {
  /** False if this or another process has it. */
  take(id: string): Promise<boolean>;
  release(id: string): Promise<void>;
  /** Takes one of the places that a tenant has on all processes together. Undefined if all are taken. */
  takePlace(tenant: string, places: number): Promise<number | undefined>;
  releasePlace(tenant: string, place: number): Promise<void>;
  /** Makes this process known under the name for as long as it lives. */
  appear(worker: string): Promise<void>;
  /** Workers that are known and no longer alive. */
  findDead(): Promise<readonly string[]>;
  forget(worker: string): Promise<void>;
  close(): Promise<void>;
}

export interface HoldOptions {
  /** A process that was silent for this long has lost what it holds. */
  readonly frozenAfterMs?: number;
  readonly onError?: (error: unknown) => void;
}

const lockOf = (kind: string, parameter: string) => `hashtextextended('${kind} ' || ${parameter}, 0)`;

export function createHold(database: Database, options: HoldOptions = {}): Hold {
  /** One connection can take an advisory lock twice, so what this process holds is looked up here first. */
  const mine = new Set<string>();
  const taking = new Set<string>();
  let worker: string | undefined;
  const lockAgain = async (connection: Connection) => {
    places.forget();
    if (worker !== undefined) await lockWorker(connection, worker);
    // What another process has taken in the meantime is lost. If it still runs here, its next record number stops it.
    for (const id of mine) if (!(await tryLock(connection, id))) mine.delete(id);
  };
  const locks = createLockConnection(database, options, lockAgain);
  const places = createPlaces(locks.current);
  const tryLock = async (connection: Connection, id: string) => {
    const { rows } = await connection.query<{ has: boolean }>(
      `select pg_try_advisory_lock(${lockOf("session", "$1::text")}) as has`,
      [id],
    );
    return rows[0]!.has;
  };
  const lockWorker = async (connection: Connection, name: string) => {
    // A process that looks for dead workers holds the lock while it looks, so we wait for it.
    await connection.query(`select pg_advisory_lock(${lockOf("worker", "$1::text")})`, [name]);
    await connection.query("insert into callgate.worker (id) values ($1) on conflict do nothing", [name]);
  };

  return {
    async take(id) {
      if (mine.has(id) || taking.has(id)) return false;
      taking.add(id);
      try {
        const asked = locks.current();
        const has = await tryLock(await asked, id);
        // A connection that broke in the meantime took the lock with it.
        if (!has || !locks.isCurrent(asked)) return false;
        mine.add(id);
        return true;
      } finally {
        taking.delete(id);
      }
    },
    async release(id) {
      if (!mine.delete(id)) return;
      const connection = await locks.existing();
      // A connection that breaks now releases it by itself.
      await connection
        ?.query(`select pg_advisory_unlock(${lockOf("session", "$1::text")})`, [id])
        .catch(() => undefined);
    },
    takePlace: places.take,
    releasePlace: places.release,
    async appear(name) {
      worker = name;
      await lockWorker(await locks.current(), name);
    },
    async findDead() {
      const { rows } = await database.query<{ id: string }>(
        `select id from callgate.worker where id <> $1 and pg_try_advisory_xact_lock(${lockOf("worker", "id")})`,
        [worker ?? ""],
      );
      return rows.map(({ id }) => id);
    },
    async forget(name) {
      await database.query("delete from callgate.worker where id = $1", [name]);
    },
    close: locks.close,
  };
}

/**
 * The one connection whose locks count. It is opened when it is first needed, made ready by `prepare`, and
 * replaced when it breaks. One that broke while it was made ready never takes the place of its successor.
 */
function createLockConnection(
  database: Database,
  { frozenAfterMs = 10_000, onError }: HoldOptions,
  prepare: (connection: Connection) => Promise<void>,
) {
  const state = { isClosed: false };
  let opening: Promise<Connection> | undefined;

  const open = (): Promise<Connection> => {
    let ping: NodeJS.Timeout | undefined;
    const leave = () => {
      clearInterval(ping);
      if (opening === opened) opening = undefined;
    };
    const onLost = (error?: Error) => {
      leave();
      if (state.isClosed) return;
      if (error !== undefined) onError?.(error);
      void reconnect();
    };
    const makeReady = async () => {
      const connection = await database.connect({ name: "locks", onLost });
      try {
        await connection.query(`set idle_session_timeout = ${Math.round(frozenAfterMs)}`);
        ping = setInterval(() => void connection.query("select 1").catch(() => undefined), frozenAfterMs / 4);
        ping.unref();
        await prepare(connection);
        return connection;
      } catch (error) {
        // Left open, it would keep this process's own locks from the next one.
        void connection.end();
        throw error;
      }
    };
    const opened = makeReady();
    opened.catch(leave);
    return opened;
  };
  const current = (): Promise<Connection> => {
    if (state.isClosed) throw new Error("the store is closed");
    return (opening ??= open());
  };
  const reconnect = async () => {
    for (let waitMs = 100; !state.isClosed; waitMs = Math.min(2 * waitMs, 2_000)) {
      try {
        await current();
        return;
      } catch {
        await sleep(waitMs, undefined, { ref: false });
      }
    }
  };
  /** Does not open one. */
  const existing = () => opening?.catch(() => undefined) ?? Promise.resolve(undefined);

  return {
    current,
    existing,
    isCurrent: (asked: Promise<Connection>) => opening === asked,
    async close() {
      const connection = await existing();
      state.isClosed = true;
      await connection?.end();
    },
  };
}

/** The places of tenants that this process has. */
function createPlaces(connect: () => Promise<Connection>) {
  let places = new Map<string, Set<number>>();
  let last: Promise<unknown> = Promise.resolve();
  const tryPlace = async (tenant: string, most: number): Promise<number | undefined> => {
    const connection = await connect();
    const own = places.get(tenant) ?? new Set();
    places.set(tenant, own);
    const { rows } = await connection.query<{ place: number }>(
      `select place from generate_series(1, $2::int) as place
       where place <> all ($3::int[]) and pg_try_advisory_lock(${lockOf("place", "$1::text || ' ' || place")}) limit 1`,
      [tenant, most, [...own]],
    );
    const place = rows[0]?.place;
    if (place !== undefined) own.add(place);
    return place;
  };
  return {
    take(tenant: string, most: number): Promise<number | undefined> {
      if (most === Infinity) return Promise.resolve(0);
      // One after the other, because the next one has to know what was taken before.
      const taken = last.then(() => tryPlace(tenant, most));
      last = taken.catch(() => undefined);
      return taken;
    },
    async release(tenant: string, place: number): Promise<void> {
      if (!places.get(tenant)?.delete(place)) return;
      const connection = await connect().catch(() => undefined);
      await connection
        ?.query(`select pg_advisory_unlock(${lockOf("place", "$1::text || ' ' || $2::int")})`, [tenant, place])
        .catch(() => undefined);
    },
    /** They are lost with the connection. */
    forget: () => void (places = new Map()),
  };
}
