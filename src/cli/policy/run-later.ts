/** The files that run later: ours, those that the settings add, and those that the settings make us run. */
import { extname, resolve } from "node:path";
import { defined, isObject } from "../../base/json.ts";
import { ownFolders } from "../../base/paths.ts";
import type { PolicyOptions } from "../../gate/options.ts";
import { statOf } from "../../gate/paths.ts";
import { joinRunLater, type RunLater } from "../../gate/run-later.ts";
import type { Config } from "../config/config.ts";
import { serverTable } from "../mcp/server-table.ts";

export function runLaterTable(config: Config): RunLater {
  return joinRunLater(
    defined({ protected: config.protected_paths, asked: config.asked_paths, flagged: config.flagged_paths }),
  );
}

/** As a policy takes them, with our own folders and programs, which nothing may change either. */
export function runLaterOptions(
  config: Config,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Pick<PolicyOptions, "protect" | "asked"> {
  const table = runLaterTable(config);
  return { protect: [...table.protected, ...ownFolders(env), ...ownPrograms(config, cwd)], asked: table.asked };
}

/** Files and folders that we run or import outside every sandbox: hooks, servers, folders of tools. */
function ownPrograms(config: Config, cwd: string): readonly string[] {
  const hooks = Object.values(config.hooks ?? {}).flatMap((list) => (Array.isArray(list) ? list : []));
  const servers = Object.values(serverTable(config, cwd, () => undefined));
  return [
    ...[...hooks, ...servers].flatMap((entry) => filesIn(entry, cwd)),
    ...(config.tools_dir ?? []).map((folder) => resolve(cwd, folder)),
  ];
}

/** The words of a command that are programs or scripts. Folders and data that it is given may change. */
function filesIn(entry: unknown, cwd: string): readonly string[] {
  if (!isObject(entry) || entry["sandbox"] === true) return [];
  const { command, args, cwd: own } = entry;
  const folder = resolve(cwd, typeof own === "string" ? own : ".");
  return [command, args]
    .flat()
    .filter((word) => typeof word === "string")
    .map((word) => resolve(folder, word))
    .filter(isProgram);
}

const scripts = new Set(".js .mjs .cjs .ts .mts .cts .tsx .py .pyz .rb .sh .bash .pl .php .lua .jar .wasm".split(" "));

function isProgram(path: string): boolean {
  const stats = statOf(path); // a word may be no path at all, such as a program given as text
  return stats?.isFile() === true && ((stats.mode & 0o111) !== 0 || scripts.has(extname(path)));
}
