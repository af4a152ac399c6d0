/** Runs one command with its writes held back. What it did is listed, and then kept, dropped or asked about. */
import { matchPath } from "../../gate/rules.ts";
import { createProcesses } from "../../runtime/processes.ts";
import { findStranger, listEffects, recoverRuns, settleRun } from "../../runtime/effects/runs.ts";
import type { HeldRun } from "../../runtime/process/child.ts";
import { StartError } from "../../runtime/process/child.ts";
import type { Confined, Ending, Sandbox } from "../../runtime/sandbox/sandbox.ts";
import type { Launch } from "../../spec/capability.ts";
import type { Choice, Effect, Settled } from "../../spec/effects.ts";
import { dirname } from "node:path";
import { exitCodes, printJson, say, UsageError } from "../io.ts";
import { visible } from "../chat/visible.ts";
import { effectLines, effectsDiff, whyDirect } from "../../runtime/effects/show.ts";
import { chosenPaths, prunedWords } from "../../result/effects.ts";
import { defined } from "../../base/json.ts";

export interface HeldFlags {
  readonly held: "keep" | "drop" | "ask";
  readonly only?: readonly string[];
  readonly json: boolean;
}

export async function runHeld(sandbox: Sandbox, launch: Launch, flags: HeldFlags): Promise<number> {
  const processes = createProcesses();
  try {
    const apart = processes.spawner.name === "launcher";
    const confined = await sandbox.confine(launch, { apart });
    const { run } = confined;
    if (run === undefined) throw new UsageError("what it writes cannot be held here", exitCodes.refused);
    await recoverRuns({ ...run, folder: dirname(run.folder) });
    const stranger = await findStranger(run);
    if (stranger !== undefined)
      throw new UsageError(
        visible(`it cannot be held: ${stranger} belongs to another user or group`),
        exitCodes.refused,
      );
    const at = Date.now();
    const end = await passThrough(processes, confined, flags.json);
    const denied = await confined.cleanup(end);
    if (denied !== undefined) {
      const how = denied.inferred ? "probably refused" : "refused";
      say(visible(`callgate: ${how} by ${confined.sandbox}: ${denied.reason}`));
    }
    const held = { effects: await listEffects(run), direct: whyDirect(end) };
    const choice = await choose(held, run, flags);
    const settled = await settleRun(run, choice === "direct" ? "none" : choice, {
      at,
      command: launch.argv,
      cwd: launch.cwd,
    });
    if (choice !== "direct") return report(held, settled, end, flags);
    const direct = await sandbox.confine({ ...launch, grant: { ...launch.grant, writes: "direct" } }, { apart });
    const ending = await passThrough(processes, direct, flags.json);
    await direct.cleanup(ending);
    if (flags.json)
      printJson({ ...outcomeOf(ending), run: run.id, effects: [], kept: "none", conflicts: [], ran: "directly" });
    return ending.exitCode ?? exitCodes.failed;
  } finally {
    await processes.close();
  }
}

interface HeldOutcome {
  readonly effects: readonly Effect[];
  /** Why it failed, if it failed because it was held. */
  readonly direct: string | undefined;
}

async function choose(held: HeldOutcome, run: HeldRun, flags: HeldFlags): Promise<Choice | "direct"> {
  const { effects, direct } = held;
  if (flags.held === "drop") return "none";
  const workspace = run.roots[0] ?? "";
  const real = (path: string) => (path.startsWith("/") ? path : `${workspace}/${path}`);
  const { only } = flags;
  const isWanted = (path: string) =>
    only === undefined || only.some((pattern) => matchPath(real(path), pattern, workspace));
  const paths = effects.map(({ path }) => path).filter(isWanted);
  const wanted: Choice = only === undefined ? "all" : { paths };
  if (flags.held === "keep" || (effects.length === 0 && direct === undefined)) return wanted;
  const answer = await ask(held, run);
  return typeof answer === "object" ? { paths: answer.paths.filter(isWanted) } : answer === "all" ? wanted : answer;
}

/** Asks what is to be kept. No answer is a no. */
async function ask({ effects, direct }: HeldOutcome, run: HeldRun): Promise<Choice | "direct"> {
  const lines = effectLines(effects, run);
  const { createTheme, paintDiff } = await import("../tui/theme.ts");
  const theme = createTheme(process.stderr.isTTY && process.stderr.hasColors());
  const { paintEffect } = await import("../tui/choose-effects.ts");
  for (const [at, line] of lines.entries()) say(`${at + 1} ${paintEffect(line, theme)}`);
  const diff = effectsDiff(effects, run);
  if (diff !== undefined) say(paintDiff(visible(diff), theme));
  if (direct !== undefined) say(`callgate: ${direct}`);
  if (!process.stdin.isTTY) {
    say("callgate: nobody can be asked here, so nothing is kept (--held keep keeps it)");
    return "none";
  }
  process.stdin.ref(); // the earlier command released it, and the process would end here
  const { createInterface } = await import("node:readline/promises");
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  const offers = [
    ...(lines.length === 0 ? [] : ["y keeps all of it", "k 1 3-5 only these lines"]),
    ...(direct === undefined ? [] : ["d runs it again directly"]),
  ];
  try {
    const [letter = "", ...words] = (await reader.question(`${offers.join(", ")}, n drops it: `)).trim().split(/\s+/);
    if (/^y(?:es)?$/i.test(letter)) return "all";
    if (letter === "d" && direct !== undefined) return "direct";
    const paths = letter === "k" ? chosenPaths(words, lines) : undefined;
    return paths === undefined ? "none" : { paths };
  } finally {
    reader.close();
  }
}

function outcomeOf({ exitCode, signal }: Ending): { readonly exitCode: number | null; readonly signal?: string } {
  return { exitCode, ...(signal === null ? {} : { signal }) };
}

function report(held: HeldOutcome, settled: Settled, ending: Ending, { json }: HeldFlags): number {
  const { effects, direct } = held;
  const { run, kept, conflicts, pruned } = settled;
  if (json) printJson({ ...outcomeOf(ending), run, effects, kept, conflicts, ...defined({ direct, pruned }) });
  else {
    const words = { all: "kept", part: "kept in part", none: effects.length === 0 ? "nothing was changed" : "dropped" };
    say(`callgate: ${words[kept]}${kept === "none" ? "" : ` (callgate undo ${run} takes it back)`}`);
    for (const path of conflicts) say(visible(`callgate: left alone, somebody else changed it meanwhile: ${path}`));
    if (direct !== undefined) say(`callgate: ${direct}; without --held it runs directly`);
    if (pruned !== undefined) say(`callgate: ${prunedWords(pruned)}`);
  }
  return ending.exitCode ?? exitCodes.failed;
}

/** How much of the output is searched for the reason of a failure. */
const tailBytes = 16_384;

/** The command's output becomes ours. If our output is JSON, all of it goes to stderr. */
async function passThrough(
  processes: ReturnType<typeof createProcesses>,
  confined: Confined,
  aside: boolean,
): Promise<Ending & { readonly output: { readonly head: string; readonly tail: string } }> {
  let tail = "";
  const child = await processes.spawner
    .start(
      // There is only one command, so no sandbox is prepared for a next one.
      { ...confined, reusable: false, ...(process.stdin.isTTY ? {} : { stdin: "" }) },
      {
        liveBytes: Number.MAX_SAFE_INTEGER,
        tailBytes: 0,
        graceMs: 250,
        onOutput(stream, bytes) {
          (stream === "stdout" && !aside ? process.stdout : process.stderr).write(bytes);
          tail = (tail + Buffer.from(bytes).toString("latin1")).slice(-tailBytes);
        },
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
    return { exitCode, signal, output: { head: "", tail } };
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
