/** The bubblewrap backend: a plan of the disk, our seccomp program, and a guard for names that no mount can hold. */
import { readFileSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { CallError } from "../../base/error.ts";
import { defined } from "../../base/json.ts";
import type { Grant } from "../../spec/access.ts";
import type { Launch } from "../../spec/capability.ts";
import { newRunId } from "../effects/runs.ts";
import type { HeldRun } from "../process/child.ts";
import type { Backend, Confined, ConfineHow, FdData, ProbeResult } from "./backend.ts";
import { bwrapArgv, isLoaderVariable, seccompFd, statusFd } from "./bwrap-argv.ts";
import { inheritedDescriptors, withoutDescriptors } from "./descriptors.ts";
import { explainEnding, joinDenials } from "./denial.ts";
import { explainPlan } from "./explain.ts";
import type { Machine } from "./machine.ts";
import { commandOwner, homeFor, planFor } from "./owner.ts";
import type { Owner } from "./owner.ts";
import { contains, planMounts } from "./plan.ts";
import type { Plan } from "./plan.ts";
import { firstWords, tryCommand } from "./probe.ts";
import { createStartJudge, refusedStart } from "./programs.ts";
import { relayed } from "./relay.ts";
import { seccompProgram } from "./seccomp/filter.ts";
import type { Architecture } from "./seccomp/syscalls.ts";
import type { Session } from "./session.ts";

export interface BwrapVariant {
  readonly architecture: Architecture;
  /** Relays the command's loopback to our proxy. Without it, Node does. */
  readonly launcher?: string;
  readonly program: string;
  readonly proc: "fresh" | "bound";
  readonly disableUserns: boolean;
}

export function createBwrapBackend(variant: BwrapVariant, machine: Machine, session: Session): Backend {
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

  /** Throws if nothing can be held, because the command must never write directly instead. */
  function holdRun({ roots }: Plan, apart: boolean, owner: Owner | undefined): HeldRun {
    const place = apart ? session.place(roots, owner) : { reason: "the launcher is missing" };
    if ("reason" in place) throw new CallError("no_sandbox", `this cannot be held, because ${place.reason}`);
    const id = newRunId();
    return { id, folder: join(place.folder, id), roots, ...owner };
  }

  function confine(launch: Launch, { apart = false, proxy }: ConfineHow = {}): Confined {
    const { cwd, env } = launch;
    const grant = launch.grant.writes === "held" ? openRepositories(launch.grant) : launch.grant;
    const way = proxy?.socket === undefined ? undefined : relayed(launch.argv, proxy.socket, grant, variant.launcher);
    const { hide, own } = session;
    const sockets = session.hostSockets();
    const denied = judge.programs(grant, env["PATH"]);
    const planned = planMounts(grant, {
      cwd,
      tempDir: machine.tempDir,
      sockets,
      hide,
      own,
      visible: way?.visible ?? [],
      programs: denied.hidden,
      repositories: session.repositories,
    });
    const owner = commandOwner(planned, cwd, machine);
    const run = isHeld(grant) ? holdRun(planned, apart, owner) : undefined;
    const plan = planFor(owner, run === undefined ? planned : hideRuns(planned, run));
    const asRoot = (owner?.uid ?? machine.uid) === 0;
    const guard = session.guard(plan);
    const tempFolder = plan.entries.some(({ use }) => use === "temp") ? session.tempFolder(owner) : undefined;
    const options = { ...variant, apart, asRoot, ...defined({ tempFolder, runs: run && dirname(run.folder) }) };
    const argv = way?.argv ?? launch.argv;
    return {
      ...launch,
      ...(apart
        ? { argv, wrapper: bwrapArgv(plan, launch, options) }
        : { argv: bwrapArgv(plan, { ...launch, argv: sealed(argv) }, options), cwd: sep, statusFd }),
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
      reusable: proxy === undefined,
      sandbox: name,
      async cleanup(ending) {
        const refusedHost = await proxy?.close();
        const evidence = joinDenials([...guard.settle(), refusedStart(ending), refusedHost]);
        return evidence ?? explainEnding({ ...launch, writable: writablePlaces(plan) }, ending);
      },
    };
  }

  return {
    name,
    proxyBy: "socket",
    whyNotHeld(grant, cwd) {
      if (variant.launcher === undefined) return "the launcher is missing";
      const plan = planMounts(grant.writes === "held" ? openRepositories(grant) : grant, {
        cwd,
        tempDir: machine.tempDir,
        sockets: [],
      });
      const place = session.place(plan.roots, commandOwner(plan, cwd, machine));
      return "reason" in place ? place.reason : undefined;
    },
    confine,
    probe: () => probe(confine, machine),
    explain: (grant) => explainPlan(grant, machine),
  };
}

function isHeld({ writes = "direct" }: Grant): boolean {
  return writes !== "direct";
}

/** A held command may commit, because what it does to the repository is shown before it is kept. */
function openRepositories(grant: Grant): Grant {
  return { ...grant, protect: grant.protect.filter((name) => basename(name) !== ".git") };
}

/** No command may look at the runs' folder, wherever it is. */
function hideRuns(plan: Plan, { folder }: HeldRun): Plan {
  const path = dirname(folder);
  const covered = plan.entries.findLast((entry) => contains(entry.path, path))?.use;
  if (covered === "temp" || covered === "hide") return plan;
  return { ...plan, entries: [...plan.entries, { path, use: "hide", kind: "directory" }] };
}

function writablePlaces(plan: Plan): readonly string[] {
  return plan.everything
    ? [sep]
    : plan.entries.filter(({ use }) => use === "write" || use === "temp").map(({ path }) => path);
}

function withoutLoaderVariables(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isLoaderVariable(name)));
}

async function probe(confine: Backend["confine"], machine: Machine): Promise<ProbeResult> {
  const finished = await tryCommand(confine, machine);
  if (finished.exitCode === 0)
    return { ok: true, detail: "ran a command in fresh namespaces under our seccomp filter" };
  const fix = namespaceFix();
  const detail = `could not run a command: ${firstWords(finished)}`;
  return { ok: false, detail, ...defined({ fix }) };
}

/**
 * Two switches that keep ordinary users from making namespaces, and how to change them. This is only a
 * hint; the probe has decided.
 */
function namespaceFix(): string | undefined {
  if (kernelSetting("user/max_user_namespaces") === "0") return "sudo sysctl -w user.max_user_namespaces=15000";
  if (kernelSetting("kernel/unprivileged_userns_clone") === "0")
    return "sudo sysctl -w kernel.unprivileged_userns_clone=1";
  return kernelSetting("kernel/apparmor_restrict_unprivileged_userns") === "1"
    ? "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (or an AppArmor profile for bwrap that allows userns)"
    : undefined;
}

function kernelSetting(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, "utf8").trim();
  } catch {
    return undefined; // this kernel has no such switch
  }
}
