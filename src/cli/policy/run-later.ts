/** The files that run later, ours and those that the settings add. */
import { defined } from "../../base/json.ts";
import { ownFolders } from "../../base/paths.ts";
import type { PolicyOptions } from "../../gate/options.ts";
import { joinRunLater, type RunLater } from "../../gate/run-later.ts";
import type { Config } from "../config/config.ts";

export function runLaterTable(config: Config): RunLater {
  return joinRunLater(
    defined({ protected: config.protected_paths, asked: config.asked_paths, flagged: config.flagged_paths }),
  );
}

/** As a policy takes them, with our own folders, which nothing may change either. */
export function runLaterOptions(config: Config, env: NodeJS.ProcessEnv): Pick<PolicyOptions, "protect" | "asked"> {
  const table = runLaterTable(config);
  return { protect: [...table.protected, ...ownFolders(env)], asked: table.asked };
}
