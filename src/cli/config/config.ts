import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { configDir } from "../../base/paths.ts";
import { configKeys, shapeOf, type ConfigKey, type ConfigName } from "./keys.ts";
import { checkShape, type Shape } from "../../base/shape.ts";
import { toolsConfigFields } from "../../registry/tools-config.ts";
import { unreadable, UsageError } from "../io.ts";
import { lineOf } from "./toml-line.ts";

type ValueOf<Key extends ConfigKey> = Key["type"] extends "string"
  ? string
  : Key["type"] extends "number"
    ? number
    : Key["type"] extends "boolean"
      ? boolean
      : Key["type"] extends "strings"
        ? readonly string[]
        : Readonly<Record<string, unknown>>;

/** Settings after all layers: user file, project file (once trusted), environment, flags. The last one wins. */
export type Config = { readonly [Name in ConfigName]?: ValueOf<(typeof configKeys)[Name]> };

export interface ConfigSources {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The project's own file counts only after the user has trusted its content. */
  readonly isTrusted?: (path: string, content: string) => boolean;
  readonly flags?: Config;
}

export interface LoadedConfig {
  readonly config: Config;
  readonly files: readonly string[];
  /** A project file that was not read, because nobody has trusted it yet. */
  readonly untrusted: readonly string[];
}

export const userConfigFile = (env: NodeJS.ProcessEnv) => join(configDir(env), "callgate.toml");
/** The files of a project. If both exist, the last one wins. */
const projectConfigFiles = (cwd: string) => [join(cwd, "callgate.toml"), join(cwd, ".callgate", "callgate.toml")];

export async function loadConfig(sources: ConfigSources): Promise<LoadedConfig> {
  const files: string[] = [];
  const untrusted: string[] = [];
  let config: Config = {};
  const user = userConfigFile(sources.env);
  if (existsSync(user)) {
    files.push(user);
    config = await readConfigFile(user, readText(user));
  }
  for (const project of projectConfigFiles(sources.cwd)) {
    if (!existsSync(project) || project === user) continue;
    const content = readText(project);
    if (sources.isTrusted?.(project, content)) {
      files.push(project);
      config = { ...config, ...(await readConfigFile(project, content)) };
    } else untrusted.push(project);
  }
  return { config: { ...config, ...fromEnvironment(sources.env), ...sources.flags }, files, untrusted };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(unreadable(path, error));
  }
}

async function readConfigFile(path: string, content: string): Promise<Config> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    return checkKeys(parse(content), path, content);
  } catch (error) {
    if (error instanceof TomlError)
      throw new UsageError(`${path}, line ${error.line}: ${error.message.split("\n")[0]}`);
    throw error;
  }
}

/** An unknown key is a mistake: it stops the start and is named with its line. */
function checkKeys(table: Readonly<Record<string, unknown>>, path: string, content: string): Config {
  const problem = checkShape(table, { fields: { ...shapes, ...switches } }, []);
  if (problem) throw new UsageError(`${path}, line ${lineOf(content, problem.path)}: ${problem.message}`);
  return gatherSwitches(table);
}

/** Codex writes its switches at the top of the file; here they are one table, `tools`. */
function gatherSwitches(table: Readonly<Record<string, unknown>>): Config {
  const entries = Object.entries(table);
  const gathered = Object.fromEntries(entries.filter(([name]) => Object.hasOwn(switches, name)));
  // Every value was checked against its shape.
  const rest = Object.fromEntries(entries.filter(([name]) => !Object.hasOwn(switches, name))) as Config;
  return Object.keys(gathered).length === 0 ? rest : { ...rest, tools: { ...gathered, ...rest.tools } };
}

const shapes: Readonly<Record<string, Shape>> = Object.fromEntries(
  Object.entries<ConfigKey>(configKeys).map(([name, key]) => [name, shapeOf(key)]),
);

const switches: Readonly<Record<string, Shape>> = Object.fromEntries(
  Object.entries(toolsConfigFields).filter(([name]) => !Object.hasOwn(configKeys, name)),
);

/** How a switch is written in the environment. */
const words: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

function fromEnvironment(env: NodeJS.ProcessEnv): Config {
  const found: Record<string, unknown> = {};
  for (const [name, key] of Object.entries(configKeys) as [ConfigName, ConfigKey][]) {
    const text = key.env === undefined ? undefined : env[key.env];
    if (text === undefined || text === "") continue;
    const value = key.type === "number" ? Number(text) : key.type === "boolean" ? (words.get(text) ?? text) : text;
    const problem = checkShape(Number.isNaN(value) ? text : value, shapeOf(key), [name]);
    if (problem) throw new UsageError(`the environment variable ${key.env}: ${problem.message}`);
    found[name] = value;
  }
  return found;
}
