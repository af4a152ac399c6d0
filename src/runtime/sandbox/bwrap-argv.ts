/**
 * The command line of bubblewrap on Linux: fresh namespaces, a read-only disk with the granted holes,
 * and our seccomp program.
 */
import type { Launch } from "../../spec/capability.ts";
import type { Plan, PlanEntry } from "./plan.ts";
import { contains } from "./plan.ts";

export interface BwrapOptions {
  /** The folder in which the runs of held commands are stored. Left out: nothing is held. */
  readonly runs?: string;
  /** Absolute path of bubblewrap. */
  readonly program: string;
  /** A fresh /proc, or the outer one read-only where a container forbids the fresh one. */
  readonly proc: "fresh" | "bound";
  /** This bubblewrap knows `--disable-userns` (0.8 and later). */
  readonly disableUserns: boolean;
  /** The sandbox alone, with a process of the launcher in it instead of the command. */
  readonly apart?: boolean;
  /** The command runs as the global uid 0. */
  readonly asRoot: boolean;
  /** A folder of the host used as the private temp folder; without one it is empty for each command. */
  readonly tempFolder?: string;
}

/** Where bubblewrap finds the seccomp program. */
export const seccompFd = 3;
/** The descriptor on which bubblewrap reports that the command began. */
export const statusFd = 4;

/** The size of tmpfs mounts that have no folder of the host behind them. */
const tempBytes = 1024 ** 3;

/**
 * The whole command line. Order matters, because later mounts lie on top of earlier ones. A command
 * never holds a capability: with one, root inside could undo each mount below.
 */
export function bwrapArgv(plan: Plan, launch: Launch, options: BwrapOptions): readonly string[] {
  const hidden = plan.entries.filter((entry) => entry.use === "hide" && entry.kind === "directory");
  const mounts = [
    ...plan.entries.map((entry) => mount(entry, plan, options)),
    ...hidden.map(({ path }) => ["--remount-ro", path]),
  ];
  const whole = [options.program, plan.everything ? "--bind" : "--ro-bind", "/", "/", "--dev", "/dev"];
  return (
    options.apart === true
      ? [
          whole,
          apartProcMounts(options),
          ...heldPlaces(plan, options),
          ["--remount-ro", "/dev"],
          ...mounts,
          ...apart(plan, launch, options),
        ]
      : [whole, procMounts(options), ...mounts, ...command(launch, options)]
  ).flat();
}

function command(launch: Launch, { disableUserns }: BwrapOptions): readonly (readonly string[])[] {
  return [
    ["--seccomp", String(seccompFd), "--json-status-fd", String(statusFd), "--chdir", launch.cwd, ...namespaces],
    disableUserns ? ["--disable-userns"] : [],
    launch.grant.network === "on" ? [] : ["--unshare-net"],
    launch.tty ? [] : ["--new-session"],
    ["--cap-drop", "ALL"],
    ...loaderVariables(launch.env).map(([name, value]) => ["--setenv", name, value]),
    ["--", ...launch.argv],
  ];
}

/**
 * The launcher's keepers get namespaces of their own (native/sandbox.c) and the filter. Until then
 * this process needs its capabilities.
 */
function apart(
  plan: Plan,
  { grant, limits }: Pick<Launch, "grant" | "limits">,
  options: BwrapOptions,
): readonly (readonly string[])[] {
  const { proc, asRoot } = options;
  const kinds = [grant.network === "on" ? "" : "n", proc === "fresh" ? "p" : "", asRoot ? "r" : ""];
  const fresh = [...kinds, processNumbers(limits?.processes)].join("");
  return [
    namespaces,
    ["--new-session", "--cap-add", "ALL", "--chdir", "/"],
    ["--", launcherProgram, "sandbox", fresh, ...overlays(plan, options)],
  ];
}

/** The kernel does not reuse its lowest 300 numbers, so they are added. Its largest number is 2^22. */
function processNumbers(processes = 0): string {
  return processes === 0 ? "" : String(Math.min(processes + 301, 2 ** 22));
}

/** Visible only to the launcher's process, which covers it before a command begins (native/overlay.c). */
const hiddenPlace = "/dev/.callgate";

/**
 * The runs' folder, and each writable root once more without anything mounted in it, because the
 * kernel can overlay nothing else.
 */
function heldPlaces({ roots }: Plan, { runs }: BwrapOptions): readonly (readonly string[])[] {
  if (runs === undefined) return [];
  return [
    ["--bind", runs, `${hiddenPlace}/runs`],
    ...roots.map((root, at) => ["--bind", root, `${hiddenPlace}/${at}`]),
  ];
}

/** An overlay on each root, and on top of it what the plan mounts there, which the overlay would otherwise cover. */
function overlays({ entries, roots }: Plan, { runs }: BwrapOptions): readonly string[] {
  if (runs === undefined) return [];
  const inside = entries.filter(({ path }) => roots.some((root) => path !== root && contains(root, path)));
  return [
    ...roots.flatMap((root) => ["o", root]),
    ...inside.flatMap(({ path, use }) => [use === "read" ? "r" : use === "write" ? "w" : "h", path]),
  ];
}

/** The launcher, open at this descriptor, because its file may not be visible in the sandbox. */
const launcherProgram = "/proc/self/fd/9";

const namespaces =
  "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --die-with-parent".split(" ");

/** The launcher's process looks at the switch for user namespaces, and its keepers mount their own /proc over it. */
function apartProcMounts({ proc }: BwrapOptions): readonly string[] {
  return proc === "bound" ? ["--ro-bind", "/proc", "/proc"] : ["--proc", "/proc"];
}

/**
 * Pid 1 is bubblewrap's own reaper, which no seccomp filter covers. A command could take it over
 * through its memory file.
 */
const hideReaper = ["--perms", "0555", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"];

function procMounts({ proc, asRoot }: BwrapOptions): readonly string[] {
  if (proc === "bound") return ["--ro-bind", "/proc", "/proc"];
  // The kernel's switches there require the global uid 0, not a capability that could be dropped.
  return ["--proc", "/proc", ...hideReaper, ...(asRoot ? ["--remount-ro", "/proc"] : [])];
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
    // Mount points below would be created by following names that earlier commands left in the folder.
    if (tempFolder !== undefined && !holds) return ["--bind", tempFolder, path];
    return ["--perms", "1777", "--size", String(tempBytes), "--tmpfs", path];
  }
  if (kind === "file") return ["--ro-bind", "/dev/null", path];
  return ["--perms", holds || path === "/run" ? "0555" : "0000", "--tmpfs", path];
}

/**
 * Variables that would make the loader run foreign code inside bubblewrap itself, which is still
 * outside the sandbox.
 */
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
