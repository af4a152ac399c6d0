import { accessSync, constants, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { errorCode } from "../base/error.ts";
import { stateDir } from "../base/paths.ts";

/** Why nothing can be stored in our state folder (sessions, decisions, outputs). Undefined if it can. */
export function stateProblem(env: NodeJS.ProcessEnv): string | undefined {
  const folder = stateDir(env);
  try {
    makeFolder(folder);
    accessSync(folder, constants.W_OK);
    return undefined;
  } catch (error) {
    return `nothing can be written to ${folder} (${errorCode(error)}): set CALLGATE_HOME to a folder of yours`;
  }
}

/** Folder by folder, because Node's recursive mkdir never ends where the system says that the parent is missing (/proc). */
function makeFolder(folder: string): void {
  if (isFolder(folder)) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if (errorCode(error) !== "EEXIST" || !isFolder(folder)) throw error; // another process may have made it just now
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
