/** Work as a test can assert it. Wall-clock time belongs to whatever else the machine does; these do not. */
import { readFileSync } from "node:fs";

/** Milliseconds of this process's own CPU time that `run` took. */
export function cpuMs(run: () => void): number {
  const spent = cpuSince();
  run();
  return spent();
}

/** The same for what takes several steps: says how much it was until now. */
export function cpuSince(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
}

/** Bytes this process has read so far (Linux). */
export function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}
