/** What the user's login files put into the environment, asked once: a login shell costs up to eighty times a plain one. */
import { spawn } from "node:child_process";
import { basename } from "node:path";

export type Env = Readonly<Record<string, string>>;

export interface LoginEnv {
  /**
   * `base` with what the login files of `shell` set on top, as far as `allow` lets it through. Never
   * fails: without an answer, `base` as it is. Remembered for each `base` object.
   */
  read(shell: string, base: Env, allow?: (login: Env) => Env): Promise<Env>;
}

export interface LoginEnvOptions {
  readonly timeoutMs?: number;
}

export function createLoginEnv({ timeoutMs = 5000 }: LoginEnvOptions = {}): LoginEnv {
  const known = new Map<string, Promise<Env | undefined>>();
  const finished = new WeakMap<Env, Promise<Env>>();

  function changes(shell: string, base: Env): Promise<Env | undefined> {
    const key = JSON.stringify([shell, base["HOME"], base["USER"], base["PATH"]]);
    let found = known.get(key);
    if (!found) known.set(key, (found = askShell(shell, base, timeoutMs)));
    return found;
  }

  return {
    read(shell, base, allow = (login) => login) {
      let found = finished.get(base);
      if (!found) {
        found = changes(shell, base).then((login) => (login ? { ...base, ...allow(login) } : base));
        finished.set(base, found);
      }
      return found;
    },
  };
}

/** Set by every shell for itself: of no meaning to another process. */
const ownToShell = new Set(["_", "SHLVL", "PWD", "OLDPWD"]);

function askShell(shell: string, base: Env, timeoutMs: number): Promise<Env | undefined> {
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
    function finish(answer: Env | undefined): void {
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
function parseEnv(text: string, mark: string): Env | undefined {
  const at = text.indexOf(mark);
  if (at < 0) return undefined;
  const lines = text
    .slice(at + mark.length)
    .split("\0")
    .filter((line) => line.indexOf("=") > 0);
  const entries = lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const);
  return Object.fromEntries(entries.filter(([name]) => !ownToShell.has(name)));
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // it ended by itself
  }
}
