/** What the user's login files put into the environment, asked once: a login shell costs up to eighty times a plain one. */
import { spawn } from "node:child_process";
import { basename } from "node:path";

export type Env = Readonly<Record<string, string>>;

export interface LoginEnv {
  /** `base` with what the login files of `shell` set on top. Never fails: without an answer, `base` as it is. */
  read(shell: string, base: Env): Promise<Env>;
}

export interface LoginEnvOptions {
  readonly timeoutMs?: number;
}

export function createLoginEnv({ timeoutMs = 5000 }: LoginEnvOptions = {}): LoginEnv {
  const known = new Map<string, Promise<ReadonlyMap<string, string> | undefined>>();

  function changes(shell: string, base: Env): Promise<ReadonlyMap<string, string> | undefined> {
    const key = JSON.stringify([shell, base["HOME"], base["USER"], base["PATH"]]);
    let found = known.get(key);
    if (!found) known.set(key, (found = askShell(shell, base, timeoutMs)));
    return found;
  }

  return {
    async read(shell, base) {
      const login = await changes(shell, base);
      return login ? merge(base, login) : base;
    },
  };
}

/** Set by every shell for itself: of no meaning to another process. */
const ownToShell = new Set(["_", "SHLVL", "PWD", "OLDPWD"]);

/** Login files may add and change; whether a command may see it is for the caller to say. */
function merge(base: Env, login: ReadonlyMap<string, string>): Env {
  const merged: Record<string, string> = { ...base };
  for (const [name, value] of login) if (!ownToShell.has(name)) merged[name] = value;
  return merged;
}

function askShell(shell: string, base: Env, timeoutMs: number): Promise<ReadonlyMap<string, string> | undefined> {
  if (!["bash", "zsh", "sh", "dash", "ksh"].includes(basename(shell))) return Promise.resolve(undefined);
  const mark = `callgate-env-${process.pid}`;
  return new Promise((resolve) => {
    const child = spawn(shell, ["-lc", `printf %s ${mark}; env -0`], {
      env: base,
      cwd: base["HOME"] ?? "/",
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => finish(undefined), timeoutMs);
    function finish(answer: ReadonlyMap<string, string> | undefined): void {
      clearTimeout(timer);
      if (answer === undefined && child.pid !== undefined) killGroup(child.pid);
      child.stdout.destroy();
      resolve(answer);
    }
    child.once("error", () => finish(undefined));
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.once("exit", (code) => {
      // The pipe's last bytes may come after the exit; a background job of a profile may hold it open for ever.
      setTimeout(() => finish(code === 0 ? parseEnv(Buffer.concat(chunks).toString("utf8"), mark) : undefined), 5);
    });
  });
}

/** A profile may greet: what counts comes after the mark. */
function parseEnv(text: string, mark: string): ReadonlyMap<string, string> | undefined {
  const at = text.indexOf(mark);
  if (at < 0) return undefined;
  const entries = new Map<string, string>();
  for (const line of text.slice(at + mark.length).split("\0")) {
    const equals = line.indexOf("=");
    if (equals > 0) entries.set(line.slice(0, equals), line.slice(equals + 1));
  }
  return entries.size > 0 ? entries : undefined;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // it ended by itself
  }
}
