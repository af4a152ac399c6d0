// Our MCP client as the conformance suite wants it. It does what a session does: connect, log in where asked, offer the
// tools, call each of them.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine } from "../dist/index.js";
import { createMcpClients, createResourceTools, createTokenStore, readServers } from "../dist/mcp.js";

/** Something for every required value, by its schema. */
function fill(schema) {
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.type === "object")
    return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, value]) => [name, fill(value)]));
  if (schema.type === "number" || schema.type === "integer") return 1;
  if (schema.type === "boolean") return true;
  return schema.type === "array" ? [] : "value";
}

/** One scenario against the server at `url`; gives the exit code the suite is told. */
export async function runScenario({ url, env, say }) {
  const context = JSON.parse(env.MCP_CONFORMANCE_CONTEXT ?? "{}");
  const cwd = mkdtempSync(join(tmpdir(), "callgate-conformance-"));
  const engine = createEngine({ workspace: cwd, approval: "never", sandbox: "full-access" });
  const scenario = env.MCP_CONFORMANCE_SCENARIO ?? "";
  // As a user would set it up: secrets in variables, named by the settings.
  const secrets = {
    CLIENT_SECRET: context.client_secret,
    PRIVATE_KEY: context.private_key_pem,
    IDENTITY_TOKEN: context.idp_id_token ?? context.valid_jwt,
  };
  const oauth = {
    client_metadata_url: "https://conformance-test.local/client-metadata.json",
    ...(context.client_id === undefined ? {} : { client_id: context.client_id }),
    ...(secrets.CLIENT_SECRET === undefined ? {} : { client_secret_env_var: "CLIENT_SECRET" }),
    ...(secrets.PRIVATE_KEY === undefined ? {} : { private_key_env_var: "PRIVATE_KEY" }),
    ...(secrets.IDENTITY_TOKEN === undefined ? {} : { identity_token_env_var: "IDENTITY_TOKEN" }),
    // The suite's company login describes itself in part only, so it is named by its endpoint.
    ...(context.idp_token_endpoint === undefined
      ? {}
      : { identity_token_endpoint: context.idp_token_endpoint, identity_client_id: context.idp_client_id }),
    ...(scenario.includes("client-credentials") ? { grant_type: "client_credentials" } : {}),
    ...(scenario.includes("dpop") ? { dpop: true } : {}),
  };
  const { servers } = readServers({
    s: {
      url,
      startup_timeout_ms: 15_000,
      tool_timeout_ms: 15_000,
      oauth,
      ...(env.MCP_CONFORMANCE_PROTOCOL_VERSION >= "2026" ? { protocol: "auto" } : { protocol: "legacy" }),
    },
  });
  const tokens = createTokenStore({ stateDir: cwd, env: secrets });

  // A browser that agrees to everything: it follows the login page straight back to us.
  const browse = (page) => void fetch(page).catch((error) => say(`browser: ${error.message}`));

  // A person who sends every form as it is.
  const elicit = async () => ({ action: "accept", content: {} });

  const clients = createMcpClients({
    servers,
    registry: engine.registry,
    stateDir: cwd,
    cwd,
    env: process.env,
    version: "0",
    warn: say,
    host: { elicit, roots: () => [cwd] },
    authProvider: (config) => tokens.interactive(config, browse),
  });
  engine.registry.add(...createResourceTools(clients));
  await clients.start({ waitMs: 20_000 });

  const given = new Map((context.toolCalls ?? []).map(({ name, arguments: input }) => [name, input]));
  // One scenario has a server that wants to see the schema of its first tool as it reached us.
  const echoed = engine.registry.find("s/json_schema_2020_12_tool")?.input;
  if (echoed !== undefined) given.set("json_schema_echo", { schema: echoed });
  for (const { name, input } of engine.registry.list().filter(({ group }) => group === "s")) {
    const ended = await engine.call(name, given.get(name.slice(2)) ?? fill(input));
    say(`${name}: ${ended.ok ? "ok" : `${ended.code} ${JSON.stringify(ended.content).slice(0, 300)}`}`);
  }
  await clients.close();
  await engine.close();
  return clients.connections.get("s").problem() === undefined ? 0 : 1;
}
