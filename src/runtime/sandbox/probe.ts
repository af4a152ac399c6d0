/** The smallest command under the strictest grant. A backend works if this does. */
import { readFileSync } from "node:fs";
import type { Grant } from "../../spec/access.ts";
import { defined } from "../../base/json.ts";
import { startConfined } from "../process/plain.ts";
import { readSandboxStatus } from "../process/sandbox-status.ts";
import type { Backend, Confined, Ending, ProbeResult } from "./backend.ts";
import type { Machine } from "./machine.ts";

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

/** What the sandbox program printed, for people. Nothing is decided by it. */
export function firstWords({ stderr }: Finished): string {
  return stderr.trim().split("\n")[0] ?? "";
}

/** How a confined command ended, and what it wrote. */
export interface Finished extends Ending {
  /** Why the command never began: the sandbox could not be built. A second try may succeed. */
  readonly neverBegan?: string;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a confined command to its end. A program that cannot be started ends with exit code 127. */
export function runConfined(command: Confined, timeoutMs = 10_000): Promise<Finished> {
  return new Promise((resolve) => {
    const output = { stdout: "", stderr: "" };
    const child = startConfined(command);
    const status = readSandboxStatus(child, command);
    const done = (exitCode: number | null, signal: string | null) => {
      clearTimeout(timer);
      const neverBegan = status.end(exitCode)?.message;
      resolve({ ...output, exitCode, signal, ...defined({ neverBegan }) });
    };
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      output.stderr += text;
      status.take(Buffer.from(text));
    });
    child.once("error", () => done(127, null));
    child.once("close", done);
  });
}

/** Whether a sandbox made of namespaces works here, and what would make it work. */
export async function probeNamespaces(confine: Backend["confine"], machine: Machine): Promise<ProbeResult> {
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
