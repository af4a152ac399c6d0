/** What the databases have in common. */
import type { SqlValue, Statement } from "./sql.ts";

/** An open database, for one statement. */
export interface Connection {
  /** Which driver it was. */
  readonly driver: string;
  run(sql: string, statement: Statement, values: readonly SqlValue[]): Promise<Rows>;
  close(): Promise<void>;
}

export interface Rows {
  readonly rows: readonly Record<string, unknown>[];
  readonly changes?: number;
}

export type Use = "read" | "write";
