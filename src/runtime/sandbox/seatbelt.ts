/** macOS: `sandbox-exec` with a profile made for the grant. Written from documentation and tested as text; it has not run on a Mac yet. */
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { defined } from "../../base/json.ts";
import type { Grant } from "../../spec/access.ts";
import type { Launch } from "../../spec/capability.ts";
import type { Backend, Confined, ConfineHow, ProbeResult } from "./backend.ts";
import { explainEnding } from "./denial.ts";
import { explainFiles, explainSharedNetwork } from "./explain.ts";
import type { Machine } from "./machine.ts";
import { hostSockets } from "./machine.ts";
import { planMounts } from "./plan.ts";
import { tryCommand } from "./probe.ts";
import { proxyEnv } from "./relay.ts";
import { seatbeltProfile } from "./seatbelt-profile.ts";
import type { Shared } from "./shared.ts";

/** Started by its fixed path, because an entry of PATH could put another program of that name first. */
export const seatbeltProgram = "/usr/bin/sandbox-exec";
const name = "seatbelt";

export function createSeatbeltBackend(machine: Machine, shared: Shared): Backend {
  function confine(launch: Launch, { proxy }: ConfineHow = {}): Confined {
    const { grant, cwd, env, argv } = launch;
    const plan = planMounts(grant, { cwd, tempDir: machine.tempDir, sockets: hostSockets(machine), own: shared.own });
    const tempFolder = shared.tempFolder(undefined);
    const protect = plan.everything
      ? []
      : plan.roots.flatMap((root) => grant.protect.map((path) => (isAbsolute(path) ? path : join(root, path))));
    const port = proxy?.port;
    const profile = seatbeltProfile({
      plan,
      grant,
      protect,
      tempFolder,
      ...defined({ proxyPort: port }),
    });
    const definitions = Object.entries(profile.parameters).flatMap(([key, value]) => ["-D", `${key}=${value}`]);
    return {
      ...launch,
      argv: [seatbeltProgram, "-p", profile.text, ...definitions, "--", ...argv],
      env: {
        ...env,
        TMPDIR: tempFolder,
        ...(port === undefined ? {} : proxyEnv(`http://callgate:${proxy?.token ?? ""}@127.0.0.1:${port}`)),
        CALLGATE_CONFINED_BY: name,
      },
      sandbox: name,
      async cleanup(ending) {
        const refusedHost = await proxy?.close();
        const writable = plan.everything ? ["/"] : [...plan.roots, tempFolder];
        return refusedHost ?? explainEnding({ grant, cwd, argv, writable }, ending);
      },
    };
  }

  return { name, proxyBy: "port", confine, probe: () => probe(confine, machine), explain: explainSeatbelt };
}

function explainSeatbelt(grant: Grant): readonly string[] {
  return [...explainFiles(grant, "the folder named by TMPDIR"), explainSharedNetwork(grant)];
}

async function probe(confine: Backend["confine"], machine: Machine): Promise<ProbeResult> {
  if (!existsSync(seatbeltProgram)) return { ok: false, detail: `${seatbeltProgram} is not there` };
  const { exitCode } = await tryCommand(confine, machine, { argv: ["/usr/bin/true"] });
  if (exitCode === 0) return { ok: true, detail: "ran a command under sandbox-exec" };
  const fix = "it cannot start inside another sandbox: run callgate outside of one";
  return { ok: false, detail: "sandbox-exec could not run a command", fix };
}
