/** Which MCP servers there are, as the settings write them down. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { say, UsageError } from "../io.ts";
import { isTrusted } from "../policy/trust.ts";

/** The settings' servers, and the project's `.mcp.json` once its content is trusted. */
export function serverTable(config: Config, cwd: string, tell = say): Readonly<Record<string, unknown>> {
  return { ...readProjectServers(join(cwd, ".mcp.json"), tell), ...config.mcpServers };
}

function readProjectServers(path: string, tell: (line: string) => void): Readonly<Record<string, unknown>> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return {}; // most projects have none
  }
  if (!isTrusted(path, text)) {
    tell(`callgate: ${path} is not trusted yet and was not read ('callgate trust' shows and trusts it)`);
    return {};
  }
  try {
    return (JSON.parse(text) as { readonly mcpServers?: Record<string, unknown> }).mcpServers ?? {};
  } catch (error) {
    throw new UsageError(`${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
