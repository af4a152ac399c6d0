/** What a sandbox must know about this machine. It is found out once and passed in, so that a test can set it. */
import { accessSync, constants, readdirSync, readFileSync, statSync } from "node:fs";
import { homedir, platform, release, tmpdir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { stateDir } from "../../base/paths.ts";
import type { Architecture } from "./seccomp/syscalls.ts";

/** What the sandbox must know of this machine. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  /** Undefined if our seccomp program has no system call numbers for this processor. */
  readonly architecture: Architecture | undefined;
  readonly uid: number;
  readonly gid: number;
  /** The engine's own environment, in which programs and the host's sockets are found. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly tempDir: string;
  /** Where probe results and things moved aside are stored. */
  readonly stateDir: string;
  /** Changes when the kernel changes or the machine is restarted. */
  readonly boot: string;
}

export function thisMachine(overrides: Partial<Machine> = {}): Machine {
  const env = overrides.env ?? process.env;
  return {
    platform: platform(),
    architecture: process.arch === "x64" || process.arch === "arm64" ? process.arch : undefined,
    uid: process.getuid?.() ?? -1,
    gid: process.getgid?.() ?? -1,
    env,
    home: homedir(),
    // macOS has a private one per user. On Linux the shared one must be replaced, whatever TMPDIR says.
    tempDir: platform() === "linux" ? "/tmp" : tmpdir(),
    stateDir: stateDir(env),
    boot: `${release()} ${bootId()}`,
    ...overrides,
  };
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/** The first program of that name on the engine's own PATH. Relative entries are ignored. */
export function findProgram(name: string, env: Machine["env"]): string | undefined {
  const folders = (env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

const systemFolders = ["/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin"];

/**
 * A program on which everything depends: the system's own first, then the PATH's, but never one from
 * the current folder or a node_modules, where the author of the project could have put another.
 */
export function findTrustedProgram(name: string, env: Machine["env"], cwd: string = process.cwd()): string | undefined {
  const isForeign = (folder: string) => !folder.startsWith(cwd) && !folder.includes("node_modules");
  const others = (env["PATH"] ?? "").split(delimiter).filter((folder) => isAbsolute(folder) && isForeign(folder));
  return findProgram(name, { PATH: [...systemFolders, ...others].join(delimiter) });
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * Sockets of the host through which a command could ask others to act for it: agents, containers,
 * buses, databases. A read-only mount does not prevent a connect, so each is hidden by its path: those
 * that the environment names, and those on which the kernel says somebody listens, however young. A
 * folder that contains only sockets is hidden as a whole, so that a socket made there a moment later
 * is hidden too.
 */
export function hostSockets({ env }: Pick<Machine, "env">): readonly string[] {
  const address = (name: string) => /(?:^|;)unix:(?:path=|\/\/)([^,;]+)/.exec(env[name] ?? "")?.[1];
  const named = [
    env["SSH_AUTH_SOCK"],
    env["GPG_AGENT_INFO"]?.split(":")[0],
    env["TMUX"]?.split(",")[0],
    env["XDG_RUNTIME_DIR"],
    address("DOCKER_HOST"),
    address("CONTAINER_HOST"),
    address("DBUS_SESSION_BUS_ADDRESS"),
  ];
  const listening = listeningSockets();
  const folders = [...new Set(listening.map((path) => dirname(path)))].filter(holdsOnlySockets);
  return [...new Set([...named, ...folders, ...listening])]
    .filter((path) => path !== undefined)
    .filter((path) => isAbsolute(path));
}

/** A line is `address refs protocol flags type state inode path`. The flag means that it accepts connections. */
const listening = /^\S+ \S+ \S+ 00010000 \S+ \S+ +\d+ (\/.*)$/gm;

function listeningSockets(): readonly string[] {
  try {
    return Array.from(readFileSync("/proc/net/unix", "utf8").matchAll(listening), (line) => line[1] ?? "");
  } catch {
    return []; // no such file on this system
  }
}

/** Owners often keep a lock and a process number beside a socket. */
const socketCompanion = /(?:^|\.)(?:lock|pid)$/;
const mostCompanions = 200;

function holdsOnlySockets(folder: string): boolean {
  try {
    const all = readdirSync(folder, { withFileTypes: true });
    return (
      all.length <= mostCompanions &&
      all.every((one) => one.isSocket() || (one.isFile() && socketCompanion.test(one.name)))
    );
  } catch {
    return false; // gone, or closed to this user and so to all of this user's commands
  }
}
