import { defined } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { toVisibleLine } from "../../gate/show.ts";
import { readServers, type ServerConfig } from "../../mcp/config.ts";
import type { TokenStore } from "../../mcp/index.ts";
import { createEngine } from "../../router/engine.ts";
import { engineOptions } from "../engine-options.ts";
import type { PolicyFlags } from "../config/flags.ts";
import { exitCodes, print, printJson, UsageError } from "../io.ts";
import { serverTable } from "./server-table.ts";
import { prepare } from "../prepare.ts";
import { openTokenStore } from "./token-store.ts";
import { version } from "../version.ts";

interface Finding {
  readonly server: string;
  readonly ok: boolean;
  readonly tools: number;
  readonly startMs: number;
  readonly problems: readonly string[];
}

/** Starts every server, side by side, and reports the outcome. Exit code 1 if something is wrong. */
export async function examine(flags: PolicyFlags & { readonly json?: boolean }): Promise<number> {
  const { cwd, config } = await prepare(flags);
  const { servers, problems } = readServers(serverTable(config, cwd), process.env);
  if (servers.length + problems.length === 0)
    throw new UsageError("no MCP server is configured ([mcpServers] in callgate.toml)");
  const tokens = await openTokenStore(config, process.env);
  const engine = createEngine(await engineOptions(config, cwd, process.env));
  try {
    const findings = [
      ...problems.map(({ server, what }) => ({ server, ok: false, tools: 0, startMs: 0, problems: [what] })),
      ...(await Promise.all(servers.map((server) => look(server, { engine, tokens, cwd })))),
    ];
    if (flags.json) printJson(findings);
    else for (const finding of findings) print(toLine(finding));
    return findings.every(({ ok }) => ok) ? exitCodes.done : exitCodes.failed;
  } finally {
    await engine.close();
  }
}

interface LookContext {
  readonly engine: ReturnType<typeof createEngine>;
  readonly tokens: TokenStore;
  readonly cwd: string;
}

async function look(config: ServerConfig, { engine, tokens, cwd }: LookContext): Promise<Finding> {
  const [{ adaptTools }, { createCatalogue }, { createConnection }] = await Promise.all([
    import("../../mcp/client/tools.ts"),
    import("../../mcp/client/catalogue.ts"),
    import("../../mcp/client/connection.ts"),
  ]);
  if (!config.enabled) return { server: config.name, ok: true, tools: 0, startMs: 0, problems: ["it is disabled"] };
  const state = stateDir(process.env);
  const authProvider = tokens.providerFor(config);
  const unusable: string[] = [];
  const connection = createConnection({
    config,
    onRefused: (tool, reason) => unusable.push(`${config.name}/${tool} is left out: ${reason}`),
    cwd,
    env: process.env,
    version,
    sandbox: engine.sandbox(),
    grant: engine.gate.baseGrant(),
    onToolsChanged: () => undefined,
    ...defined({ authProvider }),
  });
  const startedAt = performance.now();
  try {
    const found = await connection.listTools();
    const startMs = Math.round(performance.now() - startedAt);
    const { tools, refused } = adaptTools(found, { connection });
    const changed = createCatalogue(state).changed(config, found);
    const problems = [
      ...unusable,
      ...refused.map(({ tool, reason }) => `${tool} is left out: ${reason}`),
      ...changed.map((tool) => `${tool} is held back: it changed since it was looked at`),
    ];
    // A tool that had to be left out is reported; the server works with the others all the same.
    const ok = changed.length === 0 && (tools.length > 0 || problems.length === 0);
    return { server: config.name, ok, tools: tools.length, startMs, problems };
  } catch (error) {
    const problem = connection.problem() ?? (error instanceof Error ? error.message : String(error));
    const startMs = Math.round(performance.now() - startedAt);
    return { server: config.name, ok: false, tools: 0, startMs, problems: [problem] };
  } finally {
    await connection.close();
  }
}

function toLine({ server, ok, tools, startMs, problems }: Finding): string {
  const what = problems.length === 0 ? "" : `  ${toVisibleLine(problems.join("; "))}`;
  return `${ok ? "ok  " : "FAIL"}  ${server.padEnd(20)} ${String(tools).padStart(4)} tools  ${startMs} ms${what}`;
}
