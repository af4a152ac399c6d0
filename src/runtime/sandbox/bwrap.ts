/**
 * The bubblewrap backend on Linux: fresh namespaces, a read-only disk with the granted holes, our seccomp
 * program, and a guard for names that no mount can hold.
 */
import { basename, sep } from "node:path";
import { defined } from "../../base/json.ts";
import type { Grant } from "../../spec/access.ts";
import type { Launch } from "../../spec/capability.ts";
import type { Backend, Confined, ConfineHow, FdData } from "./backend.ts";
import { inheritedDescriptors, withoutDescriptors } from "./descriptors.ts";
import { explainEnding, joinDenials } from "./denial.ts";
import { explainPlan } from "./explain.ts";
import type { Machine } from "./machine.ts";
import { commandOwner, homeFor } from "./owner.ts";
import { contains, planMounts, showsDevices, writablePlaces } from "./plan.ts";
import type { Plan, PlanEntry } from "./plan.ts";
import { createPreparer } from "./prepared.ts";
import { probeNamespaces } from "./probe.ts";
import { createStartJudge, refusedStart } from "./programs.ts";
import { relayed } from "./relay.ts";
import { seccompProgram } from "./seccomp/filter.ts";
import type { Architecture } from "./seccomp/syscalls.ts";
import type { Shared } from "./shared.ts";

export interface BwrapVariant {
  readonly architecture: Architecture;
  /** Relays the command's loopback to our proxy. Without it, Node does. */
  readonly launcher?: string;
  /** Absolute path of bubblewrap. */
  readonly program: string;
  /** A fresh /proc, or the outer one read-only where a container forbids the fresh one. */
  readonly proc: "fresh" | "bound";
  /** This bubblewrap knows `--disable-userns` (0.8 and later). */
  readonly disableUserns: boolean;
}

export function createBwrapBackend(variant: BwrapVariant, machine: Machine, shared: Shared): Backend {
  const name = variant.proc === "fresh" ? "bwrap+seccomp" : "bwrap(bound /proc)+seccomp";
  const filters = new Map<string, readonly FdData[]>();
  const judge = createStartJudge(variant.launcher, variant.architecture);

  const filter = (grant: Grant, judgedInside: boolean): readonly FdData[] => {
    const { architecture } = variant;
    const sockets = grant.network === "on" ? "host" : "private";
    const key = `${sockets} ${judgedInside}`;
    const known = filters.get(key);
    if (known !== undefined) return known;
    const made = [{ fd: seccompFd, data: seccompProgram({ architecture, sockets, judgedInside }) }];
    filters.set(key, made);
    return made;
  };

  let inherited: readonly number[] | undefined;
  const sealed = (argv: readonly string[]) => withoutDescriptors(argv, (inherited ??= inheritedDescriptors()));

  const prepare = createPreparer(machine, shared, (prepared, launch) =>
    bwrapArgv(prepared.plan, launch, { ...variant, ...prepared, apart: true }),
  );

  function confine(launch: Launch, { apart = false, proxy }: ConfineHow = {}): Confined {
    const { env } = launch;
    const grant = openRepositories(launch.grant);
    const way = proxy?.socket === undefined ? undefined : relayed(launch.argv, proxy.socket, grant, variant.launcher);
    const denied = judge.programs(grant, env["PATH"]);
    const prepared = prepare({ launch, grant, apart, hidden: denied.hidden, visible: way?.visible ?? [] });
    const { plan, owner, run, wrapper, stamp } = prepared;
    const guard = shared.guard(plan);
    const argv = way?.argv ?? launch.argv;
    return {
      ...launch,
      ...(wrapper !== undefined
        ? { argv, wrapper, ...defined({ stamp }) }
        : {
            argv: bwrapArgv(plan, { ...launch, argv: sealed(argv) }, { ...variant, ...prepared }),
            cwd: sep,
            statusFd,
          }),
      env: {
        ...(apart ? env : withoutLoaderVariables(env)),
        ...(env["TMPDIR"] === undefined || plan.everything ? {} : { TMPDIR: machine.tempDir }),
        ...homeFor(owner, env, machine.tempDir),
        ...way?.env,
        CALLGATE_CONFINED_BY: name,
      },
      ...owner,
      ...defined({ run }),
      fds: filter(grant, apart && denied.starts !== undefined),
      ...(apart ? defined({ starts: denied.starts }) : {}),
      reusable: proxy === undefined && !showsDevices(plan),
      sandbox: name,
      async cleanup(ending) {
        const refusedHost = await proxy?.close();
        const evidence = joinDenials([...guard.undo(), refusedStart(ending), refusedHost]);
        return evidence ?? explainEnding({ ...launch, writable: writablePlaces(plan) }, ending);
      },
    };
  }

  return {
    name,
    proxyBy: "socket",
    whyNotHeld(grant, cwd) {
      if (variant.launcher === undefined) return "the launcher is missing";
      const plan = planMounts(openRepositories(grant), { cwd, tempDir: machine.tempDir, sockets: [] });
      const place = shared.place(plan.roots, commandOwner(plan, cwd, machine));
      return "reason" in place ? place.reason : undefined;
    },
    confine,
    probe: () => probeNamespaces(confine, machine),
    explain: (grant) => explainPlan(grant, machine),
  };
}

/** A held command may commit, because what it does to the repository is shown before it is kept. */
function openRepositories(grant: Grant): Grant {
  if (grant.writes !== "held") return grant;
  return { ...grant, protect: grant.protect.filter((name) => basename(name) !== ".git") };
}

function withoutLoaderVariables(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !loaderVariable.test(name)));
}

/** One sandbox of a variant. */
export interface BwrapOptions extends BwrapVariant {
  /** The folder in which the runs of held commands are stored. Left out: nothing is held. */
  readonly runs?: string | undefined;
  /** The sandbox alone, with a process of the launcher in it instead of the command. */
  readonly apart?: boolean;
  /** The command runs as the global uid 0. */
  readonly asRoot: boolean;
  /** A folder of the host used as the private temp folder; without one it is empty for each command. */
  readonly tempFolder?: string | undefined;
}

/** Where bubblewrap finds the seccomp program. */
const seccompFd = 3;
/** The descriptor on which bubblewrap reports that the command began. */
const statusFd = 4;

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
          procMounts(options),
          ...heldPlaces(plan, options),
          sharedMemory(plan),
          ...mounts,
          ["--remount-ro", "/dev"],
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
function apart(plan: Plan, { grant, limits }: Launch, options: BwrapOptions): readonly (readonly string[])[] {
  const { proc, asRoot } = options;
  const kinds = [
    grant.network === "on" ? "" : "n",
    proc === "fresh" ? "p" : "",
    asRoot ? "r" : "",
    showsDevices(plan) ? "s" : "",
  ];
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

/**
 * Each of the launcher's keepers mounts a /dev/shm of its own, which would cover a workspace there. So
 * that one is mounted here, below the workspace, and the sandbox serves a single command.
 */
function sharedMemory(plan: Plan): readonly string[] {
  return showsDevices(plan) ? ["--perms", "1777", "--size", String(tempBytes), "--tmpfs", "/dev/shm"] : [];
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

/**
 * Pid 1 is bubblewrap's own reaper, which no seccomp filter covers. A command could take it over
 * through its memory file.
 */
const hideReaper = ["--perms", "0555", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"];

function procMounts({ proc, asRoot, apart }: BwrapOptions): readonly string[] {
  if (proc === "bound") return ["--ro-bind", "/proc", "/proc"];
  // The launcher's process looks at the switch for user namespaces, and its keepers mount their own /proc over it.
  if (apart) return ["--proc", "/proc"];
  // The kernel's switches there require the global uid 0, not a capability that could be dropped.
  return ["--proc", "/proc", ...hideReaper, ...(asRoot ? ["--remount-ro", "/proc"] : [])];
}

function mount(entry: PlanEntry, plan: Plan, { tempFolder }: BwrapOptions): readonly string[] {
  const { path, use, kind, source = path } = entry;
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
const loaderVariable = /^(?:LD_|(?:GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH)$)/;

function loaderVariables(env: Readonly<Record<string, string>>): readonly (readonly [string, string])[] {
  return Object.entries(env).filter(([name]) => loaderVariable.test(name));
}
