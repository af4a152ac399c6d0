/**
 * Descriptors that our own process inherited and would pass on: a shell's open files, a parent's
 * sockets. Node marks its own to be closed on exec; inherited ones are not.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";

const closesOnExec = 0o2000000;

export function inheritedDescriptors(): readonly number[] {
  try {
    return readdirSync("/proc/self/fdinfo")
      .map(Number)
      .filter((fd) => fd > 2 && isHandedOn(fd));
  } catch {
    return []; // no such folder on this system
  }
}

function isHandedOn(fd: number): boolean {
  try {
    const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closesOnExec) === 0;
  } catch {
    return false; // closed in the meantime: the one with which the folder was listed
  }
}

const bash = "/bin/bash";

/**
 * The same command, with those descriptors closed before it starts. Only bash can name descriptors of
 * more than one digit.
 */
export function withoutDescriptors(argv: readonly string[], fds: readonly number[]): readonly string[] {
  if (fds.length === 0 || !existsSync(bash)) return argv;
  const closing = fds.map((fd) => `${fd}>&-`).join(" ");
  return [bash, "--norc", "-c", `exec ${closing}; exec "$@"`, "bash", ...argv];
}
