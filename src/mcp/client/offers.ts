/** Each server's tools, and which of them are offered: those that are still what the user looked at. */
import type { JsonObject } from "../../base/json.ts";
import { CallError, type Registry } from "../../index.ts";
import type { Catalogue } from "./catalogue.ts";
import type { Connection } from "./connection.ts";
import type { ServerTool } from "../protocol.ts";
import type { McpEvent } from "./metrics.ts";
import { adaptTools } from "./tools.ts";

export interface OffersOptions {
  readonly registry: Registry;
  readonly catalogue: Catalogue;
  readonly sandboxState?: () => JsonObject;
  readonly emit: (event: McpEvent) => void;
  readonly warn: (message: string) => void;
}

export interface Offers {
  /** Tools held back because they changed since they were looked at, by server. */
  readonly held: ReadonlyMap<string, readonly string[]>;
  /** Offers what a server had when it was last seen. */
  offer(connection: Connection, tools: readonly ServerTool[]): void;
  /** What a running server says it has, from here on. */
  adopt(connection: Connection, tools: readonly ServerTool[]): void;
  /** The server was started (again), so it may have changed. */
  started(server: string): void;
  accept(connection: Connection): Promise<void>;
}

export function createOffers({ registry, catalogue, sandboxState, emit, warn }: OffersOptions): Offers {
  const held = new Map<string, readonly string[]>();
  const latest = new Map<string, readonly ServerTool[]>();
  const starts = new Map<string, number>();
  /** For each server, the start after which its tools were last looked at. */
  const lookedAt = new Map<string, number>();

  const offer = (connection: Connection, found: readonly ServerTool[]) => {
    const { config } = connection;
    latest.set(config.name, found);
    const changed = catalogue.changed(config, found);
    if (changed.length === 0) held.delete(config.name);
    else held.set(config.name, changed);
    for (const tool of changed) warn(`${isHeldBack(config.name, tool)} ('callgate mcp tools ${config.name}' shows it)`);
    const { tools, refused } = adaptTools(
      found.filter(({ name }) => !changed.includes(name)),
      {
        connection,
        emit,
        verify: (tool) => verify(connection, tool),
        ...(sandboxState ? { sandboxState } : {}),
      },
    );
    for (const { tool, reason } of refused) warn(`${tool} is left out: ${reason}`);
    registry.replace(({ origin }) => origin?.server === config.name, tools);
  };
  const adopt = (connection: Connection, found: readonly ServerTool[]) => {
    const { config } = connection;
    offer(connection, found);
    catalogue.remember(config, found);
    lookedAt.set(config.name, starts.get(config.name) ?? 0);
  };
  /** After each start of a server its tools are checked before the first call. */
  const verify = async (connection: Connection, tool: string) => {
    const { name } = connection.config;
    await connection.client();
    if (lookedAt.get(name) !== starts.get(name)) adopt(connection, await connection.listTools());
    if (held.get(name)?.includes(tool))
      throw new CallError("mcp", `${isHeldBack(name, tool)}.`, {
        hint: `Tell the user to look at it with 'callgate mcp tools ${name}'; until then do it another way.`,
      });
  };

  return {
    held,
    offer,
    adopt,
    started: (server) => void starts.set(server, (starts.get(server) ?? 0) + 1),
    async accept(connection) {
      const { name } = connection.config;
      const found = latest.get(name) ?? (await connection.listTools());
      catalogue.accept(name, found);
      offer(connection, found);
    },
  };
}

function isHeldBack(server: string, tool: string): string {
  return `${server}/${tool} is held back: its description or schema changed since it was looked at`;
}
