import { stateDir } from "../../base/paths.ts";
import { createTrust } from "../../gate/trust.ts";

/** Whether the user has agreed to exactly this content of a project file. */
export function isTrusted(path: string, content: string): boolean {
  return createTrust({ stateDir: stateDir(process.env) }).isTrusted(path, content);
}

/** Whether the user has agreed to everything this project brings, as it is now. */
export function isProjectTrusted(workspace: string): boolean {
  return createTrust({ stateDir: stateDir(process.env) }).status(workspace).trusted;
}
