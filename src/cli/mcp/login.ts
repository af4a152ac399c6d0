/** `callgate mcp login` and `logout`: a browser, a callback, a token that is kept. */
import { readServers, type ServerConfig } from "../../mcp/config.ts";
import type { TokenStore } from "../../mcp/index.ts";
import type { FolderFlags } from "../config/flags.ts";
import { print, say, UsageError } from "../io.ts";
import { serverTable } from "./server-table.ts";
import { openBrowser } from "../open-browser.ts";
import { prepare } from "../prepare.ts";
import { openTokenStore } from "./token-store.ts";
import { version } from "../version.ts";

export interface LoginFlags extends FolderFlags {
  readonly noBrowser?: boolean;
}

/** How long a person may take to log in. */
const patienceMs = 300_000;

/** Connects with a person present: a server that wants a login shows its page. */
export async function logIn(flags: LoginFlags, server: string): Promise<void> {
  const { config, cwd, tokens } = await findServer(flags, server);
  const { createConnection } = await import("../../mcp/client/connection.ts");
  let asked = false;
  const authProvider = tokens.interactive(config, (page) => {
    asked = true;
    say(`callgate: to log in to ${server}, open\n  ${page.href}`);
    if (!flags.noBrowser) void openBrowser(page);
  });
  if (authProvider === undefined)
    throw new UsageError(
      `${server} takes its token from a variable (bearer_token_env_var); there is nothing to log in`,
    );
  const connection = createConnection({
    // The login happens while the connection is being made, and a person is slower than a server.
    config: { ...config, startTimeoutMs: Math.max(config.startTimeoutMs, patienceMs + 30_000) },
    authProvider,
    cwd,
    env: process.env,
    version,
    onToolsChanged: () => undefined,
  });
  try {
    const tools = await connection.listTools();
    print(`${asked ? "logged in to" : "no new login was needed for"} ${server}: ${tools.length} tools`);
  } finally {
    await connection.close();
  }
}

export async function logOut(flags: FolderFlags, server: string): Promise<void> {
  const { config, tokens } = await findServer(flags, server);
  const was = await tokens.forget(config);
  print(was ? `logged out of ${server}: its tokens are gone from this machine` : `there was no login for ${server}`);
}

async function findServer(
  flags: FolderFlags,
  server: string,
): Promise<{ readonly config: ServerConfig; readonly cwd: string; readonly tokens: TokenStore }> {
  const { cwd, config } = await prepare(flags);
  const { servers } = readServers(serverTable(config, cwd), process.env);
  const found = servers.find(({ name }) => name === server);
  if (found === undefined)
    throw new UsageError(
      `there is no MCP server '${server}': ${servers.map(({ name }) => name).join(", ") || "none is configured"}`,
    );
  if (found.transport.kind !== "http")
    throw new UsageError(`${server} is a program, not an address: no login is needed`);
  return { config: found, cwd, tokens: await openTokenStore(config, process.env) };
}
