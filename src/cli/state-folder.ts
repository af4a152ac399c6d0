import { accessSync, constants, mkdirSync } from "node:fs";
import { errorCode } from "../base/error.ts";
import { stateDir } from "../base/paths.ts";

/** Why nothing can be stored in our state folder (sessions, decisions, outputs). Undefined if it can. */
export function stateProblem(env: NodeJS.ProcessEnv): string | undefined {
  const folder = stateDir(env);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    return undefined;
  } catch (error) {
    return `nothing can be written to ${folder} (${errorCode(error)}): set CALLGATE_HOME to a folder of yours`;
  }
}
