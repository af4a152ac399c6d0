/** One command with its writes held back: what it did is listed, and kept, dropped or asked about. */
import { matchPath } from "../../gate/rules.ts";
import { createProcesses } from "../../runtime/processes.ts";
import { listEffects, recoverRuns, settleRun } from "../../runtime/effects/runs.ts";
import type { HeldRun } from "../../runtime/process/child.ts";
import { StartError } from "../../runtime/process/child.ts";
import type { Confined, Ending, Sandbox } from "../../runtime/sandbox/sandbox.ts";
import type { Launch } from "../../spec/capability.ts";
import type { Choice, Effect, Settled } from "../../spec/effects.ts";
import { dirname } from "node:path";
import { exitCodes, printJson, say, UsageError } from "../io.ts";
import { visible } from "../chat/visible.ts";
import { effectLines, effectsDiff } from "../../runtime/effects/show.ts";

export interface HeldFlags {
  readonly held: "keep" | "drop" | "ask";
  readonly only?: readonly string[];
  readonly json: boolean;
}

export async function runHeld(sandbox: Sandbox, launch: Launch, flags: HeldFlags): Promise<number> {
  const processes = createProcesses();
  try {
    const confined = await sandbox.confine(launch, { apart: processes.spawner.name === "launcher" });
    const { run } = confined;
    if (run === undefined) throw new UsageError("what it writes cannot be held here", exitCodes.refused);
    await recoverRuns({ ...run, folder: dirname(run.folder) });
    const at = Date.now();
    const ending = await passThrough(processes, confined, flags.json);
    const denied = await confined.cleanup(ending);
    if (denied !== undefined)
      say(
        visible(
          `callgate: ${denied.inferred ? "probably refused" : "refused"} by ${confined.sandbox}: ${denied.reason}`,
        ),
      );
    const effects = await listEffects(run);
    const choice = await choose(effects, run, flags);
    const settled = await settleRun(run, choice, { at, command: launch.argv, cwd: launch.cwd });
    report(effects, settled, ending, flags);
    return ending.exitCode ?? exitCodes.failed;
  } finally {
    await processes.close();
  }
}

async function choose(effects: readonly Effect[], run: HeldRun, flags: HeldFlags): Promise<Choice> {
  if (flags.held === "drop") return "none";
  const workspace = run.roots[0] ?? "";
  const real = (path: string) => (path.startsWith("/") ? path : `${workspace}/${path}`);
  const { only } = flags;
  const wanted: Choice =
    only === undefined
      ? "all"
      : {
          paths: effects
            .map(({ path }) => path)
            .filter((path) => only.some((pattern) => matchPath(real(path), pattern, workspace))),
        };
  if (flags.held === "keep" || effects.length === 0) return wanted;
  return (await isAgreed(effects, run)) ? wanted : "none";
}

/** No answer is a no. */
async function isAgreed(effects: readonly Effect[], run: HeldRun): Promise<boolean> {
  for (const { mark, text } of effectLines(effects, run)) say(visible(`${mark} ${text}`));
  const diff = effectsDiff(effects, run);
  if (diff !== undefined) say(visible(diff));
  if (!process.stdin.isTTY) {
    say("callgate: nobody can be asked here, so nothing is kept (--held keep keeps it)");
    return false;
  }
  const { createInterface } = await import("node:readline/promises");
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(?:es)?$/i.test((await lines.question("Keep this? [y/N] ")).trim());
  } finally {
    lines.close();
  }
}

function report(
  effects: readonly Effect[],
  { run, kept, conflicts }: Settled,
  { exitCode, signal }: Ending,
  { json }: HeldFlags,
): void {
  if (json) return printJson({ exitCode, ...(signal === null ? {} : { signal }), run, effects, kept, conflicts });
  const words = { all: "kept", part: "kept in part", none: effects.length === 0 ? "nothing was changed" : "dropped" };
  say(`callgate: ${words[kept]}${kept === "none" ? "" : ` (callgate undo ${run} takes it back)`}`);
  for (const path of conflicts) say(visible(`callgate: left alone, somebody else changed it meanwhile: ${path}`));
}

/** The command's output is ours; with JSON on our output, all of it goes to our errors. */
async function passThrough(
  processes: ReturnType<typeof createProcesses>,
  confined: Confined,
  aside: boolean,
): Promise<Ending> {
  const child = await processes.spawner
    .start(
      // One command, so no sandbox is made ahead for a next one.
      { ...confined, reusable: false, ...(process.stdin.isTTY ? {} : { stdin: "" }) },
      {
        liveBytes: Number.MAX_SAFE_INTEGER,
        tailBytes: 0,
        graceMs: 250,
        onOutput: (stream, bytes) =>
          void (stream === "stdout" && !aside ? process.stdout : process.stderr).write(bytes),
        onDropped() {},
      },
    )
    .catch(toUsageError);
  const pass = (name: NodeJS.Signals) => child.signal(name);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const name of signals) process.on(name, pass);
  if (!process.stdin.isTTY) {
    process.stdin.on("data", (bytes: Buffer) => child.write(bytes));
    process.stdin.once("end", () => child.endInput());
    process.stdin.once("error", () => child.endInput());
  }
  try {
    const { exitCode, signal } = await child.ended.catch(toUsageError);
    return { exitCode, signal };
  } finally {
    for (const name of signals) process.off(name, pass);
    process.stdin.pause();
    process.stdin.unref?.();
  }
}

function toUsageError(error: unknown): never {
  if (!(error instanceof StartError)) throw error;
  throw new UsageError(error.message, error.step === "exec" ? 127 : exitCodes.refused);
}
