import { closeSync, linkSync, lstatSync, openSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { errorCode } from "../base/error.ts";

/** The locks of this process, because a lock names its process and not who in it holds it. */
const held = new Set<string>();

/**
 * One writer per file. The lock names its process. If that process is gone, the lock is taken over, so
 * a kill leaves nothing to clean up by hand. Throws, naming the process, while the lock is held, by
 * another process or by this one.
 */
export function lockFile(path: string, pid: number = process.pid): () => void {
  const lock = resolve(`${path}.lock`);
  const mine = nameOf(pid);
  for (let attempt = 0; !create(lock, mine); attempt++) {
    if (attempt >= maxAttempts) throw new Error(`${path} is in use: its lock changes hands all the time`);
    const holder = readHolder(lock);
    if (holder === undefined) continue; // released in the meantime
    // Where a name is only a number, the lock may be left from a process that had ours.
    if (holder === mine && !held.has(lock)) break;
    const other = Number(holder.split(" ")[0]);
    if (holder !== "" && nameOf(other) === holder) throw new Error(`${path} is in use by process ${other}`);
    removeStale(lock, () => readHolder(lock) === holder);
  }
  held.add(lock);
  return () => {
    if (held.delete(lock) && readHolder(lock) === mine) removeFile(lock);
  };
}

const maxAttempts = 500;

/** False if the lock exists. It is created together with its content, because an empty lock would name nobody. */
function create(lock: string, name: string): boolean {
  // This name need not be hard to guess, because the folder belongs to one user, and the library for random names
  // loads slowly.
  const own = `${lock}.${process.pid}-${Math.random().toString(36).slice(2)}`;
  try {
    writeFileSync(own, name, { mode: 0o600 });
    linkSync(own, lock);
    return true;
  } catch (error) {
    const code = errorCode(error) ?? "";
    if (code === "EEXIST") return false;
    if (!linkless.has(code)) throw error;
    return createUnlinked(lock, name);
  } finally {
    removeFile(own);
  }
}

/** It may be gone already. Not `rmSync`, which loads what it needs to remove folders. */
function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
}

/** What file systems say that have no hard links. */
const linkless: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

function createUnlinked(lock: string, name: string): boolean {
  try {
    writeFileSync(lock, name, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  }
}

/**
 * One process at a time takes a stale lock away, and judges it once more before that. Otherwise a second
 * could take away the lock that the first has put in its place.
 */
function removeStale(lock: string, isStale: () => boolean): void {
  let unlock: () => void;
  try {
    unlock = lockFile(lock);
  } catch {
    return pause(1); // another process is at it
  }
  try {
    if (isStale()) removeFile(lock);
  } finally {
    unlock();
  }
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function readHolder(lock: string): string | undefined {
  try {
    return readFileSync(lock, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** A unique name for a process. Numbers are reused, so its start time is part of the name if the system provides it. */
function nameOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
  } catch {
    return isAlive(pid) ? `${pid}` : "";
  }
}

function isAlive(pid: number): boolean {
  if (!(pid > 0)) return false; // zero and below mean groups of processes
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === "EPERM"; // it exists, but belongs to another user
  }
}

const lockWaitMs = 2_000;
/** Writing a line takes well under a millisecond, so a lock this old belongs to nobody. */
const staleMs = 1_000;

/**
 * For a log that several processes write, a line at a time. A lock left by a killed process is taken over. The lock is a
 * second name of the log itself, because a new file would take fifteen times as long. Whoever gives the log that name
 * sets its time of change, so the lock's age can be seen.
 */
export function withLock(log: string, run: () => void): void {
  const lock = `${log}.lock`;
  const began = process.uptime(); // not `performance`, whose first use loads four modules
  while (!takeLock(log, lock)) {
    if ((process.uptime() - began) * 1000 > lockWaitMs) throw new Error(`the log is locked (${lock})`);
    if (isOld(lock)) removeStale(lock, () => isOld(lock));
    else pause(2);
  }
  try {
    run();
  } finally {
    unlock(lock);
  }
}

/** Of the lock itself: if the log is a link, so is the lock, and what it leads to is as old as the last entry. */
function isOld(lock: string): boolean {
  const since = lstatSync(lock, { throwIfNoEntry: false })?.ctimeMs ?? Date.now();
  // A clock that was set back makes a lock look as if it came from the future, for as long as it was set back.
  return Math.abs(Date.now() - since) > staleMs;
}

/** False if somebody has it. */
function takeLock(log: string, lock: string): boolean {
  try {
    linkSync(log, lock);
    return true;
  } catch (error) {
    const code = errorCode(error) ?? "";
    if (code === "EEXIST") return false;
    // The first entry of a log, or a file system without hard links.
    const create = code === "ENOENT" ? log : linkless.has(code) ? lock : undefined;
    if (create !== undefined && createFile(create)) return create === lock;
    if (create !== undefined) return false; // somebody else was quicker
    throw asWriteError(error);
  }
}

/** False if it exists. */
function createFile(path: string): boolean {
  try {
    closeSync(openSync(path, "wx", 0o600)); // an empty file, because a folder would take up a block on disk
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw asWriteError(error);
  }
}

function asWriteError(error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  return new Error(`the log cannot be written (${reason})`, { cause: error });
}

function unlock(lock: string): void {
  try {
    unlinkSync(lock);
  } catch {
    // Somebody thought it stale and took it over, so it is theirs now.
  }
}
