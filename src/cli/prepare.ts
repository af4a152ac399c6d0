import { statSync } from "node:fs";
import { resolve } from "node:path";
import { loadConfig, type Config } from "./config/config.ts";
import { flagsToConfig, type SessionFlags } from "./config/flags.ts";
import { say, UsageError } from "./io.ts";
import { isTrusted } from "./policy/trust.ts";

/** The folder and the settings of a command. Reports what was left out because it is not trusted. */
export async function prepare(flags: SessionFlags): Promise<{ readonly cwd: string; readonly config: Config }> {
  const cwd = resolve(flags.cwd ?? ".");
  if (!isFolder(cwd)) throw new UsageError(`there is no folder ${cwd}`);
  if (flags.model === "offline" && flags.baseUrl !== undefined)
    throw new UsageError(
      "'offline' is the built-in planner and has no address: give the name of the server's model, or leave out --base-url",
    );
  for (const folder of flags.addDir ?? []) {
    if (!isFolder(resolve(cwd, folder))) throw new UsageError(`there is no folder ${resolve(cwd, folder)}`);
  }
  return { cwd, config: await loadSettings(cwd, flagsToConfig(flags)) };
}

/** The settings of a folder. Reports what was left out because it is not trusted. */
export async function loadSettings(cwd: string, flags: Config = {}): Promise<Config> {
  const { config, untrusted } = await loadConfig({ env: process.env, cwd, flags, isTrusted });
  for (const file of untrusted)
    say(`callgate: ${file} is not trusted yet and was not read ('callgate trust' shows and trusts it)`);
  return config;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
