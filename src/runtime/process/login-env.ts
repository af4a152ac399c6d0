/**
 * What the user's login files put into the environment. They are run once, because a login shell costs
 * up to eighty times a plain one. They are the user's own files and may be in the middle of something
 * (pyenv holds a lock while it works), so a slow login shell is not killed: we stop waiting, let it
 * end by itself, and use its answer for the next command.
 */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isObject, parseJson } from "../../base/json.ts";

export type Env = Readonly<Record<string, string>>;

export interface LoginEnv {
  /**
   * `base` with what the login files of `shell` set on top, as far as `allow` permits. It never fails:
   * without an answer it returns `base` as it is. Remembered for each `base` object.
   */
  read(shell: string, base: Env, allow?: (login: Env) => Env): Promise<Env>;
}

export interface LoginEnvOptions {
  /** False: the login files are not read. */
  readonly enabled?: boolean;
  /** How long a command waits for them. */
  readonly timeoutMs?: number;
  /** If they take longer than this, they are asked to end (SIGTERM), and only later forced to. */
  readonly patienceMs?: number;
  /** Stores the answer for the next process, unless it holds something that `isSafe` does not want on a disk. */
  readonly kept?: { readonly file: string; readonly isSafe: (login: Env) => boolean };
  readonly onWarning?: (text: string) => void;
}

export function createLoginEnv(options: LoginEnvOptions = {}): LoginEnv {
  const { enabled = true, timeoutMs = 5000, onWarning } = options;
  const known = new Map<string, Promise<Env | undefined>>();
  const late = new Map<string, Env>();
  const finished = new WeakMap<Env, Promise<Env>>();

  function ask(key: string, shell: string, base: Env): Promise<Env | undefined> {
    const stamp = loginStamp(key, base);
    const kept = readKept(options.kept?.file, stamp);
    if (kept !== undefined && kept !== "slow") return Promise.resolve(kept);
    const answer = askShell(shell, base, options.patienceMs ?? 60_000).then((login) => {
      if (login !== undefined) late.set(key, login);
      if (login !== undefined && options.kept?.isSafe(login) === true) writeKept(options.kept.file, { stamp, login });
      return login;
    });
    const slow = new Promise<undefined>((resolve) => {
      const giveUp = () => {
        onWarning?.(
          `your login files take more than ${timeoutMs / 1000} s: going on without them (login_files = false leaves them out)`,
        );
        if (kept !== "slow" && options.kept !== undefined) writeKept(options.kept.file, { stamp, slow: true });
        resolve(undefined);
      };
      // The process before this one waited in vain, so this one does not wait, and uses the answer when it comes.
      const timer = setTimeout(giveUp, kept === "slow" ? 0 : timeoutMs);
      const stop = () => clearTimeout(timer);
      answer.then(stop, stop);
    });
    return Promise.race([answer, slow]);
  }

  return {
    async read(shell, base, allow = (login) => login) {
      if (!enabled || !["bash", "zsh", "sh", "dash", "ksh"].includes(basename(shell))) return base;
      const already = finished.get(base);
      if (already !== undefined) return already;
      const key = JSON.stringify([shell, base["HOME"], base["USER"], base["PATH"]]);
      let found = known.get(key);
      if (found === undefined) known.set(key, (found = ask(key, shell, base)));
      const login = (await found) ?? late.get(key);
      if (login === undefined) return base;
      const whole = { ...base, ...allow(login) };
      const first = finished.get(base) ?? Promise.resolve(whole);
      finished.set(base, first);
      return first;
    },
  };
}

/** Variables that every shell sets for itself, and that mean nothing to another process. */
const ownToShell = new Set(["_", "SHLVL", "PWD", "OLDPWD"]);

function askShell(shell: string, base: Env, patienceMs: number): Promise<Env | undefined> {
  const mark = `callgate-env-${process.pid}`;
  return new Promise((resolve) => {
    const child = spawn(shell, ["-lc", `printf %s ${mark}; env -0`], {
      env: base,
      cwd: base["HOME"] ?? "/",
      stdio: ["ignore", "pipe", "ignore"],
      detached: true,
    });
    const chunks: Buffer[] = [];
    // A shell that traps SIGTERM can clean up. SIGKILL is for one that will not end.
    const asked = setTimeout(() => signalGroup(child.pid, "SIGTERM"), patienceMs).unref();
    const forced = setTimeout(() => signalGroup(child.pid, "SIGKILL"), patienceMs + graceMs).unref();
    // We may end before it does. It then continues alone, and nothing of ours waits for it.
    child.unref();
    if ("unref" in child.stdout && typeof child.stdout.unref === "function") child.stdout.unref();
    function finish(answer: Env | undefined): void {
      clearTimeout(asked);
      clearTimeout(forced);
      child.stdout.destroy();
      resolve(answer);
    }
    child.once("error", () => finish(undefined));
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.once("exit", (code) => {
      // The last bytes in the pipe may come after the exit, and a background job of a profile may hold the pipe open
      // for ever.
      setTimeout(() => finish(code === 0 ? parseEnv(Buffer.concat(chunks).toString("utf8"), mark) : undefined), 5);
    });
  });
}

const graceMs = 10_000;

/** A profile may print a greeting, so only what comes after the mark counts. */
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

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // it ended by itself
  }
}

const loginFiles =
  ".profile .bash_profile .bash_login .bashrc .zshenv .zprofile .zshrc .zlogin .kshrc .pam_environment".split(" ");
const systemFiles = ["/etc/profile", "/etc/profile.d", "/etc/bash.bashrc", "/etc/zsh", "/etc/environment"];
const keptForMs = 60 * 60 * 1000;
const slowForMs = 10 * 60 * 1000;

/** Changes with every login file whose name is known. Changes in files that those read show within the hour. */
function loginStamp(key: string, base: Env): string {
  const files = [...loginFiles.map((name) => join(base["HOME"] ?? "/", name)), ...systemFiles];
  return [key, ...files.map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0)].join("\n");
}

/** The stored answer, or that none came in time; each is used for as long as it is likely to be true. */
function readKept(file: string | undefined, stamp: string): Env | "slow" | undefined {
  try {
    const parsed = file === undefined ? undefined : parseJson(readFileSync(file, "utf8"));
    if (parsed?.ok !== true || !isObject(parsed.value) || parsed.value["stamp"] !== stamp) return undefined;
    const { at, login, slow } = parsed.value;
    if (typeof at !== "number") return undefined;
    if (slow === true) return Date.now() - at > slowForMs ? undefined : "slow";
    if (Date.now() - at > keptForMs || !isObject(login)) return undefined;
    const entries = Object.entries(login);
    return entries.every((entry): entry is [string, string] => typeof entry[1] === "string")
      ? Object.fromEntries(entries)
      : undefined;
  } catch {
    return undefined; // asked for the first time
  }
}

function writeKept(
  file: string,
  said: { readonly stamp: string } & ({ readonly login: Env } | { readonly slow: true }),
): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(`${file}.${process.pid}`, JSON.stringify({ ...said, at: Date.now() }), { mode: 0o600 });
    renameSync(`${file}.${process.pid}`, file);
  } catch {
    // If the state folder cannot be written, the next process runs a login shell again, and nothing worse happens.
  }
}
