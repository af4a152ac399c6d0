/** Linux, where bubblewrap works: fresh namespaces, a read-only disk with the granted holes, and our seccomp program. */
import { existsSync } from "node:fs";
import type { Grant } from "../../spec/access.ts";
import type { ConfineRequest } from "./backend.ts";
import type { Plan, PlanEntry } from "./plan.ts";
import { contains } from "./plan.ts";

export interface BwrapOptions {
  /** Absolute path of bubblewrap. */
  readonly program: string;
  /** A fresh /proc, or the outer one read-only where a container forbids the fresh one. */
  readonly proc: "fresh" | "bound";
  /** This bubblewrap knows `--disable-userns` (0.8 and later). */
  readonly disableUserns: boolean;
  /** The command runs as the global uid 0. */
  readonly asRoot: boolean;
  /** A folder of the host used as the private temp folder; without one it is empty for each command. */
  readonly tempFolder?: string;
}

/** Where bubblewrap finds the seccomp program. */
export const seccompFd = 3;

/** For tmpfs mounts without a folder of the host behind them. */
const tempBytes = 1024 ** 3;

/**
 * The whole command line. Order matters: later mounts lie on top of earlier ones. Always drops every
 * capability: without that, root inside could undo each mount below.
 */
export function bwrapArgv(plan: Plan, request: ConfineRequest, options: BwrapOptions): readonly string[] {
  return [
    options.program,
    ...["--seccomp", String(seccompFd)],
    ...[plan.everything ? "--bind" : "--ro-bind", "/", "/"],
    ...["--dev", "/dev"],
    ...procMounts(options),
    ...plan.entries.flatMap((entry) => mount(entry, plan, options)),
    ...plan.entries
      .filter((entry) => entry.use === "hide" && entry.kind === "directory")
      .flatMap(({ path }) => ["--remount-ro", path]),
    ...["--chdir", request.cwd],
    ...namespaces(request.grant, options),
    ...["--die-with-parent", ...(request.tty === true ? [] : ["--new-session"]), "--cap-drop", "ALL"],
    ...loaderVariables(request.env).flatMap(([name, value]) => ["--setenv", name, value]),
    "--",
    ...request.argv,
  ];
}

function namespaces(grant: Grant, { disableUserns }: BwrapOptions): readonly string[] {
  return [
    "--unshare-user",
    ...(disableUserns ? ["--disable-userns"] : []),
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    ...(grant.network === "on" ? [] : ["--unshare-net"]),
  ];
}

/** Kernel switches that check for the global uid 0 instead of a capability, so that dropping capabilities does not help. */
const rootWritable = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"];

function procMounts({ proc, asRoot }: BwrapOptions): readonly string[] {
  if (proc === "bound") return ["--ro-bind", "/proc", "/proc"];
  return [
    ...["--proc", "/proc"],
    // Pid 1 is bubblewrap's own reaper, which no seccomp filter holds: through its memory file a command could borrow it.
    ...["--perms", "0555", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"],
    ...(asRoot ? rootWritable.filter((path) => existsSync(path)).flatMap((path) => ["--ro-bind", path, path]) : []),
  ];
}

function mount(
  { path, use, kind, source = path }: PlanEntry,
  plan: Plan,
  { tempFolder }: BwrapOptions,
): readonly string[] {
  if (use === "write") return ["--bind", path, path];
  if (use === "read") return ["--ro-bind", source, path];
  const holds = plan.entries.some((other) => other.path !== path && contains(path, other.path));
  if (use === "temp") {
    // Mount points below would be made by following names that earlier commands left in the folder.
    if (tempFolder !== undefined && !holds) return ["--bind", tempFolder, path];
    return ["--perms", "1777", "--size", String(tempBytes), "--tmpfs", path];
  }
  if (kind === "file") return ["--ro-bind", "/dev/null", path];
  return ["--perms", holds || path === "/run" ? "0555" : "0000", "--tmpfs", path];
}

/** Variables that would make the loader run somebody's code inside bubblewrap itself, still outside the sandbox. */
export function isLoaderVariable(name: string): boolean {
  return (
    name.startsWith("LD_") ||
    name === "GLIBC_TUNABLES" ||
    name === "GCONV_PATH" ||
    name === "LOCPATH" ||
    name === "NLSPATH"
  );
}

function loaderVariables(env: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(env).filter(([name]) => isLoaderVariable(name));
}
