import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { configDir } from "../base/paths.ts";
import type { McpClients } from "../mcp/index.ts";
import type { Engine } from "../router/engine.ts";
import type { Config } from "./config.ts";
import { say } from "./io.ts";
import { connectServers, type ConnectOptions } from "./mcp-clients.ts";

/** Tools beside the built-in ones: the user's folders and MCP servers, from the settings. */
export interface OwnTools {
  readonly mcp: McpClients | undefined;
  close(): Promise<void>;
}

/** What cannot be loaded is said and left out; it never takes anything else with it. */
export async function loadOwnTools(
  engine: Engine,
  config: Config,
  cwd: string,
  { warn = (message) => say(`callgate: ${message}`), ...rest }: Partial<ConnectOptions> = {},
): Promise<OwnTools> {
  for (const folder of toolFolders(config)) {
    const { loadTools } = await import("../registry/folder.ts");
    const { tools, refused } = await loadTools(resolve(cwd, folder));
    for (const { file, reason } of refused) warn(`${file} was left out: ${reason}`);
    engine.registry.add(...tools);
  }
  const isHere = rest.wanted !== undefined && engine.registry.find(rest.wanted) !== undefined;
  const mcp = isHere ? undefined : await connectServers(engine, config, cwd, { warn, ...rest });
  return {
    mcp,
    async close() {
      await mcp?.close();
    },
  };
}

/** The user's own folder beside the settings, then those the settings name. */
function toolFolders(config: Config): readonly string[] {
  const own = join(configDir(process.env), "tools");
  return [...(existsSync(own) ? [own] : []), ...(config.tools_dir ?? [])];
}
