import { resolve } from "node:path";
import type { Registry } from "../registry/registry.ts";
import type { Config } from "./config.ts";
import { say } from "./io.ts";

/** Tools beside the built-in ones: the user's folders and MCP servers, from the settings. */
export interface OwnTools {
  close(): Promise<void>;
}

/** What cannot be loaded is said and left out; it never takes anything else with it. */
export async function loadOwnTools(registry: Registry, config: Config, cwd: string): Promise<OwnTools> {
  for (const folder of config.tools_dir ?? []) {
    const { loadTools } = await import("../registry/folder.ts");
    const { tools, refused } = await loadTools(resolve(cwd, folder));
    for (const { file, reason } of refused) say(`callgate: ${file} was left out: ${reason}`);
    registry.add(...tools);
  }
  return { async close() {} };
}
