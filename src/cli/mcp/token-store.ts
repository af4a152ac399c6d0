import { defined } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import type { TokenStore } from "../../mcp/index.ts";
import type { Config } from "../config/config.ts";
import { UsageError } from "../io.ts";

/** Logins of HTTP servers: in the system's keyring where there is one, unless the settings say otherwise. */
export async function openTokenStore(config: Config, env: NodeJS.ProcessEnv): Promise<TokenStore> {
  const { createTokenStore } = await import("../../mcp/auth/auth.ts");
  const { findKeyring } = await import("../../mcp/auth/keyring.ts");
  const where = config.mcp_login_store ?? "auto";
  const keyring = where === "file" ? undefined : findKeyring(env);
  if (where === "keyring" && keyring === undefined)
    throw new UsageError("mcp_login_store is 'keyring', and this system has none (secret-tool on Linux)");
  return createTokenStore({ stateDir: stateDir(env), env, ...defined({ keyring }) });
}
