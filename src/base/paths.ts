/**
 * Paths as text. Where our own files are: `CALLGATE_HOME` holds everything if it is set; otherwise the
 * XDG folders do.
 */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Sessions, caches, trust, audit. A variable that is set to an empty text counts as not set. */
export function stateDir(env: Environment): string {
  return env["CALLGATE_HOME"] || `${env["XDG_STATE_HOME"] || `${homeDir(env)}/.local/state`}/callgate`;
}

/** The folder of `callgate.toml` and of the user's rules. */
export function configDir(env: Environment): string {
  return env["CALLGATE_HOME"] || `${env["XDG_CONFIG_HOME"] || `${homeDir(env)}/.config`}/callgate`;
}

/** What no command and no tool may change, wherever the workspace is: settings, rules, trust, logins, journals. */
export function ownFolders(env: Environment): readonly string[] {
  return [...new Set([stateDir(env), configDir(env)])];
}

/**
 * Whether a path is absolute and has nothing in it that would have to be resolved. Much cheaper than resolving it. A
 * few that are plain do not count as such, `/.git` among them.
 */
export function isPlainPath(path: string): boolean {
  return path.startsWith("/") && !path.includes("//") && !path.includes("/.") && !path.endsWith("/");
}

function homeDir(env: Environment): string {
  return env["HOME"] || env["USERPROFILE"] || "/";
}
