/** PostgreSQL through the optional package pg. */
import { CallError } from "../../../index.ts";
import type { Connection, Rows, Use } from "./connection.ts";
import type { SqlValue, Statement } from "./sql.ts";

/** What we use of the optional package pg. */
interface Client {
  connect(): Promise<void>;
  query(
    query: string | { text: string; values: readonly SqlValue[] },
  ): Promise<{ rows: Record<string, unknown>[]; rowCount: number | null }>;
  end(): Promise<void>;
}

/** PostgreSQL through the optional package `pg`, loaded when a call needs it. */
export async function openPostgres(address: string, use: Use): Promise<Connection> {
  const client = await createClient(address);
  try {
    await client.connect();
    // The server itself enforces that a reading call only reads.
    await client.query(use === "read" ? "BEGIN READ ONLY" : "BEGIN");
    await client.query("SET LOCAL statement_timeout = '60s'");
  } catch (error) {
    await client.end().catch(() => undefined);
    throw new CallError(
      "network",
      `The database cannot be reached: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
  return {
    driver: "pg",
    async run(sql, statement, values): Promise<Rows> {
      try {
        const result = await client.query({ text: numbered(sql, statement), values });
        await client.query("COMMIT");
        return use === "read" ? { rows: result.rows } : { rows: result.rows, changes: result.rowCount ?? 0 };
      } catch (error) {
        throw new CallError("failed", `The database says: ${error instanceof Error ? error.message : String(error)}`, {
          cause: error,
        });
      }
    },
    close: () => client.end(),
  };
}

async function createClient(address: string): Promise<Client> {
  const name = "pg";
  try {
    const module = (await import(name)) as { default: { Client: new (options: object) => Client } };
    return new module.default.Client({ connectionString: address, connectionTimeoutMillis: 10_000 });
  } catch (error) {
    throw new CallError("failed", "PostgreSQL needs the package 'pg', which is not installed here.", {
      cause: error,
      hint: "Ask the user to install it: npm install pg",
    });
  }
}

/** `?` to `$1`, `$2`, …: the same spelling of placeholders for every database. */
function numbered(sql: string, { placeholders }: Statement): string {
  let result = "";
  let from = 0;
  for (const [index, at] of placeholders.entries()) {
    result += `${sql.slice(from, at)}$${index + 1}`;
    from = at + 1;
  }
  return result + sql.slice(from);
}
