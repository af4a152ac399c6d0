/**
 * Landlock and seccomp, applied by the launcher. It works in containers where no namespace can be
 * made. What neither can judge, because it is named by a path in memory, the launcher does itself or
 * refuses (native/supervisor.c). It is weaker than bubblewrap, and `explain` says how: protected names
 * are restored afterwards instead of being held, other processes can be seen, and there is no separate
 * loopback.
 */
import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { defined } from "../../base/json.ts";
import type { Grant } from "../../spec/access.ts";
import { CallError } from "../../base/error.ts";
import type { Launch } from "../../spec/capability.ts";
import type { Backend, Confined, ConfineHow, ProbeResult } from "./backend.ts";
import { explainEnding, joinDenials } from "./denial.ts";
import { explainFiles, explainSharedNetwork } from "./explain.ts";
import { landlockRules } from "./landlock-rules.ts";
import type { Machine } from "./machine.ts";
import { commandOwner, homeFor } from "./owner.ts";
import { contains, planMounts, type PlanEntry } from "./plan.ts";
import { createStartJudge, refusedStart } from "./programs.ts";
import { firstWords, tryCommand } from "./probe.ts";
import { proxyEnv } from "./relay.ts";
import { resolved } from "./existing.ts";
import { seccompProgram } from "./seccomp/filter.ts";
import type { SocketRule, StartQuestions } from "./seccomp/filter.ts";
import type { Architecture } from "./seccomp/syscalls.ts";
import type { Shared } from "./shared.ts";

const name = "landlock+seccomp";

export interface LandlockSettings {
  readonly launcher: string;
  readonly architecture: Architecture;
}

export function createLandlockBackend(
  { launcher, architecture }: LandlockSettings,
  machine: Machine,
  shared: Shared,
): Backend {
  let known: number | undefined;
  const abi = () => (known ??= landlockAbi(launcher));
  const filters = new Map<string, Uint8Array>();
  const judge = createStartJudge(launcher, architecture);

  function filter(sockets: SocketRule, starts: StartQuestions | undefined): Uint8Array {
    const key = `${sockets} ${starts}`;
    // Before ABI 3 Landlock does not control truncating a file.
    const made =
      filters.get(key) ??
      seccompProgram({
        architecture,
        sockets,
        refuseTruncate: abi() < 3,
        hostView: true,
        ...defined({ starts }),
      });
    filters.set(key, made);
    return made;
  }

  function confine(launch: Launch, { proxy }: ConfineHow = {}): Confined {
    const { grant, cwd, env, argv } = launch;
    if (proxy !== undefined && abi() < 4)
      throw new CallError(
        "no_sandbox",
        "this kernel's Landlock cannot limit connections to the proxy, so hosts cannot be allowed one by one",
      );
    const hide = (paths: readonly string[]) => shared.hide(paths).filter((entry) => machine.uid === 0 || isOpen(entry));
    const denied = judge.programs(grant, env["PATH"]);
    const plan = planMounts(grant, {
      cwd,
      tempDir: undefined,
      sockets: [],
      hide,
      own: { ...shared.own, folders: shared.own.folders.filter((path) => !isInside(path, grant.write)) },
      programs: denied.hidden,
      repositories: shared.repositories,
    });
    const owner = commandOwner(plan, cwd, machine);
    const tempFolder = plan.everything ? undefined : shared.tempFolder(owner);
    const guard = shared.guard({
      ...plan,
      unheld: plan.entries.filter(({ use }) => use === "read").map(({ path }) => path),
    });
    const port = proxy?.port;
    const rules = landlockRules({
      abi: abi(),
      plan,
      grant,
      cwd: resolved(cwd) ?? cwd,
      tempFolder,
      ...defined({ proxyPort: port }),
    });
    return {
      ...launch,
      env: {
        ...env,
        ...homeFor(owner, env, machine.tempDir),
        ...defined({ TMPDIR: tempFolder }),
        ...(port === undefined ? {} : proxyEnv(`http://callgate:${proxy?.token ?? ""}@127.0.0.1:${port}`)),
        CALLGATE_CONFINED_BY: name,
      },
      ...owner,
      landlock: {
        ...rules,
        seccomp: filter(grant.network === "on" ? "inet" : port === undefined ? "unix" : "tcp", denied.questions),
      },
      ...(denied.starts === undefined ? {} : { starts: { rules: denied.starts.rules, files: denied.starts.files } }),
      sandbox: name,
      async cleanup(ending) {
        const refusedHost = await proxy?.close();
        const writable = [...plan.roots, ...(tempFolder === undefined ? [] : [tempFolder])];
        const evidence = joinDenials([...guard.undo(), refusedStart(ending), refusedHost]);
        return evidence ?? explainEnding({ grant, cwd, argv, writable }, ending);
      },
    };
  }

  return { name, proxyBy: "port", confine, probe: () => probe(abi, confine, machine), explain: explainLandlock };
}

/** To hide something in a writable folder, that folder would have to be closed for everything new. */
function isInside(path: string, roots: readonly string[]): boolean {
  const real = resolved(path);
  return real !== undefined && roots.some((root) => contains(resolved(root) ?? root, real));
}

/** What this user cannot read anyway needs no hiding, and hiding costs a rule for each thing beside it. */
function isOpen({ path, kind }: PlanEntry): boolean {
  try {
    accessSync(path, kind === "directory" ? constants.X_OK : constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Asked of the kernel itself, because the file that lists security modules is often missing. */
function landlockAbi(launcher: string): number {
  try {
    return Number(execFileSync(launcher, ["landlock-abi"], { encoding: "utf8" }).trim());
  } catch {
    return 0; // a launcher that does not run here confines nothing
  }
}

function explainLandlock(grant: Grant): readonly string[] {
  return [
    ...explainFiles(grant, "the folder named by TMPDIR"),
    explainSharedNetwork(grant),
    "Protected names are put back after the command (their settings and hooks), not held during it.",
    "Other processes can be seen, not touched; /dev/shm is the host's (read-only if the workspace lies in it); sockets are connected to by path in writable folders only.",
  ];
}

async function probe(abi: () => number, confine: Backend["confine"], machine: Machine): Promise<ProbeResult> {
  if (abi() < 1) {
    const fix = "boot a kernel from 5.13 on with landlock among its lsm= modules";
    return { ok: false, detail: "this kernel has no Landlock, or it is switched off", fix };
  }
  const finished = await tryCommand(confine, machine);
  if (finished.exitCode !== 0) return { ok: false, detail: `could not run a command: ${firstWords(finished)}` };
  const detail = `ran a command under Landlock (ABI ${abi()}) and our seccomp filter`;
  const asking = await tryCommand(confine, machine, { argv: ["sh", "-c", 'f=$(mktemp) && chmod 600 "$f" && rm "$f"'] });
  if (asking.exitCode === 0) return { ok: true, detail };
  // Nothing gets out, but less works: the launcher may not read the path of a call that it is asked about.
  return {
    ok: true,
    detail: `${detail}; but modes and times of files cannot be changed, and unix sockets not connected to`,
    fix: "sudo sysctl -w kernel.yama.ptrace_scope=1",
  };
}
