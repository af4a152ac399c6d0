/** A database by its name: a SQLite file or a PostgreSQL address. */
import { resolve } from "node:path";
import { CallError, type Access, type ToolContext } from "../../../index.ts";
import { openPostgres } from "./postgres.ts";
import type { Connection, Use } from "./connection.ts";
import { openSqlite } from "./sqlite.ts";

/** What a call on a database touches: its file, or its host. */
export function databaseAccess(database: string, use: Use, cwd: string): Access {
  if (isPostgres(database)) return { network: [postgresHost(database)] };
  const path = resolve(cwd, database);
  // SQLite keeps what it needs to undo a change in files beside the database.
  const beside = ["-journal", "-wal", "-shm"].map((ending) => `${path}${ending}`);
  return use === "read" ? { read: [path] } : { write: [path, ...beside] };
}

export async function connect(database: string, use: Use, ctx: ToolContext): Promise<Connection> {
  if (isPostgres(database)) return openPostgres(database, use);
  const entry = await ctx.files.stat(database);
  if (entry === undefined && use === "read") throw new CallError("failed", `There is no database ${database}.`);
  return openSqlite(await ctx.files.resolve(database, use), use, ctx);
}

function isPostgres(database: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(database);
}

function postgresHost(address: string): string {
  try {
    const url = new URL(address);
    return `${url.hostname || "localhost"}:${url.port || "5432"}`;
  } catch (error) {
    throw new CallError("invalid_input", "The database address cannot be read.", {
      cause: error,
      hint: "Form: postgres://user@host:5432/name",
    });
  }
}
