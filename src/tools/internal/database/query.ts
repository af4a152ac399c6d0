/** `internal_database_query`: one statement that only reads. */
import { CallError, defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { connect, databaseAccess } from "./connect.ts";
import { readStatement, requireReading, type SqlValue } from "./sql.ts";

/** More rows than this fill a context and help nobody. */
const maxRows = 1_000;
/** One statement that reads, on a connection that can do nothing else. */
export default defineTool({
  name: "internal_database_query",
  group: "database",
  description: "Read from a database: one SQL statement; answers with rows.",
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
  access: ({ database }, { cwd }) => databaseAccess(database, "read", cwd),
  mutates: false,
  parallel: true,
  timeoutMs: 90_000,
  async run({ database, sql, params = [] }, ctx) {
    const statement = readStatement(sql);
    requireReading(statement);
    if (statement.placeholders.length > params.length) {
      throw new CallError(
        "invalid_input",
        `The statement has ${statement.placeholders.length} placeholders, params has ${params.length} values.`,
      );
    }
    const connection = await connect(database, "read", ctx);
    try {
      const values: readonly SqlValue[] = params;
      const { rows } = await connection.run(sql, statement, values);
      const shown = rows.slice(0, maxRows);
      return mcpText({
        rows: shown,
        count: rows.length,
        ...(rows.length > maxRows ? { note: `only the first ${maxRows} rows are shown` } : {}),
      });
    } finally {
      await connection.close();
    }
  },
});
