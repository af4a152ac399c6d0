/** Which sessions need a worker, and which worker: asked of the tables, whatever was announced or queued. */
import type { Queries } from "../store/postgres/database.ts";

interface Found {
  readonly id: string;
  readonly tenant: string;
}

/** The worker that has the session's files, if it is alive; otherwise any. */
export async function findWorker(
  id: string,
  database: Queries,
): Promise<{ readonly worker: string; readonly has_files: boolean } | undefined> {
  const { rows } = await database.query<{ worker: string; has_files: boolean }>(
    `select worker.id as worker, session.id is not null as has_files from callgate.worker
     left join callgate.session on session.worker = worker.id and session.id = $1
     order by has_files desc, random() limit 1`,
    [id],
  );
  return rows[0];
}

/** Sessions that a worker was running when it ended. */
export async function findLeftBy(worker: string, database: Queries): Promise<readonly Found[]> {
  const { rows } = await database.query<Found>(
    "select id, tenant from callgate.session where worker = $1 and status = 'running'",
    [worker],
  );
  return rows;
}

/** The tenant's session that has waited longest. */
export async function findNext(tenant: string, database: Queries): Promise<string | undefined> {
  const { rows } = await database.query<{ id: string }>(
    `select session as id from callgate.mail join callgate.session on session.id = mail.session
     where mail.tenant = $1 and taken is null
       and (status = 'idle' or (status = 'waiting' and kind <> 'message'))
     order by mail.id limit 1`,
    [tenant],
  );
  return rows[0]?.id;
}

/** How long a session that nobody runs is left alone, because a wake may be on its way. */
const quietMs = 5_000;

/**
 * Sessions that have something to do and that nobody has run for a while. `woke` leaves one alone for
 * as long again.
 */
export function createForgottenFinder(database: Queries, now: () => number) {
  const seen = new Map<string, number>();
  return async (unfinished: readonly Found[]): Promise<readonly (Found & { readonly woke: () => void })[]> => {
    const { rows } = await database.query<{ key: string }>(
      "select ((classid::bigint << 32) | objid::bigint)::text as key from pg_locks where locktype = 'advisory' and objsubid = 1 and granted and database = (select oid from pg_database where datname = current_database())",
    );
    const held = new Set(rows.map(({ key }) => key));
    const keys = await database.query<{ id: string; key: string }>(
      "select id, hashtextextended('session ' || id, 0)::text as key from unnest($1::text[]) as id",
      [unfinished.map(({ id }) => id)],
    );
    const idle = new Set(keys.rows.filter(({ key }) => !held.has(key)).map(({ id }) => id));
    for (const id of seen.keys()) if (!idle.has(id)) seen.delete(id);
    return unfinished.flatMap(({ id, tenant }) => {
      if (!idle.has(id)) return [];
      const since = seen.get(id) ?? now();
      seen.set(id, since);
      return now() - since < quietMs ? [] : [{ id, tenant, woke: () => void seen.set(id, now()) }];
    });
  };
}
