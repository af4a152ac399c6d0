/**
 * Takes an argv and a grant, and returns a confined command. This is the entry of `callgate/sandbox`,
 * and can be used alone. The folder knows the kernel and the disk, but no tool, no policy file and no
 * person. It never confines less than it was asked to: if nothing here can, it says so and runs
 * nothing.
 */
import { checkOptions, optionsShape } from "../../base/shape.ts";
import { statSync } from "node:fs";
import { defined } from "../../base/json.ts";
import { CallError } from "../../base/error.ts";
import { launcherPath } from "../process/launcher-path.ts";
import type { Grant } from "../../spec/access.ts";
import type { Launch } from "../../spec/capability.ts";
import type { Backend, CommandProxy, ConfineOptions, Sandbox } from "./backend.ts";
import { createBwrapBackend } from "./bwrap.ts";
import type { BwrapVariant } from "./bwrap.ts";
import { createContainerBackend } from "./container.ts";
import { findCandidate, tryCandidates } from "./candidates.ts";
import { createLandlockBackend } from "./landlock.ts";
import type { Candidate, CandidateResult } from "./candidates.ts";
import { findProgram, findTrustedProgram, thisMachine } from "./machine.ts";
import type { Machine } from "./machine.ts";
import { createSeatbeltBackend, seatbeltProgram } from "./seatbelt.ts";
import { createShared } from "./shared.ts";
import type { Shared } from "./shared.ts";

export type { Launch, Limits } from "../../spec/capability.ts";
export type { Backend, Confined, ConfineHow, ConfineOptions, Ending, Sandbox } from "./backend.ts";
export type { CandidateResult } from "./candidates.ts";
export { startConfined } from "../process/plain.ts";
export { runConfined } from "./probe.ts";
export type { Finished } from "./probe.ts";

/** Options of `createSandbox`. */
export interface SandboxOptions {
  /** Facts about this machine to assume instead of looking, for tests. */
  readonly machine?: Partial<Machine>;
  /** Use only this backend (a candidate's id), or none. Left out: the first that works here. */
  readonly only?: string;
  /** Your own backends, tried before all others. */
  readonly backends?: readonly Backend[];
  /** Run commands in this image instead; tried before the platform's own backends. */
  readonly container?: { readonly program: "podman" | "docker"; readonly image: string };
  /** The launcher's path. It applies Landlock and relays to the proxy. Left out: it is looked for. Null: none. */
  readonly launcher?: string | null;
  /** A folder of kept outputs that commands may read although it is in our state folder, which they may not read. */
  readonly kept?: string;
  /** Let allowed names lead to private addresses. */
  readonly allowPrivate?: boolean;
}

const sandboxShape = optionsShape<SandboxOptions>({
  machine: "table",
  only: "string",
  backends: { list: "any" },
  container: {
    fields: { program: { oneOf: ["podman", "docker"] }, image: "string" },
    required: ["program", "image"],
    noun: "option",
  },
  launcher: "any",
  kept: "string",
  allowPrivate: "boolean",
});

/** Finds out how commands can be confined here. Backends are tried when it is first used. */
export function createSandbox(options: SandboxOptions = {}): Sandbox {
  checkOptions("createSandbox", options, sandboxShape);
  const machine = thisMachine(options.machine);
  const shared = createShared(machine, options.kept);
  let found: Promise<Candidate | undefined> | undefined;
  const candidate = () =>
    (found ??= Promise.resolve().then(() => findCandidate(candidates(options, machine, shared), machine)));

  async function whyNotHeld(grant: Grant, cwd: string): Promise<string | undefined> {
    if (!grant.confined) return "it does not run in a sandbox";
    const backend = (await candidate())?.backend;
    if (backend === undefined) return "there is no sandbox";
    return backend.whyNotHeld
      ? backend.whyNotHeld(grant, cwd)
      : `the sandbox (${backend.name}) has no mounts of its own`;
  }

  return {
    async confinement() {
      const backend = (await candidate())?.backend;
      return backend === undefined ? { name: "none", available: false } : { name: backend.name, available: true };
    },
    whyNotHeld,
    async confine(launch, how = {}) {
      checkWords(launch);
      const why =
        (launch.grant.writes ?? "direct") !== "direct" ? await whyNotHeld(launch.grant, launch.cwd) : undefined;
      if (why !== undefined) throw new CallError("no_sandbox", `what it writes cannot be held here: ${why}`);
      if (!launch.grant.confined) {
        shared.ranUnconfined();
        return { ...launch, sandbox: "none", cleanup: async () => undefined };
      }
      const backend = (await candidate())?.backend;
      if (backend === undefined) throw noSandbox(machine);
      if (backend.name !== "container") checkProgram(launch, machine);
      const proxy = await openProxy(backend, launch, { ...options, ...how });
      try {
        return backend.confine(launch, defined({ apart: how.apart, proxy }));
      } catch (error) {
        await proxy?.close();
        throw error;
      }
    },
    async explain(grant) {
      if (!grant.confined) return ["Not confined: the command can do what this user can."];
      const backend = (await candidate())?.backend;
      return backend === undefined
        ? ["Nothing here can confine a command (see callgate doctor)."]
        : [`Confined by ${backend.name}.`, ...backend.explain(grant)];
    },
    close: () => shared.close(),
  };
}

/** Tries every way to confine a command here, in the order in which they would be chosen. */
export async function trySandboxes(options: SandboxOptions = {}): Promise<readonly CandidateResult[]> {
  const machine = thisMachine(options.machine);
  const shared = createShared(machine);
  try {
    return await tryCandidates(candidates(options, machine, shared));
  } finally {
    await shared.close();
  }
}

function candidates(options: SandboxOptions, machine: Machine, shared: Shared): readonly Candidate[] {
  const { only, backends = [], container } = options;
  const launcher = options.launcher === undefined ? launcherPath(machine.env) : (options.launcher ?? undefined);
  const relay = launcher === undefined ? {} : { launcher };
  const all: readonly Candidate[] = [
    ...backends.map((backend) => ({ id: backend.name, backend, programs: [] })),
    // Whoever asks for a container wants exactly that, and not the next best thing.
    ...(container === undefined
      ? platformCandidates(machine, shared, launcher)
      : [
          {
            id: "container",
            backend: createContainerBackend({ ...container, ...relay }, machine, shared),
            programs: [],
          },
        ]),
  ];
  if (only === undefined) return all;
  // By the short name, or as `doctor` prints it.
  const chosen = all.filter(({ id, backend }) => id === only || backend.name === only);
  if (chosen.length > 0) return chosen;
  throw new CallError(
    "no_sandbox",
    `there is no backend '${only}' here, only ${all.map(({ id }) => id).join(", ") || "none"}`,
  );
}

function platformCandidates(machine: Machine, shared: Shared, launcher: string | undefined): readonly Candidate[] {
  if (machine.platform === "linux") return linuxCandidates(machine, shared, launcher);
  // Windows has approvals only. A restricted token would be one more candidate here.
  return machine.platform === "darwin"
    ? [{ id: "seatbelt", backend: createSeatbeltBackend(machine, shared), programs: [seatbeltProgram] }]
    : [];
}

const bwrapVariants = [
  { id: "bwrap", proc: "fresh", disableUserns: true },
  { id: "bwrap-old", proc: "fresh", disableUserns: false },
  { id: "bwrap-bound-proc", proc: "bound", disableUserns: true },
  { id: "bwrap-bound-proc-old", proc: "bound", disableUserns: false },
] as const;

function linuxCandidates(machine: Machine, shared: Shared, launcher: string | undefined): readonly Candidate[] {
  const { architecture, env } = machine;
  // Without system call numbers for this processor there is no seccomp program, and neither backend is complete.
  if (architecture === undefined) return [];
  const program = findTrustedProgram("bwrap", env);
  const settings = { architecture, ...defined({ launcher }) };
  return [
    ...(program === undefined ? [] : bwrapCandidates({ program, ...settings }, machine, shared)),
    ...(launcher === undefined
      ? []
      : [
          {
            id: "landlock",
            backend: createLandlockBackend({ launcher, architecture }, machine, shared),
            programs: [launcher],
          },
        ]),
  ];
}

function bwrapCandidates(
  settings: Omit<BwrapVariant, "proc" | "disableUserns">,
  machine: Machine,
  shared: Shared,
): readonly Candidate[] {
  return bwrapVariants.map(({ id, ...variant }) => {
    const backend = createBwrapBackend({ ...settings, ...variant }, machine, shared);
    return { id, backend, programs: [settings.program] };
  });
}

async function openProxy(
  backend: Backend,
  { grant }: Launch,
  settings: SandboxOptions & ConfineOptions,
): Promise<CommandProxy | undefined> {
  const { network } = grant;
  if (typeof network === "string" || network.length === 0) return undefined;
  const { openCommandProxy } = await import("./command-proxy.ts");
  return openCommandProxy(backend.proxyBy, grant, settings);
}

function checkWords({ argv, cwd, env }: Launch): void {
  if (argv.length === 0 || argv[0] === "") throw new CallError("invalid_input", "the command is empty");
  const isBroken = (word: string) => word.includes("\0");
  if (isBroken(cwd) || argv.some(isBroken) || Object.keys(env).some((name) => isBroken(name) || isBroken(env[name]!)))
    throw new CallError("invalid_input", "a command, folder or variable may not contain a NUL character");
  if (statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new CallError("invalid_input", `there is no folder ${cwd}`, { hint: "give a folder that exists" });
}

/**
 * Looked for here, because the sandbox program's own words about a missing program would be taken for
 * the command's output.
 */
function checkProgram({ argv: [program = ""], env }: Launch, machine: Machine): void {
  const isName = !program.includes("/");
  // Inside, the temporary folder is a different one, so only there can it be known what is in it.
  if (!isName || (env["PATH"] ?? "").includes(machine.tempDir) || findProgram(program, env) !== undefined) return;
  throw new CallError("failed", `there is no program '${program}' on the PATH`, {
    hint: "check the program's name",
    data: { step: "exec", code: "ENOENT" },
  });
}

function noSandbox(machine: Machine): CallError {
  const why =
    machine.platform === "win32"
      ? "on Windows commands cannot be confined yet"
      : "nothing on this machine can confine a command";
  return new CallError("no_sandbox", `${why}, and this call must be confined`, {
    hint: "callgate doctor says what is missing; the user can also approve running it unconfined",
  });
}
/** Types that the signatures above mention. */
export type { FdData, HeldRun, LandlockRules, ProgramFile, StartRules } from "../process/child.ts";
export type { StartOptions } from "../process/plain.ts";
export type { ProxiedRequest } from "../proxy.ts";
export type { CommandProxy, ProbeResult } from "./backend.ts";
export type { Machine } from "./machine.ts";
export type { Architecture } from "./seccomp/syscalls.ts";
