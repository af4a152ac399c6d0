/** The smallest command under the strictest grant: a backend works if this does. */
import type { Grant } from "../../spec/access.ts";
import type { Backend } from "./backend.ts";
import type { Machine } from "./machine.ts";
import { runConfined } from "./start.ts";
import type { Finished } from "./start.ts";

const grant: Grant = { policy: "read-only", confined: true, write: [], protect: [], mask: [], network: "off" };

export interface Trial {
  readonly argv?: readonly string[];
  readonly cwd?: string;
  readonly timeoutMs?: number;
}

export function tryCommand(
  confine: Backend["confine"],
  machine: Pick<Machine, "env">,
  trial: Trial = {},
): Promise<Finished> {
  const { argv = ["true"], cwd = "/", timeoutMs } = trial;
  const env = { PATH: machine.env["PATH"] ?? "/usr/bin:/bin" };
  return runConfined(confine({ argv, cwd, env, grant }), timeoutMs);
}

/** What the sandbox program said, for people; nothing is decided by it. */
export function firstWords({ stderr }: Finished): string {
  return stderr.trim().split("\n")[0] ?? "";
}
