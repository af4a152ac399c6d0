import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool } from "callgate";
import { createElicitingApprover, createMcpClients, createServedPrompts, readServers, serveMcp } from "callgate/mcp";

const workspace = mkdtempSync(join(tmpdir(), "callgate-example-"));

// A tool that asks while it runs. Whoever made the call answers: here the person behind an MCP client.
const book = defineTool({
  name: "book_table",
  description: "Book a table for tonight.",
  input: { type: "object", properties: { guests: { type: "number" } }, required: ["guests"] },
  mutates: true,
  async run({ guests }, { ask, log }) {
    const where = { type: "string", enum: ["inside", "outside"], default: "inside" };
    const fields = { type: "object", properties: { where }, required: ["where"] };
    const { table } = await ask({ table: { kind: "form", message: `Inside or outside, for ${guests}?`, fields } });
    if (table.action !== "accept") return "Nothing was booked.";
    log.info("booked", { guests });
    return `A table for ${guests}, ${String(table.content["where"])}.`;
  },
});

const prompts = createServedPrompts([
  {
    name: "evening",
    description: "Plan an evening.",
    arguments: [{ name: "city", required: true, complete: ["Lisbon", "London", "Lyon"] }],
    get: ({ city }) => `Plan an evening in ${city}, and book a table.`,
  },
]);

const approver = createElicitingApprover();
const engine = createEngine({ workspace, tools: [book], approver, approval: "never", sandbox: "full-access" });
const serving = await serveMcp({ engine, approver, prompts, port: 0, version: "1.0.0", tell: () => undefined });

// Any MCP client will do; this one is ours, and answers every form with the same place.
const env = { TOKEN: serving.token! };
const { servers } = readServers({ dinner: { url: serving.url, bearer_token_env_var: "TOKEN" } }, env);
const caller = createEngine({ workspace, approval: "never", sandbox: "full-access" });
const clients = createMcpClients({
  servers,
  registry: caller.registry,
  stateDir: join(workspace, ".state"),
  cwd: workspace,
  env,
  version: "1.0.0",
  warn: console.warn,
  host: { elicit: async () => ({ action: "accept", content: { where: "outside" } }) },
});
await clients.start({ waitMs: 5_000 });
console.log((await caller.call("dinner/book_table", { guests: 2 })).content);

await clients.close();
await caller.close();
await serving.close();
await engine.close();
