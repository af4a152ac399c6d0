/**
 * Connections to PostgreSQL. `pg` is loaded only here, when a database is opened, so that file stores
 * need no driver. A tenant's queries run as a role that row-level security confines to the tenant's
 * own rows.
 */
import type { Pool, PoolClient } from "pg";
import { Unavailable } from "../session-store.ts";
import { migrate, type Queries } from "./schema.ts";

export type { Queries };

/** A tenant's transaction that does part of its work as the service itself. */
export interface Transaction extends Queries {
  /** What `work` does on the connection (one of `pg`) belongs to the transaction, and is not confined to the tenant. */
  unconfined<T>(work: (connection: unknown) => Promise<T>): Promise<T>;
}

/** PostgreSQL, with the tables of the service. */
export interface Database extends Queries {
  readonly url: string;
  /** Does all of it or nothing. */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>;
  /** The same database as one tenant may see it. Left out: all of it. */
  as(tenant: string): Database;
  /** A separate connection outside the pool. It ends with `end`, or by itself; then `onLost` is called once. */
  connect(options: ConnectOptions): Promise<Connection>;
  close(): Promise<void>;
}

/** Options of `Database.connect`. */
export interface ConnectOptions {
  /** The name that the database shows for this connection. */
  readonly name: string;
  /** Called once when the connection has ended without our doing. */
  readonly onLost: (error?: Error) => void;
  /** Called with what other processes notify (LISTEN and NOTIFY). */
  readonly onNotification?: (payload: string) => void;
}

/** One connection, kept until it is ended. */
export interface Connection extends Queries {
  end(): Promise<void>;
}

/** Options of `openDatabase`. */
export interface DatabaseOptions {
  /** `postgres://user:password@host:port/database` */
  readonly url: string;
  /** How many connections are kept for queries. */
  readonly poolSize?: number;
}

/** The role of a tenant's queries. It cannot log in and owns nothing. */
const tenantRole = "callgate_tenant";

/** Opens the database and brings its tables up to date. */
export async function openDatabase({ url, poolSize = 6 }: DatabaseOptions): Promise<Database> {
  const pg = await loadDriver();
  const createPool = (options: string) => {
    const made = new pg.Pool({ connectionString: url, max: poolSize, application_name: "callgate", options });
    // A connection that breaks while idle is replaced by the next query; one in use reports to whoever uses it.
    made.on("error", () => undefined);
    made.on("connect", (client) => client.on("error", () => undefined));
    return made;
  };
  const pool = createPool("");
  // Connections that begin as the confined role, so that tenants' reads do not hold up workers' writes.
  const owners: Owners = new WeakMap();
  const tenantPool = createPool(`-c role=${tenantRole}`);
  const connect: Database["connect"] = async ({ name, onLost, onNotification }) => {
    const client = new pg.Client({ connectionString: url, application_name: `callgate ${name}`, keepAlive: true });
    let isOver = true; // if the connection cannot be made, the caller is told
    const lost = (error?: Error) => {
      if (isOver) return;
      isOver = true;
      onLost(error);
      client.end().catch(() => undefined);
    };
    client.on("error", lost);
    client.on("end", () => lost());
    if (onNotification !== undefined) client.on("notification", ({ payload }) => onNotification(payload ?? ""));
    await client.connect();
    isOver = false;
    let last: Promise<unknown> = Promise.resolve();
    const { query } = toQueries(client);
    return {
      // One after the other: the driver does not queue them.
      // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- whoever writes a query knows its rows
      query<Row>(text: string, values?: readonly unknown[]) {
        const asked = last.then(() => query<Row>(text, values));
        last = asked.catch(() => undefined);
        return asked;
      },
      async end() {
        isOver = true;
        await client.end().catch(() => undefined); // it is gone either way
      },
    };
  };
  const database: Database = {
    url,
    ...toQueries(pool),
    transaction: (work) => inTransaction(pool, pg.escapeLiteral, undefined, work),
    as: (tenant) => {
      const transaction: Database["transaction"] = (work) => inTransaction(pool, pg.escapeLiteral, tenant, work);
      return { ...database, transaction, query: (text, values) => askAs(tenantPool, owners, tenant, text, values) };
    },
    connect,
    close: async () => {
      await Promise.all([pool.end(), tenantPool.end()]);
    },
  };
  try {
    await database.transaction(migrate);
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

async function loadDriver() {
  try {
    return (await import("pg")).default;
  } catch (error) {
    throw new Error("a database needs the package 'pg': run 'npm install pg @dbos-inc/dbos-sdk'", { cause: error });
  }
}

/** A statement with values is prepared once on each connection: the server need not understand it again. */
const names = new Map<string, string>();

function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `callgate_${names.size}`));
  return name;
}

function toQueries(asked: Pool | PoolClient | { query: PoolClient["query"] }): Queries {
  return {
    // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- whoever writes a query knows its rows
    async query<Row>(text: string, values?: readonly unknown[]) {
      // The query determines the shape of a row, so whoever wrote it knows the type.
      const result = await (asked as Pool)
        .query(values === undefined ? { text } : { name: nameOf(text), text, values: [...values] })
        .catch(throwUnavailable);
      return { rows: result.rows as readonly Row[], rowCount: result.rowCount };
    },
  };
}

/** The tenant of a connection. It is set whenever that changes, and before the first query. */
type Owners = WeakMap<PoolClient, string>;

/** A connection answers only for the tenant that was set, and never for an earlier one. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- whoever writes a query knows its rows
async function askAs<Row>(pool: Pool, owners: Owners, tenant: string, text: string, values?: readonly unknown[]) {
  const client = await pool.connect().catch(throwUnavailable);
  try {
    const { query } = toQueries(client);
    if (owners.get(client) !== tenant) {
      owners.delete(client);
      await query("select set_config('callgate.tenant', $1, false)", [tenant]);
      owners.set(client, tenant);
    }
    return await query<Row>(text, values);
  } finally {
    client.release();
  }
}

/**
 * Classes of PostgreSQL's codes for connections and for a server that shuts down or starts, and the
 * system's own codes for sockets.
 */
const unreachable = /^(08|57P0[123]|53300|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH)/;

function throwUnavailable(error: unknown): never {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const words = error instanceof Error ? error.message : "";
  if (unreachable.test(code) || error instanceof AggregateError || /connection/i.test(words))
    throw new Unavailable(error);
  throw error;
}

async function inTransaction<T>(
  pool: Pool,
  escapeLiteral: (text: string) => string,
  tenant: string | undefined,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const client = await pool.connect().catch(throwUnavailable);
  const confine = tenant === undefined ? "" : `set local role ${tenantRole}; `;
  const ask = (text: string) => client.query(text).catch(throwUnavailable);
  let failure: Error | undefined;
  try {
    // One round trip. The tenant's name is quoted, because several statements in one accept no parameters.
    await ask(tenant === undefined ? "begin" : `begin; ${confine}set local callgate.tenant = ${escapeLiteral(tenant)}`);
    const done = await work({
      ...toQueries(client),
      async unconfined(own) {
        await ask("reset role");
        const result = await own(client);
        if (confine !== "") await ask(confine);
        return result;
      },
    });
    await ask("commit");
    return done;
  } catch (error) {
    await client.query("rollback").catch((broken: Error) => (failure = broken));
    throw error;
  } finally {
    client.release(failure); // a connection that cannot even roll back is not used again
  }
}
