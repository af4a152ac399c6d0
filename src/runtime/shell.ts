/** Which shell runs a line, and whose login files make its environment. */
import { accessSync, constants } from "node:fs";

/** The shell that runs a line: bash, because the gate reads lines as bash does; otherwise sh, which knows less. */
export function lineShell(): string {
  return ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"].find(isThere) ?? "/bin/sh";
}

/** The shell whose login files make the environment: the user's own, if it accepts `-lc`. */
export function userShell(env: Readonly<Record<string, string>>): string {
  const wanted = env["SHELL"];
  return wanted && /\/(?:ba|z|da|k)?sh$/.test(wanted) && isThere(wanted) ? wanted : lineShell();
}

function isThere(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // a SHELL that is not installed here
  }
}
