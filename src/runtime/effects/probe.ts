/**
 * Finds out whether the writes of a command can really be held here, by running one that writes, once,
 * and dropping the result.
 */
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

/**
 * Why not, in words that can follow "because". Undefined means that a file was written, was seen in
 * the list and is gone again, and that everything there belongs to us.
 */
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
    // This is the first held run of the process, so what an earlier process left when it was killed is finished or
    // removed.
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
