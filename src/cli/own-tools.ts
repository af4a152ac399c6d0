import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { JsonObject } from "../base/json.ts";
import { configDir } from "../base/paths.ts";
import type { McpClients } from "../mcp/index.ts";
import type { Engine } from "../router/engine.ts";
import type { Config } from "./config/config.ts";
import { say } from "./io.ts";
import { isProjectTrusted } from "./policy/trust.ts";
import { connectServers, type ConnectOptions } from "./mcp/clients.ts";

/** Tools beside the built-in ones: the user's folders and MCP servers, from the settings. */
export interface OwnTools {
  readonly mcp: McpClients | undefined;
  close(): Promise<void>;
}

/** What cannot be loaded is reported and left out, and affects nothing else. */
export async function loadOwnTools(
  engine: Engine,
  config: Config,
  cwd: string,
  { warn = (message) => say(`callgate: ${message}`), ...rest }: Partial<ConnectOptions> = {},
): Promise<OwnTools> {
  for (const folder of toolFolders(config, cwd, warn)) await loadFolder(engine, folder, config, warn);
  const isHere = rest.wanted !== undefined && engine.registry.find(rest.wanted) !== undefined;
  const mcp = isHere ? undefined : await connectServers(engine, config, cwd, { warn, ...rest });
  return {
    mcp,
    async close() {
      await mcp?.close();
    },
  };
}

async function loadFolder(
  engine: Engine,
  folder: string,
  config: Config,
  warn: (message: string) => void,
): Promise<void> {
  if (!existsSync(folder)) return warn(`there is no folder of tools ${folder}`);
  const { loadTools } = await import("../registry/folder.ts");
  const log = { debug() {}, info() {}, error() {}, warn: noteOnly };
  function noteOnly(message: string, fields?: JsonObject) {
    if (!message.startsWith("refused")) warn(`${String(fields?.["file"] ?? folder)}: ${message}`);
  }
  const { tools, refused } = await loadTools(folder, {
    log,
    // One of two words: checked when the settings were read.
    ...(config.tools_group === undefined ? {} : { group: config.tools_group as "path" | "innermost" }),
  });
  for (const { file, reason } of refused) warn(`${file} was left out: ${reason}`);
  const loaded: string[] = [];
  for (const tool of tools) {
    if (engine.registry.find(tool.name)?.name === tool.name) {
      warn(`${tool.name} of ${folder} was left out: there is a tool of that name`);
      continue;
    }
    engine.registry.add(tool);
    loaded.push(tool.name);
  }
  if (loaded.length > 0) warn(`${folder}: loaded ${loaded.join(", ")}`);
}

/**
 * The user's own folder beside the settings, the project's if it is trusted, then those that the
 * settings name, each once.
 */
function toolFolders(config: Config, cwd: string, warn: (message: string) => void): ReadonlySet<string> {
  const own = join(configDir(process.env), "tools");
  const project = join(cwd, ".callgate", "tools");
  const isThere = existsSync(project);
  const isRead = isThere && isProjectTrusted(cwd);
  if (isThere && !isRead) warn(`${project} is not trusted yet and was not read ('callgate trust' shows and trusts it)`);
  const named = (config.tools_dir ?? []).map((folder) => resolve(cwd, folder));
  return new Set([...(existsSync(own) ? [own] : []), ...(isRead ? [project] : []), ...named]);
}
