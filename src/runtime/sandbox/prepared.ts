/**
 * A command's view of the disk, planned and put into words for bubblewrap. Most commands of a session have the same
 * one, so the last few are kept. A view is used again only if it was asked for with the same words and everything
 * that its plan looked at on the disk is as it was then.
 */
import { dirname, join } from "node:path";
import { CallError } from "../../base/error.ts";
import type { Grant } from "../../spec/access.ts";
import type { Launch } from "../../spec/capability.ts";
import { newRunId } from "../effects/runs.ts";
import type { HeldRun } from "../process/child.ts";
import { createDiskChecks, type DiskChecks } from "./disk-checks.ts";
import type { Machine } from "./machine.ts";
import { commandOwner, planFor, type Owner } from "./owner.ts";
import { contains, planMounts } from "./plan.ts";
import type { Plan, PlanEntry, VisibleFile } from "./plan.ts";
import type { Shared } from "./shared.ts";
import { isSameList } from "./existing.ts";

export interface Prepared {
  readonly plan: Plan;
  readonly owner: Owner | undefined;
  readonly run: HeldRun | undefined;
  readonly asRoot: boolean;
  /** The folder of the host behind the private temp folder, and the one in which held runs are stored. */
  readonly tempFolder: string | undefined;
  readonly runs: string | undefined;
  /** The command line of the sandbox alone, if it is to be built apart from its command. */
  readonly wrapper?: readonly string[];
  /** Which files its words stand for. */
  readonly stamp?: string;
}

/** Everything besides the disk that a view depends on. */
export interface Wanted {
  readonly launch: Launch;
  /** The grant of the launch, as it is to be mounted. */
  readonly grant: Grant;
  readonly apart: boolean;
  /** Files of programs that may not be started. */
  readonly hidden: readonly string[];
  readonly visible: readonly VisibleFile[];
}

type Words = (prepared: Prepared, launch: Launch) => readonly string[];

/** How many views are kept: a session has one, or few if its calls were granted different things. */
const maxKept = 4;

export function createPreparer(machine: Machine, shared: Shared, words: Words): (wanted: Wanted) => Prepared {
  /** Throws if nothing can be held, because the command must never write directly instead. */
  function holdRun({ roots }: Plan, apart: boolean, owner: Owner | undefined): HeldRun {
    const place = apart ? shared.place(roots, owner) : { reason: "the launcher is missing" };
    if ("reason" in place) throw new CallError("no_sandbox", `this cannot be held, because ${place.reason}`);
    const id = newRunId();
    return { id, folder: join(place.folder, id), roots, ...owner };
  }

  function prepare({ launch, grant, apart, hidden, visible }: Wanted, disk: DiskChecks): Prepared {
    const { cwd } = launch;
    const mounts = planMounts(grant, {
      cwd,
      tempDir: machine.tempDir,
      sockets: disk.ask(shared.hostSockets, isSameList),
      hide: (paths) => disk.ask(() => shared.hide(paths), isSameEntries),
      own: shared.own,
      visible,
      programs: hidden,
      repositories: (roots) => disk.ask(() => shared.repositories(roots), isSameList),
      disk,
    });
    const planned = withOwnDevices(mounts);
    const owner = commandOwner(planned, cwd, machine, disk.stat);
    const run = isHeld(grant) ? holdRun(planned, apart, owner) : undefined;
    const runs = run && dirname(run.folder);
    const plan = planFor(owner, runs === undefined ? planned : hidePlace(planned, runs), disk.stat);
    const asRoot = (owner?.uid ?? machine.uid) === 0;
    const tempFolder = plan.entries.some(({ use }) => use === "temp") ? shared.tempFolder(owner) : undefined;
    const prepared = { plan, owner, run, asRoot, tempFolder, runs };
    if (!apart) return prepared;
    const wrapper = words(prepared, launch);
    return { ...prepared, wrapper, stamp: stampOf(wrapper, disk) };
  }

  let kept: readonly { readonly wanted: Wanted; readonly disk: DiskChecks; readonly prepared: Prepared }[] = [];

  return (wanted) => {
    const known = kept.find((one) => isSameWish(one.wanted, wanted));
    if (known?.disk.stillHold() === true) return known.prepared;
    const disk = createDiskChecks();
    const prepared = prepare(wanted, disk);
    const others = kept.filter((one) => one !== known);
    kept = mayBeKept(wanted) ? [{ wanted, disk, prepared }, ...others].slice(0, maxKept) : others;
    return prepared;
  };
}

function isHeld({ writes = "direct" }: Grant): boolean {
  return writes !== "direct";
}

/**
 * Not a held command, which has a run of its own; not one with a proxy, which has a socket of its own; and
 * not one whose sandbox is part of its own command line.
 */
function mayBeKept({ grant, apart, visible }: Wanted): boolean {
  return apart && !isHeld(grant) && visible.length === 0;
}

/** Compares everything that `prepare` and the command line of bubblewrap read. */
function isSameWish(a: Wanted, b: Wanted): boolean {
  return (
    mayBeKept(b) &&
    a.launch.cwd === b.launch.cwd &&
    a.launch.limits?.processes === b.launch.limits?.processes &&
    a.grant.policy === b.grant.policy &&
    isSameNetwork(a.grant.network, b.grant.network) &&
    isSameList(a.grant.write, b.grant.write) &&
    isSameList(a.grant.protect, b.grant.protect) &&
    isSameList(a.grant.mask, b.grant.mask) &&
    isSameList(a.hidden, b.hidden)
  );
}

function isSameNetwork(a: Grant["network"], b: Grant["network"]): boolean {
  return a === b || (typeof a !== "string" && typeof b !== "string" && isSameList(a, b));
}

function isSameEntries(a: readonly PlanEntry[], b: readonly PlanEntry[]): boolean {
  if (a === b) return true;
  return a.length === b.length && a.every((one, at) => isSameEntry(one, b[at]!));
}

function isSameEntry(a: PlanEntry, b: PlanEntry): boolean {
  return a.path === b.path && a.use === b.use && a.kind === b.kind && a.source === b.source;
}

/**
 * Which files a sandbox's words stood for when it was asked for. A sandbox that was built before one
 * of them was replaced still shows or hides the old file, and must not be used.
 */
function stampOf(wrapper: readonly string[], disk: DiskChecks): string {
  let stamp = "";
  const paths = new Set(wrapper); // a mount usually names its place twice
  for (const path of paths) {
    if (!path.startsWith("/") || path.startsWith("/proc/")) continue;
    const stats = disk.lstat(path);
    stamp += stats ? `${stats.ino}:${stats.birthtimeMs},` : "-,";
  }
  return stamp;
}

/** What the sandbox's own /dev has, besides devices. */
const ownDevices = new Set(["/dev", "/dev/shm", "/dev/pts"]);

/**
 * For a sandbox with its own /dev, which shows nothing of the host's except what is mounted there. So
 * nothing else in it has to be hidden, but the folder that the command starts in has to be mounted.
 */
function withOwnDevices(plan: Plan): Plan {
  const isDevice = (path: string) => contains("/dev", path);
  const shown = plan.entries.filter(({ path, use }) => use !== "hide" && isDevice(path)).map(({ path }) => path);
  const isShown = (path: string) => shown.some((place) => contains(place, path));
  const { here } = plan;
  const isMissing = here !== undefined && isDevice(here) && !ownDevices.has(here) && !isShown(here);
  if (isMissing) shown.push(here);
  const rest = plan.entries.filter(({ path, use }) => use !== "hide" || !isDevice(path) || isShown(path));
  if (!isMissing) return { ...plan, entries: rest };
  return { ...plan, entries: [{ path: here, use: plan.everything ? "write" : "read", kind: "directory" }, ...rest] };
}

/** Hides one folder more, wherever it is. */
function hidePlace(plan: Plan, path: string): Plan {
  const covered = plan.entries.findLast((entry) => contains(entry.path, path))?.use;
  if (covered === "temp" || covered === "hide") return plan;
  return { ...plan, entries: [...plan.entries, { path, use: "hide", kind: "directory" }] };
}
