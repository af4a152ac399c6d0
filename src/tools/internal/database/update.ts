import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { connect, databaseAccess } from "./connect.ts";
import { readStatement, requireWriting, type SqlValue } from "./sql.ts";

/** One statement that changes something. */
export default defineTool({
  name: "internal_database_update",
  group: "database",
  description: "Change a database: one SQL statement; answers with how many rows changed.",
  input: {
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
  },
  access: ({ database }, { cwd }) => databaseAccess(database, "write", cwd),
  mutates: true,
  timeoutMs: 90_000,
  async run({ database, sql, params = [] }, ctx) {
    const statement = readStatement(sql);
    requireWriting(statement);
    if (statement.placeholders.length > params.length) {
      throw new CallError(
        "invalid_input",
        `The statement has ${statement.placeholders.length} placeholders, params has ${params.length} values.`,
      );
    }
    const connection = await connect(database, "write", ctx);
    try {
      const values: readonly SqlValue[] = params;
      const { changes = 0, rows } = await connection.run(sql, statement, values);
      return mcpText({ changes, ...(rows.length > 0 ? { rows } : {}) });
    } finally {
      await connection.close();
    }
  },
});
