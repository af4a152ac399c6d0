/** `internal_database_update`: one statement that changes something. */
import { defineTool } from "../../../index.ts";
import { mcpText } from "../result.ts";
import { databaseAccess } from "./connect.ts";
import { runStatement, statementInput } from "./statement.ts";

/** One statement that changes something. */
export default defineTool({
  name: "internal_database_update",
  group: "database",
  description: "Change a database: one SQL statement; answers with how many rows changed.",
  input: statementInput,
  access: ({ database }, { cwd }) => databaseAccess(database, "write", cwd),
  mutates: true,
  timeoutMs: 90_000,
  async run(input, ctx) {
    const { changes = 0, rows } = await runStatement(input, "write", ctx);
    return mcpText({ changes, ...(rows.length > 0 ? { rows } : {}) });
  },
});
