/** Whether what a command writes can really be held here: tried with one that writes, once, and dropped again. */
import { dirname } from "node:path";
import { CallError } from "../../base/error.ts";
import type { Grant } from "../../spec/access.ts";
import { StartError, type Spawner } from "../process/child.ts";
import { runToEnd } from "../process/run.ts";
import type { Sandbox } from "../sandbox/backend.ts";
import { dropRun, findStranger, listEffects, recoverRuns } from "./runs.ts";

export interface HeldTrial {
  readonly sandbox: Pick<Sandbox, "confine">;
  readonly spawner: Spawner;
  readonly grant: Grant;
  readonly cwd: string;
}

const probeName = ".callgate-probe";

/** Why not, in words that follow "because"; undefined: a file was written, seen in the list, and is nowhere, and everything there is ours. */
export async function tryHeld({ sandbox, spawner, grant, cwd }: HeldTrial): Promise<string | undefined> {
  const [folder = cwd] = grant.write;
  const launch = {
    argv: ["/bin/sh", "-c", `: > ${probeName}`],
    cwd: folder,
    env: { PATH: "/usr/bin:/bin" },
    limits: { timeoutMs: 10_000 },
    grant: { ...grant, network: "off" as const, writes: "held" as const },
  };
  try {
    const confined = await sandbox.confine(launch, { apart: spawner.name === "launcher" });
    const options = { maxOutputBytes: 4_096, onOutput: undefined, signal: new AbortController().signal };
    const end = await runToEnd(spawner, { ...confined, reusable: false }, options);
    await confined.cleanup(end);
    if (confined.run === undefined) return "the sandbox holds nothing";
    const effects = await listEffects(confined.run);
    await dropRun(confined.run);
    // The first held run of a process: what an earlier one left when it was killed is finished or removed.
    await recoverRuns({ ...confined.run, folder: dirname(confined.run.folder) });
    const stranger = await findStranger(confined.run);
    if (stranger !== undefined) return `${stranger} belongs to another user or group`;
    const isSeen = effects.some(({ path, kind }) => path === probeName && kind === "added");
    return isSeen ? undefined : "what was written did not arrive where it is held";
  } catch (error) {
    if (!CallError.is(error) && !(error instanceof StartError)) throw error;
    return `the kernel or the sandbox refused it (${error.message})`;
  }
}
