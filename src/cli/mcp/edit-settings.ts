/**
 * `callgate mcp add` and `remove`: change a server's table in the user's settings, and leave
 * everything else in the file as it is.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { isObject } from "../../base/json.ts";
import { readServers } from "../../mcp/config.ts";
import { loadConfig, userConfigFile } from "../config/config.ts";
import { print, UsageError } from "../io.ts";

export interface AddFlags {
  readonly url?: string;
  readonly bearerTokenEnv?: string;
  readonly env?: readonly string[];
  readonly sandbox?: boolean;
  readonly force?: boolean;
}

export async function addServer(flags: AddFlags, name: string | undefined, argv: readonly string[]): Promise<void> {
  if (name === undefined)
    throw new UsageError("name the server: callgate mcp add NAME COMMAND …, or NAME --url ADDRESS");
  const [command, ...args] = argv;
  if ((command === undefined) === (flags.url === undefined))
    throw new UsageError(
      "give its command (callgate mcp add NAME -- COMMAND …) or its address (--url), one of the two",
    );
  const entry = {
    ...(flags.url === undefined ? { command, ...(args.length === 0 ? {} : { args }) } : { url: flags.url }),
    ...(flags.bearerTokenEnv === undefined ? {} : { bearer_token_env_var: flags.bearerTokenEnv }),
    ...(flags.sandbox ? { sandbox: true } : {}),
    ...(flags.env === undefined ? {} : { env: Object.fromEntries(flags.env.map(readVariable)) }),
  };
  const [problem] = readServers({ [name]: entry }, process.env).problems;
  if (problem !== undefined && !problem.unset) throw new UsageError(`'${name}': ${problem.what}`);
  const file = userConfigFile(process.env);
  const before = readSettings(file);
  const servers = (await parseTable(before))["mcpServers"];
  const isThere = isObject(servers) && Object.hasOwn(servers, name);
  if (isThere && !flags.force) throw new UsageError(`there is a server '${name}' already (--force replaces it)`);
  const kept = isThere ? await withoutServer(before, name, file) : before;
  const table = Object.entries(entry).map(([key, value]) => `${key} = ${toToml(value)}`);
  await write(file, `${kept.trimEnd()}${kept.trim() === "" ? "" : "\n\n"}[mcpServers.${name}]\n${table.join("\n")}\n`);
  print(`wrote [mcpServers.${name}] to ${file}; 'callgate mcp list' shows how it is`);
}

export async function removeServer(name: string): Promise<void> {
  const file = userConfigFile(process.env);
  const before = readSettings(file);
  const servers = (await parseTable(before))["mcpServers"];
  if (!isObject(servers) || !Object.hasOwn(servers, name)) {
    const known = Object.keys(isObject(servers) ? servers : {});
    throw new UsageError(`there is no server '${name}' in ${file}${known.length === 0 ? "" : `: ${known.join(", ")}`}`);
  }
  await write(file, await withoutServer(before, name, file));
  print(`took [mcpServers.${name}] out of ${file}`);
}

function readVariable(given: string): readonly [string, string] {
  const at = given.indexOf("=");
  if (at < 1) throw new UsageError(`'${given}' is no variable: NAME=VALUE`);
  return [given.slice(0, at), given.slice(at + 1)];
}

function readSettings(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

async function parseTable(text: string): Promise<Readonly<Record<string, unknown>>> {
  // A file that cannot be read is reported with its line, as at every start.
  await loadConfig({ env: process.env, cwd: "/" });
  const { parse } = await import("smol-toml");
  return parse(text);
}

/** Removes the lines of its table and of the tables below it. A form without lines of its own is left to the person. */
async function withoutServer(text: string, name: string, file: string): Promise<string> {
  const header = /^\s*\[\[?\s*([^\]]+?)\s*\]\]?/;
  const own = [`mcpServers.${name}`, `mcpServers."${name}"`, `"mcpServers".${name}`];
  let inside = false;
  const kept = text.split("\n").filter((line) => {
    const title = header.exec(line)?.[1]?.replaceAll(/\s*\.\s*/g, ".");
    if (title !== undefined) inside = own.some((begin) => title === begin || title.startsWith(`${begin}.`));
    return !inside;
  });
  const after = kept.join("\n");
  const { parse } = await import("smol-toml");
  const { mcpServers: gone, ...rest } = parse(after);
  const { mcpServers: was, ...restBefore } = parse(text);
  const others = (table: unknown) =>
    JSON.stringify(Object.entries(isObject(table) ? table : {}).filter(([key]) => key !== name));
  const isClean =
    !(isObject(gone) && Object.hasOwn(gone, name)) &&
    others(gone) === others(was) &&
    JSON.stringify(rest) === JSON.stringify(restBefore);
  if (!isClean) throw new UsageError(`'${name}' is not a table of its own in ${file}: take it out by hand`);
  return after;
}

async function write(file: string, text: string): Promise<void> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const temp = `${file}.${process.pid}`;
  writeFileSync(temp, text, { mode: 0o600 });
  renameSync(temp, file);
}

function toToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toToml).join(", ")}]`;
  if (isObject(value))
    return `{ ${Object.entries(value)
      .map(([key, entry]) => `${JSON.stringify(key)} = ${toToml(entry)}`)
      .join(", ")} }`;
  return JSON.stringify(value); // a basic string of TOML takes every escape of JSON
}
