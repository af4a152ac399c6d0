/**
 * Our folders in the shared temporary folder. They are removed when this process ends; if it is
 * killed, the next of our processes that creates one removes them.
 */
import { lstatSync, mkdtempSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorCode } from "../../base/error.ts";

/** One listener for all of them, because Node warns about more than ten. */
const made = new Set<string>();
let hasSwept = false;

export function makePrivateFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `callgate-${pidNamespace()}-${process.pid}-`)));
  if (made.size === 0) process.once("exit", removeAll);
  made.add(folder);
  if (!hasSwept) void sweep();
  hasSwept = true;
  return folder;
}

export function removePrivateFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  made.delete(folder);
  if (made.size === 0) process.off("exit", removeAll);
}

function removeAll(): void {
  for (const folder of made) removePrivateFolder(folder);
}

/** A process number is unique only within its namespace, and containers may share a temporary folder. */
function pidNamespace(): string {
  try {
    return /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";
  } catch {
    return "0"; // not Linux
  }
}

async function sweep(): Promise<void> {
  const ours = new RegExp(`^callgate-${pidNamespace()}-(\\d+)-\\w+$`);
  const temp = tmpdir();
  const names = await readdir(temp).catch(() => []);
  for (const name of names) {
    const owner = ours.exec(name)?.[1];
    if (owner === undefined || isRunning(Number(owner))) continue;
    const path = join(temp, name);
    if (!isMine(path)) continue;
    await rm(path, { recursive: true, force: true }).catch(() => {}); // somebody else may be doing the same
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) !== "ESRCH"; // it exists, but belongs to another user
  }
}

function isMine(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isDirectory() === true && stat.uid === process.getuid?.();
}
