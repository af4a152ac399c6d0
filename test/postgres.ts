/** A PostgreSQL of the test's own, from the system's programs. */
import { startPostgres as start, type OwnPostgres } from "../scripts/postgres.mjs";
import { postgresFolder } from "./needs.ts";

export type TestPostgres = OwnPostgres;

export async function startPostgres(): Promise<TestPostgres> {
  const bin = postgresFolder();
  if (bin === undefined) throw new Error("PostgreSQL is not installed here");
  return start(bin);
}
