/** MCP clients on a real engine, and the servers to try them with. */
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import { createEngine, type Engine, type EngineOptions } from "../../src/index.ts";
import { createMcpClients, readServers, type McpClientsOptions, type McpEvent } from "../../src/mcp/index.ts";

const require = createRequire(import.meta.url);

/** The program a package's bin names. */
export function program(name: string): string {
  const file = require.resolve(`${name}/package.json`);
  const { bin } = JSON.parse(readFileSync(file, "utf8")) as { bin: string | Record<string, string> };
  return join(dirname(file), typeof bin === "string" ? bin : Object.values(bin)[0]!);
}

export const hostile = fileURLToPath(new URL("./hostile-server.mjs", import.meta.url));
export const stdio = (...args: readonly string[]) => ({ command: process.execPath, args });

export interface ConnectSetup {
  readonly stateDir?: string;
  readonly waitMs?: number;
  readonly engine?: Partial<EngineOptions>;
  readonly clients?: Partial<McpClientsOptions>;
}

/** Everything is ended by `close`, whatever happened in between. */
export async function connect(table: object, setup: ConnectSetup = {}) {
  const cwd = mkdtempSync(join(tmpdir(), "callgate-mcp-"));
  const engine = createEngine({ workspace: cwd, approval: "never", sandbox: "full-access", ...setup.engine });
  const { servers, problems } = readServers(table);
  const warnings = problems.map(({ server, what }) => `${server}: ${what}`);
  const events: McpEvent[] = [];
  const clients = createMcpClients({
    servers,
    registry: engine.registry,
    stateDir: setup.stateDir ?? join(cwd, "state"),
    cwd,
    env: process.env,
    sandbox: engine.sandbox(),
    version: "0",
    warn: (message) => warnings.push(message),
    onEvent: (event) => events.push(event),
    ...setup.clients,
  });
  const close = async () => {
    await clients.close();
    await engine.close();
  };
  await clients.start({ waitMs: setup.waitMs ?? 20_000 }).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return { cwd, engine, clients, warnings, events, close };
}

/** Connections, and whatever else a test opens, ended after it: the last one first. */
export function useConnections() {
  const cleanups: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });
  return {
    cleanups,
    async connect(table: object, setup?: ConnectSetup) {
      const connected = await connect(table, setup);
      cleanups.push(connected.close);
      return connected;
    },
  };
}

export const call = async (engine: Engine, name: string, input: object = {}) => {
  const ended = await engine.call(name, input as never);
  return { ok: ended.ok, code: ended.code, text: partsToText(ended.content), ended };
};
export const names = (engine: Engine) => engine.registry.list().map(({ name }) => name);

/** Processes whose command line has the marker in it. */
export function marked(marker: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        Number(pid) !== process.pid &&
        readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(marker)
      );
    } catch {
      return false;
    }
  });
}
