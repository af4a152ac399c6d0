/** What the two database tools share: one statement with its values, on a connection that is always closed. */
import { CallError, type ToolContext } from "../../../index.ts";
import { connect } from "./connect.ts";
import { readStatement, requireReading, requireWriting, type SqlValue } from "./sql.ts";

export const statementInput = {
  type: "object",
  properties: {
    database: { type: "string", description: "A SQLite file, or postgres://user@host:port/name" },
    sql: { type: "string", description: "One statement; ? stands for a parameter" },
    params: {
      type: "array",
      items: { type: ["string", "number", "boolean", "null"] },
      description: "Values for the ?",
    },
  },
  required: ["database", "sql"],
  additionalProperties: false,
} as const;

export interface StatementInput {
  readonly database: string;
  readonly sql: string;
  readonly params?: readonly SqlValue[];
}

/** Reading and writing are separated before the database sees the statement. */
export async function runStatement(
  { database, sql, params = [] }: StatementInput,
  use: "read" | "write",
  ctx: ToolContext,
) {
  const statement = readStatement(sql);
  if (use === "read") requireReading(statement);
  else requireWriting(statement);
  const wanted = statement.placeholders.length;
  if (wanted > params.length) {
    throw new CallError(
      "invalid_input",
      `The statement has ${wanted} placeholders, params has ${params.length} values.`,
    );
  }
  const connection = await connect(database, use, ctx);
  try {
    return await connection.run(sql, statement, params);
  } finally {
    await connection.close();
  }
}
