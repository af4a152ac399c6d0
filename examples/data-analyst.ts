/** A data analyst on SQLite: the model writes queries, the sandbox sees to it that none can change the data. */
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool } from "callgate";
import { createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";
import { toCommandResult } from "callgate/tools";

const workspace = mkdtempSync(join(tmpdir(), "data-analyst-"));
execFileSync("sqlite3", [join(workspace, "shop.db")], {
  input: `create table sale (city text, eur int);
          insert into sale values ('Lisbon', 30), ('Lyon', 20), ('Lisbon', 12);`,
});

const argv = (query: string) => ["sqlite3", "-json", "shop.db", query];
const query = defineTool({
  name: "query",
  description: "Run one SQL query on the table sale(city, eur).",
  input: { type: "object", properties: { sql: { type: "string" } }, required: ["sql"] } as const,
  access: ({ sql }) => ({ commands: [{ argv: argv(sql) }] }),
  run: async ({ sql }, ctx) => toCommandResult(await ctx.exec.run({ argv: argv(sql) })),
});

// Nobody is asked, and everything is read-only: what a query may do is decided by the kernel, not by reading SQL.
const engine = createEngine({ workspace, tools: [query], approval: "never", sandbox: "read-only" });
const model = createScriptedModel([
  { calls: [{ name: "query", input: { sql: "select city, sum(eur) as eur from sale group by city" } }] },
  { calls: [{ name: "query", input: { sql: "delete from sale" } }] },
  { text: "Lisbon sold for 42 euros." },
]);
const session = createSession({ id: "analysis", engine, model, limits: { maxCalls: 20 } });
for await (const event of session.send("Which city sold most?")) {
  if (event.type === "call.ended") {
    const [part] = event.call.content;
    console.log(event.call.ok ? "ok" : "failed", part?.type === "text" ? part.text.trim() : "");
  }
  if (event.type === "turn.ended") console.log(event.text);
}
await session.close();
await engine.close();
console.log(execFileSync("sqlite3", [join(workspace, "shop.db"), "select count(*) from sale"], { encoding: "utf8" }));
