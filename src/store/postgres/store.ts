/**
 * Sessions in PostgreSQL, for any number of processes. A record's number is its fence.
 */
import { checkOptions, optionsShape } from "../../base/shape.ts";
import { randomUUID } from "node:crypto";
import type { JsonObject } from "../../base/json.ts";
import type { StoredRecord } from "../journal.ts";
import { Fenced, type SessionStore, type StoredSession } from "../session-store.ts";
import type { PackStore } from "../packs.ts";
import { createAppend } from "./append.ts";
import { createChanges, type Changes } from "./changes.ts";
import type { Database } from "./database.ts";
import { createHold, type Hold } from "./hold.ts";
import {
  findCreated,
  findPosted,
  mailColumns,
  sessionColumns,
  toMail,
  toSession,
  unfinishedQuery,
  type MailRow,
  type SessionRow,
} from "./rows.ts";
import { nowMs } from "./schema.ts";

/** Options of `createPostgresStore`. */
export interface PostgresStoreOptions {
  /** The database that all processes share. */
  readonly database: Database;
  /** A process that was silent for this long has lost its sessions to whoever takes them. */
  readonly frozenAfterMs?: number;
  /** What is removed with a session. */
  readonly packs?: PackStore;
  /** Called with what went wrong in the background. */
  readonly onError?: (error: unknown) => void;
}

const storeShape = optionsShape<PostgresStoreOptions>(
  { database: "table", frozenAfterMs: { above: 0 }, packs: "table", onError: "function" },
  "database",
);

/** A session store in PostgreSQL. */
export interface PostgresStore extends SessionStore {
  /** Who lives, and who holds what. */
  readonly hold: Hold;
  /** The process that runs its sessions, if there is one. A session remembers which process had it last. */
  readonly worker: string;
}

/** Sessions in PostgreSQL, for any number of processes; closing it closes the database. */
export async function createPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  checkOptions("createPostgresStore", options, storeShape);
  const { database, frozenAfterMs, packs, onError } = options;
  const told = onError === undefined ? {} : { onError };
  const hold = createHold(database, { ...told, ...(frozenAfterMs === undefined ? {} : { frozenAfterMs }) });
  const changes = await createChanges(database, told);
  const worker = randomUUID();
  return {
    ...createStore({ database, hold, changes, worker, ...(packs === undefined ? {} : { packs }) }),
    hold,
    worker,
    async close() {
      await changes.close();
      await hold.close();
      await database.close();
    },
  };
}

interface Parts {
  readonly database: Database;
  readonly hold: Hold;
  readonly changes: Changes;
  readonly worker: string;
  readonly packs?: PackStore;
  /** Only this tenant's rows are seen and changed. */
  readonly tenant?: string;
}

// oxlint-disable-next-line max-lines-per-function -- one store: its functions share the database and whoever watches
function createStore(parts: Parts): SessionStore {
  const { database, hold, changes, worker, tenant: only } = parts;
  // Whoever runs sessions reads for itself; listeners of tenants share their reads.
  const share: ReturnType<typeof createSharing> = only === undefined ? (_what, read) => read() : createSharing();
  const append = createAppend(database);
  const scoped = new Map<string, SessionStore>();
  const tenantOf = async (id: string): Promise<string> => {
    const { rows } = await database.query<{ tenant: string }>("select tenant from callgate.session where id = $1", [
      id,
    ]);
    if (rows[0] === undefined) throw new Error(`there is no session ${id}`);
    return rows[0].tenant;
  };
  const isThere = async (id: string): Promise<boolean> =>
    (await database.query("select from callgate.session where id = $1", [id])).rowCount === 1;
  const checkTenant = (given: string) => {
    if (only !== undefined && given !== only) throw new Error(`this store is confined to the tenant ${only}`);
  };
  return {
    async create({ id, tenant, title, model, cwd, settings }, key, request) {
      const made = await database.query<SessionRow>(
        `insert into callgate.session (id, tenant, key, title, model, cwd, settings, request)
         values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (tenant, key) do nothing returning ${sessionColumns}`,
        [id, tenant, key ?? null, title, model, cwd, JSON.stringify(settings), request ?? null],
      );
      if (made.rows[0] !== undefined) {
        changes.tell({ type: "session", id, tenant });
        return { session: toSession(made.rows[0]), isNew: true };
      }
      const known = key === undefined ? undefined : await findCreated(database, tenant, key, request);
      if (known === undefined) throw new Error("a session was removed while it was made again");
      return { session: known, isNew: false };
    },
    created: (tenant, key, request) => findCreated(database, tenant, key, request),
    get: (id) =>
      share(`get ${id}`, async () => {
        const { rows } = await database.query<SessionRow>(
          `select ${sessionColumns} from callgate.session where id = $1`,
          [id],
        );
        return rows[0] && toSession(rows[0]);
      }),
    async list({ tenant, status, q, before, limit }) {
      const { rows } = await database.query<SessionRow>(
        `with earlier as (select updated_at, id from callgate.session where id = $4 and tenant = $1)
         select ${sessionColumns} from callgate.session
         where tenant = $1 and ($2::text is null or status = $2)
           and ($3::text is null or position(lower($3) in lower(title)) > 0 or position(lower($3) in id) > 0)
           and (not exists (select from earlier) or (updated_at, id) < (select updated_at, id from earlier))
         order by updated_at desc, id desc limit $5`,
        [tenant, status ?? null, q ?? null, before ?? null, limit + 1],
      );
      return { sessions: rows.slice(0, limit).map(toSession), more: rows.length > limit };
    },
    async counts(tenant) {
      const { rows } = await database.query<{ status: StoredSession["status"]; n: string }>(
        "select status, count(*) as n from callgate.session where tenant = $1 group by status",
        [tenant],
      );
      return Object.fromEntries(rows.map(({ status, n }) => [status, Number(n)]));
    },
    async remove(id) {
      const tenant = await tenantOf(id);
      await parts.packs?.remove(id);
      await database.transaction(async (transaction) => {
        await transaction.query("delete from callgate.session where id = $1", [id]);
        await transaction.query("delete from callgate.journal where session = $1", [id]);
      });
      changes.tell({ type: "removed", id, tenant });
    },
    read: (id, after, limit) =>
      share(`read ${id} ${after} ${limit}`, async () => {
        const { rows } = await database.query<{ n: number; at: string; record: JsonObject }>(
          `select n, at, record from callgate.journal where session = $1 and n > $2 order by n ${limit === undefined ? "" : "limit $3"}`,
          limit === undefined ? [id, after] : [id, after, limit],
        );
        // A record's own `n` and `at` never replace the journal's.
        return rows.map(({ n, at, record }) => ({ ...record, n, at: Number(at) }) as unknown as StoredRecord);
      }),
    async append(id, at, records) {
      if (records.length === 0) return;
      const { tenant, at: time } = await append(id, at, records);
      const told = records.map((record, place) => ({ ...record, n: at + place, at: time }));
      changes.tell({ type: "records", id, tenant, head: at + records.length, records: told });
    },
    async update(id, { title, status, model, cwd, questions, usage, takings }, at) {
      const { rows } = await database.query<{ tenant: string }>(
        `update callgate.session set title = coalesce($2, title), status = coalesce($3, status),
           model = coalesce($4, model), cwd = coalesce($5, cwd), questions = coalesce($6::json, questions),
           usage = coalesce($7::json, usage), takings = coalesce($8, takings), updated_at = ${nowMs},
           worker = case when $3 = 'running' then $9 else worker end
         where id = $1 and ($10::int is null or head = $10) returning tenant`,
        [
          id,
          title,
          status,
          model,
          cwd,
          questions && JSON.stringify(questions),
          usage && JSON.stringify(usage),
          takings,
          worker,
          at ?? null,
        ],
      );
      if (rows[0] === undefined && at !== undefined) throw new Fenced(id, at);
      if (rows[0] === undefined) throw new Error(`there is no session ${id}`);
      changes.tell({ type: "session", id, tenant: rows[0].tenant });
    },
    async post(id, { kind, body, key, request }, wake) {
      const sent = await database.transaction(async (transaction) => {
        const made = await transaction.query<MailRow & { tenant: string }>(
          `insert into callgate.mail (session, tenant, kind, key, body, request)
           select id, tenant, $2, $3, $4, $5 from callgate.session where id = $1
           on conflict (session, key) do nothing returning ${mailColumns}, tenant`,
          [id, kind, key ?? null, JSON.stringify(body), request ?? null],
        );
        if (made.rows[0] !== undefined) {
          const found = await transaction.unconfined(async (connection) => wake?.(connection));
          return { mail: toMail(made.rows[0]), isNew: true, tenant: made.rows[0].tenant, found };
        }
        const known = key === undefined ? undefined : await findPosted(transaction, id, key, request);
        if (known === undefined) throw new Error(`there is no session ${id}`);
        return { mail: known, isNew: false, tenant: undefined, found: undefined };
      });
      const { tenant, found, ...result } = sent;
      if (tenant !== undefined)
        changes.tell({ type: "mail", id, tenant, ...(found === undefined ? {} : { worker: found }) });
      return result;
    },
    posted: (id, key, request) => findPosted(database, id, key, request),
    async mail(id) {
      const { rows } = await database.query<MailRow>(
        `select ${mailColumns} from callgate.mail where session = $1 and taken is null order by id`,
        [id],
      );
      return rows.map(toMail);
    },
    async unfinished() {
      const { rows } = await database.query<{ id: string; tenant: string }>(unfinishedQuery);
      return rows;
    },
    async take(id) {
      // Locks know no tenants.
      if (only !== undefined && !(await isThere(id))) return undefined;
      if (!(await hold.take(id))) return undefined;
      return () => hold.release(id);
    },
    publish(id, tenant, event) {
      checkTenant(tenant);
      changes.tell({ type: "live", id, tenant, event });
    },
    watch: (listener, id) =>
      changes.watch((change) => {
        if (only === undefined || change.tenant === only) listener(change);
      }, id),
    forTenant(tenant) {
      checkTenant(tenant);
      const known = scoped.get(tenant) ?? createStore({ ...parts, tenant, database: database.as(tenant) });
      scoped.set(tenant, known);
      return known;
    },
    close: async () => undefined, // the whole store's business
  };
}

/**
 * Many listeners ask for the same at the same moment. It is read once or twice, and not a thousand
 * times. Nobody gets an answer that was read before they asked.
 */
function createSharing() {
  const reads = new Map<string, { readonly running: Promise<unknown>; next?: Promise<unknown> }>();
  return <T>(what: string, read: () => Promise<T>): Promise<T> => {
    const begin = (): Promise<T> => {
      const running = read();
      const entry = { running };
      reads.set(what, entry);
      const end = () => {
        if (reads.get(what) === entry && !("next" in entry)) reads.delete(what);
      };
      running.then(end, end);
      return running;
    };
    const known = reads.get(what);
    if (known === undefined) return begin();
    known.next ??= known.running.then(begin, begin);
    return known.next as Promise<T>; // the same words, the same question
  };
}
