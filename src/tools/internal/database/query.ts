/** `internal_database_query`: one statement that only reads. */
import { defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { databaseAccess } from "./connect.ts";
import { runStatement, statementInput } from "./statement.ts";

/** More rows than this would only fill the context. */
const maxRows = 1_000;

/** One statement that reads, on a connection that cannot do anything else. */
export default defineTool({
  name: "internal_database_query",
  group: "database",
  description: "Read from a database: one SQL statement; answers with rows.",
  input: statementInput,
  access: ({ database }, { cwd }) => databaseAccess(database, "read", cwd),
  mutates: false,
  parallel: true,
  timeoutMs: 90_000,
  async run(input, ctx) {
    const { rows } = await runStatement(input, "read", ctx);
    return mcpText({
      rows: rows.slice(0, maxRows),
      count: rows.length,
      ...(rows.length > maxRows ? { note: `only the first ${maxRows} rows are shown` } : {}),
    });
  },
});
