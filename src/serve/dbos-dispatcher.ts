/**
 * Wakes sessions over any number of processes, with DBOS on PostgreSQL: its queue, its fairness among
 * tenants, its timers. A call is never a step of DBOS, because it runs a step again that was cut off.
 * A wake only says "look at this session", and the session's records say what is left to do. DBOS is
 * loaded only here, and only if a database is used.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClientBase } from "pg";
import type { Database, Queries } from "../store/postgres/database.ts";
import type { PostgresStore } from "../store/postgres/store.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { createForgottenFinder, findLeftBy, findNext, findWorker } from "./find-work.ts";

/** Options of `createDbosDispatcher`. */
export interface DbosDispatcherOptions {
  /** The database that all processes share. */
  readonly database: Database;
  /** The store of sessions in it. */
  readonly store: PostgresStore;
  /** How many sessions run at once on this process. */
  readonly places?: number;
  /** How many sessions of one tenant each queue hands out at once. */
  readonly placesPerTenant?: number;
  /** How many sessions of this tenant run at once, on all processes together. Left out: as many as there are places. */
  readonly mayRun?: (tenant: string) => Promise<number>;
  /** How often to look for dead workers and for sessions that nobody runs. */
  readonly lookMs?: number;
  /** Called with what went wrong, and the session it is about. */
  readonly onError?: (error: unknown, id: string) => void;
  /** The clock, for tests. */
  readonly now?: () => number;
}

/** The queue that every worker serves. Each worker also has its own, for sessions whose files it has. */
const shared = "callgate";
const ownQueue = (worker: string) => `callgate ${worker}`;
const workflowName = "wake";
const className = "callgate";
/** Changes with the journal's format and not with every release, so that old and new workers serve the same queue. */
const applicationVersion = "callgate-journal-1";
const schema = "callgate_dbos";
/** If its worker has not begun a wake by then, any worker may take it. */
const stickyMs = 2_000;
/** How long ended work is kept, for people who look into the tables. */
const keptMs = 10 * 60_000;

const dispatcherShape = optionsShape<DbosDispatcherOptions>(
  {
    database: "table",
    store: "table",
    places: { above: 0 },
    placesPerTenant: { above: 0 },
    mayRun: "function",
    lookMs: { above: 0 },
    onError: "function",
    now: "function",
  },
  "database",
  "store",
);

/** Joins the workers of a database. Each wake is run by one of them, and those of a dead worker by another. */
/* oxlint-disable-next-line max-lines-per-function -- one dispatcher: its functions share the engine and what runs */
export async function createDbosDispatcher(options: DbosDispatcherOptions): Promise<Dispatcher> {
  checkOptions("createDbosDispatcher", options, dispatcherShape);
  const { database, store, places = 200, placesPerTenant = places, lookMs = 500, onError, now = Date.now } = options;
  const mayRun = options.mayRun ?? (async () => Infinity);
  const { DBOS, DBOSClient } = await loadEngine();
  const logger = createLogger((message) => onError?.(new Error(message), "dispatcher"));
  const config = {
    name: "callgate",
    systemDatabaseUrl: database.url,
    systemDatabaseSchemaName: schema,
    systemDatabasePoolSize: 6,
    applicationVersion,
    useListenNotify: false,
    logger,
  };
  const tables = await database.query<{ name: string | null }>("select to_regclass($1)::text as name", [
    `${schema}.workflow_status`,
  ]);
  if (tables.rows[0]?.name === null) {
    // Started for a moment to create its tables, because a process that only answers requests may be the first one
    // here.
    DBOS.setConfig({ ...config, listenQueues: ["none"] });
    await DBOS.launch();
    await DBOS.shutdown({ deregister: true });
  }
  const client = await DBOSClient.create({
    systemDatabaseUrl: database.url,
    systemDatabaseSchemaName: schema,
    systemDatabasePoolSize: 2,
    applicationName: "callgate",
    logger,
  });
  const { worker } = store;
  const running = new Map<string, Promise<void>>();
  const state = { isStopping: false, isLaunched: false };
  let stopHearing = () => {};

  const toJob = (queueName: string, tenant: string, delayMs: number) => ({
    queueName,
    workflowName,
    workflowClassName: className,
    appVersion: applicationVersion,
    queuePartitionKey: tenant,
    ...(delayMs > 0 ? { delaySeconds: delayMs / 1000 } : {}),
  });

  const runHere = async (id: string, tenant: string, run: (id: string) => Promise<void>) => {
    const key = randomUUID();
    const work = run(id).catch(async (error: unknown) => {
      onError?.(error, id);
      // The database may be unavailable. The search for sessions that nobody runs will find this one again.
      await dispatcher.wake(id, tenant, { at: now() + 1_000 }).catch(() => undefined);
    });
    running.set(key, work);
    await work.finally(() => running.delete(key));
  };

  const dispatcher: Dispatcher = {
    async start(run) {
      const take = async (id: string, tenant: string) => {
        const place = await store.hold.takePlace(tenant, await mayRun(tenant));
        // The next session of the tenant that ends wakes the one that has waited longest.
        if (place === undefined) return;
        try {
          await runHere(id, tenant, run);
        } finally {
          await store.hold.releasePlace(tenant, place);
          if (place > 0) await wakeNext(tenant).catch(() => undefined); // found by whoever looks for forgotten ones
        }
      };
      const wake = async (id: string, tenant: string, queue: string) => {
        // Left to another worker, if there is one by then.
        if (state.isStopping) return void (await dispatcher.wake(id, tenant, { at: now() + 1_000 }));
        // Its own queue comes in addition to the shared one. What finds no place here becomes anybody's after a
        // moment.
        if (queue !== shared && running.size >= places) return;
        await take(id, tenant);
      };
      // A worker that is told about mail looks at once. The queue, which every worker checks now and then, has the
      // same wake in case this one fails. If places are scarce, the queue decides who is next.
      stopHearing = store.watch((change) => {
        if (change.type !== "mail" || change.worker !== worker) return;
        if (state.isStopping || running.size >= places / 2) return;
        take(change.id, change.tenant).catch((error: unknown) => onError?.(error, change.id));
      });
      DBOS.registerWorkflow(wake, { name: workflowName, className });
      DBOS.setConfig({ ...config, executorID: worker, listenQueues: [shared, ownQueue(worker)] });
      await store.hold.appear(worker);
      await DBOS.launch();
      state.isLaunched = true;
      const limits = {
        workerConcurrency: places,
        partitionConcurrency: placesPerTenant,
        minPollingIntervalMs: 50,
        onConflict: "always_update",
      } as const;
      await DBOS.registerQueue(shared, limits);
      await DBOS.registerQueue(ownQueue(worker), limits);
      void keepLooking();
    },

    async wake(id, tenant, { at, transaction } = {}) {
      const delayMs = at === undefined ? 0 : at - now();
      // The connection of the store's own transaction. Every query uses it, so that nothing waits for a second one.
      const within = transaction as ClientBase | undefined;
      const enqueue = async (queue: string, afterMs: number) => {
        const job = toJob(queue, tenant, afterMs);
        if (within === undefined) await client.enqueue(job, id, tenant, queue);
        else await client.enqueueInTransaction(within, job, id, tenant, queue);
      };
      const found = delayMs > 0 ? undefined : await findWorker(id, (within ?? database) as Queries);
      const isSticky = found?.has_files === true;
      if (isSticky) await enqueue(ownQueue(found.worker), 0);
      await enqueue(shared, isSticky ? stickyMs : delayMs);
      return found?.worker;
    },

    async stop() {
      state.isStopping = true;
      stopHearing();
      if (state.isLaunched) await DBOS.deleteQueue(ownQueue(worker)).catch(() => undefined);
      await Promise.all(running.values());
      if (state.isLaunched) {
        await DBOS.shutdown({ deregister: true, workflowCompletionTimeoutMS: 10_000 });
        // Turns that were left open are announced to the other workers at once, instead of waiting until somebody
        // finds them.
        await wakeLeft(worker).catch(() => undefined);
        await store.hold.forget(worker).catch(() => undefined);
      }
      await client.destroy();
    },
  };

  /** One round after the other, however long one takes. If the database is unavailable, it is tried again. */
  const keepLooking = async () => {
    for (let looks = 1; !state.isStopping; looks++) {
      await reviveDead().catch(() => undefined);
      if (looks % 4 === 0) await wakeForgotten().catch(() => undefined);
      if (looks % 100 === 0) await dropEnded().catch(() => undefined);
      await sleep(lookMs, undefined, { ref: false });
    }
  };

  /** The same id for every worker, so that one wake waits instead of one from each. */
  const wakeOnce = async (id: string, tenant: string) => {
    const deduplicationID = `forgotten ${id}`;
    const job = { ...toJob(shared, tenant, 0), deduplicationID, duplicationPolicy: "return-existing" } as const;
    await client.enqueue(job, id, tenant, shared);
  };

  const wakeLeft = async (by: string) => {
    for (const { id, tenant } of await findLeftBy(by, database)) await wakeOnce(id, tenant);
  };

  /** What a dead worker had begun, or was to begin, goes back into the shared queue. */
  const reviveDead = async () => {
    for (const dead of await store.hold.findDead()) {
      const { rows } = await database.query<{ id: string }>(
        `select workflow_uuid as id from ${schema}.workflow_status
         where (status = 'PENDING' and executor_id = $1) or (status in ('ENQUEUED', 'DELAYED') and queue_name = $2)`,
        [dead, ownQueue(dead)],
      );
      if (rows.length > 0)
        await DBOS.resumeWorkflows(
          rows.map(({ id }) => id),
          { queueName: shared },
        );
      // What it had been told directly is no longer in any queue.
      await wakeLeft(dead);
      await DBOS.deleteQueue(ownQueue(dead)).catch(() => undefined);
      await store.hold.forget(dead);
    }
  };

  const wakeNext = async (tenant: string) => {
    const id = await findNext(tenant, database);
    if (id !== undefined) await client.enqueue(toJob(shared, tenant, 0), id, tenant, shared);
  };

  /** A wake may have been lost: its worker lost the database, or the process ended between two steps. */
  const findForgotten = createForgottenFinder(database, now);
  const wakeForgotten = async () => {
    const woken = new Map<string, number>();
    for (const { id, tenant, woke } of await findForgotten(await store.unfinished())) {
      // More than may run would only be sent back.
      const before = woken.get(tenant) ?? 0;
      if (before >= (await mayRun(tenant))) continue;
      woken.set(tenant, before + 1);
      woke();
      await wakeOnce(id, tenant);
    }
  };

  /** DBOS keeps what has ended, and nobody asks for it again. */
  const dropEnded = async () => {
    await database.query(
      `delete from ${schema}.workflow_status where workflow_uuid in (
         select workflow_uuid from ${schema}.workflow_status
         where status in ('SUCCESS', 'ERROR', 'CANCELLED') and updated_at < $1 limit 10000)`,
      [now() - keptMs],
    );
  };

  return dispatcher;
}

async function loadEngine() {
  try {
    return await import("@dbos-inc/dbos-sdk");
  } catch (error) {
    throw new Error("many workers need the package '@dbos-inc/dbos-sdk': run 'npm install pg @dbos-inc/dbos-sdk'", {
      cause: error,
    });
  }
}

/** Only errors of DBOS are passed on, because it logs a great deal. */
function createLogger(onError: (message: string) => void) {
  const quiet = () => undefined;
  return {
    info: quiet,
    debug: quiet,
    warn: quiet,
    error: (entry: unknown) => onError(entry instanceof Error ? entry.message : String(entry)),
  };
}
