import { resolve } from "node:path";
import { CallError } from "../../base/error.ts";
import { stateDir } from "../../base/paths.ts";
import type { Rule } from "../../gate/rules.ts";
import { approvalRules } from "../../mcp/client/approval-rules.ts";
import { isObject } from "../../base/json.ts";
import { readServers, serverKeys, type ServerProblem } from "../../mcp/config.ts";
import type { McpClients, McpHost } from "../../mcp/index.ts";
import type { Engine } from "../../router/engine.ts";
import type { Model } from "../../spec/model.ts";
import { isNamedAfter } from "../../spec/name.ts";
import type { Approver } from "../../spec/stages.ts";
import type { Config } from "../config/config.ts";
import { UsageError } from "../io.ts";
import { createElicit } from "./elicit.ts";
import { createSample } from "./sampling.ts";
import type { Person } from "../chat/person.ts";
import { serverTable } from "./server-table.ts";
import { openTokenStore } from "./token-store.ts";
import { version } from "../version.ts";

/** The first name in the settings of servers that nobody knows. */
function findUnknown(table: Readonly<Record<string, unknown>>): ServerProblem | undefined {
  for (const [server, entry] of Object.entries(table)) {
    const unknown = Object.keys(isObject(entry) ? entry : {}).find((key) => !serverKeys.includes(key));
    if (unknown !== undefined) return { server, what: `there is no setting '${unknown}'` };
  }
  return undefined;
}

/** What the servers' settings say about asking before a call. */
export function serverRules(config: Config, cwd: string): readonly Rule[] {
  return approvalRules(
    readServers(
      serverTable(config, cwd, () => undefined),
      process.env,
    ).servers,
  );
}

export interface ConnectOptions {
  readonly warn: (message: string) => void;
  /** Answers what servers want to know, or says yes or no for a program. Left out: servers are told no. */
  readonly person?: Person;
  readonly approver?: Approver;
  /** Answers servers' questions instead. */
  readonly elicit?: McpHost["elicit"];
  /** The model that servers may ask, if their settings allow it. Left out: none. */
  readonly model?: () => Promise<Model>;
  /** The one tool this is for. Servers that cannot have it are not started. */
  readonly wanted?: string;
  /** How long to wait for servers nobody has seen before. */
  readonly waitMs?: number;
}

/**
 * Connects the configured servers to an engine. Loaded only if there are any, because most of the cost
 * is the protocol library.
 */
export async function connectServers(
  engine: Engine,
  config: Config,
  cwd: string,
  { wanted, waitMs, ...options }: ConnectOptions,
): Promise<McpClients | undefined> {
  const table = serverTable(config, cwd);
  if (Object.keys(table).length === 0) return undefined;
  const { warn, model, elicit = createElicit({ engine, ...options }) } = options;
  const { createMcpClients, createResourceTools } = await import("../../mcp/index.ts");
  const { servers: configured, problems } = readServers(table, process.env);
  // In our own settings a mistake stops the start like any other. A project's file may be meant for other programs.
  const mistake =
    problems.find(({ server, unset }) => unset !== true && Object.hasOwn(config.mcpServers ?? {}, server)) ??
    findUnknown(config.mcpServers ?? {});
  if (mistake !== undefined) throw new UsageError(`the settings, [mcpServers.${mistake.server}]: ${mistake.what}`);
  for (const { server, what } of problems) warn(`the MCP server '${server}' is left out: ${what}`);
  const named = configured.filter(({ name }) => wanted !== undefined && isNamedAfter(name, wanted));
  const servers = named.length > 0 ? named : configured;
  const grant = engine.gate.baseGrant();
  const state = stateDir(process.env);
  const tokens = await openTokenStore(config, process.env);
  const clients = createMcpClients({
    servers,
    registry: engine.registry,
    stateDir: state,
    cwd,
    env: process.env,
    grant,
    sandbox: engine.sandbox(),
    version,
    warn,
    authProvider: tokens.providerFor,
    host: {
      elicit,
      ...(model === undefined ? {} : { sample: createSample({ engine, model }) }),
      roots: () => [cwd, ...(config.writable_roots ?? []).map((root) => resolve(cwd, root))],
    },
    sandboxState: () => {
      const now = engine.gate.baseGrant();
      return {
        policy: now.policy,
        writableRoots: [...now.write],
        network: typeof now.network === "string" ? now.network : [...now.network],
        cwd,
      };
    },
  });
  engine.registry.add(...createResourceTools(clients));
  try {
    await clients.start(waitMs === undefined ? {} : { waitMs });
  } catch (error) {
    await clients.close();
    // Only a server without which the user does not want to start ends here.
    throw CallError.is(error) ? new UsageError(`${error.message} (its settings say 'required')`) : error;
  }
  return clients;
}
