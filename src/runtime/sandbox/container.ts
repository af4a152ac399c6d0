/**
 * A container, if the user asks for one: the command sees an image's files and the granted folders,
 * and nothing else of the host. It is never chosen automatically, because an image is a different
 * machine.
 */
import { sep } from "node:path";
import { CallError } from "../../base/error.ts";
import type { Launch } from "../../spec/capability.ts";
import type { Backend, Confined, ConfineHow, ProbeResult } from "./backend.ts";
import { explainEnding, joinDenials } from "./denial.ts";
import { explainPlan } from "./explain.ts";
import type { Machine } from "./machine.ts";
import { planMounts } from "./plan.ts";
import type { Plan, PlanEntry } from "./plan.ts";
import { tryCommand } from "./probe.ts";
import { relayed } from "./relay.ts";
import type { Shared } from "./shared.ts";

export interface ContainerSettings {
  /** `podman` or `docker`, as a path or a name. */
  readonly program: string;
  readonly image: string;
  /** Relays to our proxy inside. It is static, so it runs in any image. */
  readonly launcher?: string;
}

const name = "container";

export function createContainerBackend(settings: ContainerSettings, machine: Machine, shared: Shared): Backend {
  function confine(launch: Launch, { apart = false, proxy }: ConfineHow = {}): Confined {
    const { grant, cwd, env } = launch;
    if (grant.policy === "full-access")
      throw new CallError("no_sandbox", "a container cannot give access to every file");
    const plan = planMounts(grant, { cwd, tempDir: machine.tempDir, sockets: [], own: shared.own });
    const way = proxy?.socket === undefined ? undefined : hostRelay(launch, proxy.socket, settings.launcher);
    const guard = shared.guard(plan);
    const inner = { ...env, ...way?.env, CALLGATE_CONFINED_BY: name };
    const { tty: _terminal, ...onPipes } = launch;
    return {
      ...launch,
      // The launcher opens the terminal around the container's client, which then needs none of its own.
      argv: containerArgv(
        plan,
        { ...(apart ? onPipes : launch), env: inner, argv: way?.argv ?? launch.argv },
        settings,
        machine,
        way?.visible ?? [],
      ),
      // The client takes the values from its own environment, so that none of them shows in a process list.
      env: inner,
      sandbox: name,
      async cleanup(ending) {
        const refusedHost = await proxy?.close();
        const evidence = joinDenials([...guard.undo(), refusedHost]);
        return evidence ?? explainEnding({ ...launch, writable: plan.roots }, ending);
      },
    };
  }

  return {
    name,
    proxyBy: "socket",
    confine,
    probe: () => probe(confine, machine),
    explain: (grant) => [
      `The command sees the image ${settings.image} and the folders named here.`,
      ...explainPlan(grant, machine),
    ],
  };
}

function hostRelay(launch: Launch, socket: string, launcher: string | undefined) {
  if (launcher === undefined) throw new CallError("no_sandbox", "allowed hosts in a container need the launcher");
  return relayed(launch.argv, socket, launch.grant, launcher);
}

interface Shown {
  readonly path: string;
  readonly source: string;
}

function containerArgv(
  plan: Plan,
  launch: Launch,
  { program, image }: ContainerSettings,
  machine: Pick<Machine, "uid" | "gid" | "tempDir">,
  shown: readonly Shown[] = [],
): readonly string[] {
  const { cwd, grant, env, argv, tty } = launch;
  const covered = plan.roots.some((root) => cwd === root || cwd.startsWith(root + sep));
  return [
    [program, "run", "--rm", "--init", "--interactive", ...(tty ? ["--tty"] : [])],
    ["--network", grant.network === "on" ? "host" : "none"],
    ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "4096", "--ipc", "private"],
    ["--read-only", "--tmpfs", machine.tempDir, "--tmpfs", "/run"],
    ["--user", `${machine.uid}:${machine.gid}`, "--workdir", cwd],
    covered ? [] : volume(cwd, cwd, "ro"),
    ...plan.entries.map(entryVolume),
    ...shown.map(({ path, source }) => volume(source, path, "ro")),
    ...Object.keys(env).map((variable) => ["--env", variable]),
    [image, ...argv],
  ].flat();
}

/** Only granted folders exist in there, so nothing has to be hidden elsewhere. */
function entryVolume({ path, use, kind }: PlanEntry): readonly string[] {
  if (use === "write") return volume(path, path, "rw");
  if (use === "read") return volume(path, path, "ro");
  if (use === "temp" || path === "/run") return [];
  return kind === "file" ? volume("/dev/null", path, "ro") : ["--tmpfs", `${path}:ro,mode=000`];
}

/** The long form, because a colon in a path would end the short form early. */
function volume(source: string, path: string, mode: "ro" | "rw"): readonly string[] {
  if (`${source}${path}`.includes(","))
    throw new CallError("no_sandbox", `a container cannot be given a path with a comma: ${path}`);
  return ["--mount", `type=bind,source=${source},target=${path}${mode === "ro" ? ",readonly" : ""}`];
}

/** Long, because the image may have to be fetched first. */
const probeTimeoutMs = 60_000;

async function probe(confine: Backend["confine"], machine: Machine): Promise<ProbeResult> {
  const { exitCode } = await tryCommand(confine, machine, { cwd: "/var/empty", timeoutMs: probeTimeoutMs });
  return exitCode === 0
    ? { ok: true, detail: "ran a command in a container" }
    : { ok: false, detail: "no container could be started" };
}
