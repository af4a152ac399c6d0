/**
 * What each server offered last time, stored on disk. The tools of a known server can be offered
 * before it is up, and a tool whose description or schema has changed since somebody looked at it is
 * noticed.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isObject, stableStringify } from "../../base/json.ts";
import type { ServerConfig } from "../config.ts";
import type { ServerTool } from "../protocol.ts";

export interface Catalogue {
  /** The tools as they were last seen, or undefined for a server that is new or set up differently. */
  known(config: ServerConfig): readonly ServerTool[] | undefined;
  remember(config: ServerConfig, tools: readonly ServerTool[]): void;
  /** It did not answer in time when it was new, so nobody waits for it again. */
  isSlow(config: ServerConfig): boolean;
  rememberSlow(config: ServerConfig): void;
  /**
   * Tools that differ from what somebody looked at before. A tool that is seen for the first time is
   * pinned as it is.
   */
  changed(config: ServerConfig, tools: readonly ServerTool[]): readonly string[];
  /** The user has looked at the tools, so their present form is accepted. */
  accept(server: string, tools: readonly ServerTool[]): void;
}

interface Entry {
  readonly setup: string;
  readonly slow?: boolean;
  readonly tools: readonly ServerTool[];
  /** Pairs instead of an object, because a server may name a tool `constructor`. */
  readonly pins: readonly (readonly [tool: string, pin: string])[];
}

export function createCatalogue(stateDir: string): Catalogue {
  const folder = join(stateDir, "mcp");
  const fileOf = (server: string) => join(folder, `${server}.json`);

  const load = (server: string): Entry | undefined => {
    const file = fileOf(server);
    if (!existsSync(file)) return undefined;
    try {
      const value: unknown = JSON.parse(readFileSync(file, "utf8"));
      // This is our own file; a damaged one counts as missing.
      const isOurs = isObject(value) && Array.isArray(value["tools"]) && Array.isArray(value["pins"]);
      return isOurs ? (value as unknown as Entry) : undefined;
    } catch {
      return undefined;
    }
  };
  const save = (server: string, entry: Entry) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const temporary = `${fileOf(server)}.${process.pid}`;
    writeFileSync(temporary, JSON.stringify(entry), { mode: 0o600 });
    renameSync(temporary, fileOf(server));
  };

  return {
    known(config) {
      const entry = load(config.name);
      return entry?.setup === setupOf(config) && !entry.slow ? entry.tools : undefined;
    },
    isSlow(config) {
      const entry = load(config.name);
      return entry?.setup === setupOf(config) && entry.slow === true;
    },
    rememberSlow(config) {
      save(config.name, { setup: setupOf(config), slow: true, tools: [], pins: load(config.name)?.pins ?? [] });
    },
    remember(config, tools) {
      const pins = pinsOf(load(config.name));
      for (const tool of tools) if (!pins.has(tool.name)) pins.set(tool.name, pinOf(tool));
      save(config.name, { setup: setupOf(config), tools, pins: [...pins] });
    },
    changed(config, tools) {
      const pins = pinsOf(load(config.name));
      return tools.filter((tool) => pins.has(tool.name) && pins.get(tool.name) !== pinOf(tool)).map(({ name }) => name);
    },
    accept(server, tools) {
      const entry = load(server);
      const pins = pinsOf(entry);
      for (const tool of tools) pins.set(tool.name, pinOf(tool));
      save(server, { setup: entry?.setup ?? "", tools: entry?.tools ?? tools, pins: [...pins] });
    },
  };
}

function pinsOf(entry: Entry | undefined): Map<string, string> {
  return new Map(entry?.pins);
}

/** What a person would have to look at again if it changed. */
function pinOf({ name, description, inputSchema, outputSchema, annotations }: ServerTool): string {
  return hash(stableStringify({ name, description, inputSchema, outputSchema, annotations }));
}

function setupOf({ name, transport }: ServerConfig): string {
  return hash(stableStringify({ name, transport }));
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
