/**
 * The repository that a session's folder begins with. Its size is watched while it is fetched, and the size
 * of its files is measured before any of them is checked out.
 */
import { spawn } from "node:child_process";
import { lstat, readdir } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { baseLimits, createCount, toFiles, toSize, type BaseLimits } from "./base-limits.ts";

const maxMs = 10 * 60_000;

/** Options of `cloneRepository`. */
export interface CloneOptions {
  readonly url: URL;
  /** The address of its host. Only this address is used, even if the name leads elsewhere a moment later. */
  readonly address: string;
  readonly ref: string | undefined;
  /** An empty folder. */
  readonly folder: string;
  readonly limits?: BaseLimits;
}

/** Nothing of the repository runs, nobody is asked for a password, and no redirection leads elsewhere. */
export async function cloneRepository(options: CloneOptions): Promise<void> {
  const { url, address, ref, folder, limits = baseLimits } = options;
  const host = url.hostname.replaceAll(/^\[|\]$/g, "");
  const settings = [
    "protocol.allow=never",
    "protocol.https.allow=always",
    "core.hooksPath=/dev/null",
    "http.followRedirects=false",
    ...(isIP(host) === 0 ? [`http.curloptResolve=${url.hostname}:${url.port || "443"}:${address}`] : []),
  ].flatMap((setting) => ["-c", setting]);
  const git = (args: readonly string[], read?: (chunk: string) => void, bytes = limits.bytes) =>
    watched([...settings, ...args], read ?? (() => undefined), () => checkFolder(folder, { ...limits, bytes }));

  await git(["clone", "--quiet", "--no-checkout", "--", url.href, folder]);
  const commit = await findCommit(ref ?? "HEAD", (args, read) => git(["-C", folder, ...args], read));
  const count = createCount("the repository", limits);
  const entries = createEntries(count);
  await git(["-C", folder, "ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit], entries);
  // The fetched history and the checked-out files lie beside each other, and each may have the whole size.
  await git(["-C", folder, "checkout", "--quiet", "--detach", commit, "--"], undefined, 2 * limits.bytes);
}

type Git = (args: readonly string[], read: (chunk: string) => void) => Promise<void>;

/** A tag, a commit or a branch. Only the first branch has a name here; the others are those of the origin. */
async function findCommit(ref: string, git: Git): Promise<string> {
  for (const name of [ref, `refs/remotes/origin/${ref}`]) {
    let said = "";
    const args = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
    const isFound = await git(args, (chunk) => (said += chunk)).then(
      () => true,
      () => false,
    );
    if (isFound) return said.trim();
  }
  throw new Error(`git: the repository has no ref '${ref}'`);
}

/** Reads `<mode> <type> <object> <size>\t<path>`, each ended by a zero. */
function createEntries(count: ReturnType<typeof createCount>): (chunk: string) => void {
  let rest = "";
  return (chunk) => {
    const entries = (rest + chunk).split("\0");
    rest = entries.pop() ?? "";
    for (const entry of [...entries, ...(rest.length > 65_536 ? [rest] : [])]) {
      const tab = entry.indexOf("\t");
      // A folder and another repository's commit have "-" for a size.
      count(Number(entry.slice(0, tab).trim().split(/\s+/)[3]) || 0, entry.slice(tab + 1));
    }
  };
}

const watchMs = 200;

/** Runs git, and ends it with everything that it started if `check` throws, which is asked while it runs and after. */
async function watched(
  args: readonly string[],
  read: (chunk: string) => void,
  check: () => Promise<void>,
): Promise<void> {
  const env = { ...process.env, GIT_TERMINAL_PROMPT: "0", GIT_CONFIG_NOSYSTEM: "1", GIT_LFS_SKIP_SMUDGE: "1" };
  // A group of its own, because git leaves the work to helpers that outlive it.
  const git = spawn("git", args, { env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const end = () => {
    try {
      if (git.pid !== undefined) process.kill(-git.pid, "SIGKILL");
    } catch {
      // All of them have ended.
    }
  };
  let isOver = false;
  let failure: unknown;
  const fail = (error: unknown) => {
    failure ??= error;
    if (!isOver) end(); // its number may belong to others by then
  };
  let words = "";
  git.stderr.setEncoding("utf8").on("data", (chunk: string) => (words = (words + chunk).slice(-2000)));
  git.stdout.setEncoding("latin1").on("data", (chunk: string) => {
    try {
      if (failure === undefined) read(chunk);
    } catch (error) {
      fail(error);
    }
  });
  const timeout = setTimeout(() => fail(new Error("git: the repository took more than ten minutes")), maxMs);
  let timer: NodeJS.Timeout | undefined;
  const watch = () => {
    const startedAt = performance.now();
    const again = () => {
      if (isOver) return;
      // A large folder takes a while to measure. Most of the time belongs to git.
      timer = setTimeout(watch, Math.max(watchMs, 4 * (performance.now() - startedAt)));
    };
    void check().then(again, fail);
  };
  timer = setTimeout(watch, watchMs);
  process.once("exit", end);
  try {
    const code = await new Promise<number | null>((resolve, reject) =>
      git.once("error", reject).once("close", resolve),
    );
    if (failure !== undefined) throw failure;
    // The command line is ours and says nothing; git's own last words do.
    if (code !== 0) throw new Error(`git: ${words.trim().split("\n").at(-1) || "the repository could not be had"}`);
    await check();
  } finally {
    isOver = true; // a measurement may still be under way
    clearTimeout(timer);
    clearTimeout(timeout);
    process.off("exit", end);
  }
}

/** What lies in the folder by now: the history and, in the end, the files. */
async function checkFolder(folder: string, limits: BaseLimits): Promise<void> {
  let bytes = 0;
  let entries = 0;
  const walk = async (path: string): Promise<void> => {
    for (const entry of await readdir(path, { withFileTypes: true }).catch(() => [])) {
      entries++;
      if (entry.isDirectory()) await walk(join(path, entry.name));
      else bytes += (await lstat(join(path, entry.name)).catch(() => undefined))?.size ?? 0;
      if (bytes > limits.bytes) throw new Error(`the repository is larger than ${toSize(limits.bytes)}`);
      // The files themselves, and as many of git's own.
      if (entries > 2 * limits.entries) throw new Error(`the repository has more than ${toFiles(2 * limits.entries)}`);
    }
  };
  await walk(folder);
}
