import { readFileSync, rmSync, writeFileSync } from "node:fs";

/**
 * One writer per file. The lock names its process. If that process is gone, the lock is taken over, so
 * a kill leaves nothing to clean up by hand. Throws, naming the process, while another process holds
 * it.
 */
export function lockFile(path: string, pid: number = process.pid): () => void {
  const lock = `${path}.lock`;
  const mine = nameOf(pid);
  for (let attempt = 0; ; attempt++) {
    try {
      writeFileSync(lock, mine, { flag: "wx", mode: 0o600 });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || attempt > 3) throw error;
    }
    const holder = readHolder(lock);
    if (holder === mine) break;
    const other = Number(holder.split(" ")[0]);
    if (holder !== "" && nameOf(other) === holder) throw new Error(`${path} is in use by process ${other}`);
    rmSync(lock, { force: true });
  }
  return () => {
    if (readHolder(lock) === mine) rmSync(lock, { force: true });
  };
}

function readHolder(lock: string): string {
  try {
    return readFileSync(lock, "utf8");
  } catch {
    return ""; // released in the meantime
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
    return (error as NodeJS.ErrnoException).code === "EPERM"; // it exists, but belongs to another user
  }
}
