/**
 * Is anything dearer than it was? A short set of counts, which the machine's other work does not change: modules and
 * bytes loaded by a start, bytes allocated by a start, a call, a read, a decision and an answer, system calls made by a
 * command, a read and an edit, instructions of the launcher. Each is compared with the one committed in guard.json for
 * this version of Node; one that is worse by more than 15 % three times in a row fails. `npm run bench -- guard --write`
 * commits new ones.
 */
import { execFile, type ExecFileOptions } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import {
  createScriptedModel,
  serveModel,
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
} from "callgate/testing";
import type { BenchRow } from "./measure.ts";

/** Nothing comes on its input: the command would wait for it. */
function execute(program: string, args: readonly string[], options: ExecFileOptions = {}): Promise<{ stdout: string }> {
  const running = promisify(execFile)(program, args, { ...options, encoding: "utf8", maxBuffer: 2 ** 26 });
  running.child.stdin?.end();
  return running;
}

const committedFile = "bench/guard.json";
const dist = join(process.cwd(), "dist");
const launcher = join(process.cwd(), "native/build/callgate-launcher");
const tries = 3;
const allowed = 1.15;
const major = process.versions.node.split(".")[0]!;

type Counts = Record<string, number>;

export async function run(): Promise<readonly BenchRow[]> {
  // As written below, by this file.
  const all = (existsSync(committedFile) ? JSON.parse(readFileSync(committedFile, "utf8")) : {}) as Record<
    string,
    Counts
  >;
  const committed: Counts = process.argv.includes("--write") ? {} : (all[major] ?? {});
  const home = mkdtempSync(join(tmpdir(), "callgate-guard-"));
  try {
    const rows: BenchRow[] = [];
    for (const [name, { unit, count }] of Object.entries(await measures(home))) {
      const value = await leastOf(count, committed[name]);
      const before = committed[name];
      rows.push({
        name,
        value,
        unit,
        ...(before === undefined ? {} : { ratio: value / before, baseline: "committed", aim: `≤ ${allowed}` }),
      });
    }
    if (process.argv.includes("--write")) {
      all[major] = Object.fromEntries(rows.map(({ name, value }) => [name, Math.round(value)]));
      writeFileSync(committedFile, `${JSON.stringify(all, null, 2)}\n`);
    }
    const worse = rows.filter(({ ratio = 0 }) => ratio > allowed);
    if (worse.length > 0) {
      process.exitCode = 1;
      console.error(`dearer than committed: ${worse.map(({ name }) => name).join(", ")}`);
    }
    return rows;
  } finally {
    // The launcher's last forks may still write.
    rmSync(home, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
}

/** The least of several tries, and only as many as it takes to be good enough. */
async function leastOf(count: () => Promise<number>, committed: number | undefined): Promise<number> {
  let least = Infinity;
  for (let attempt = 0; attempt < tries && least > (committed ?? Infinity) * allowed; attempt++)
    least = Math.min(least, await count());
  return least === Infinity ? count() : least;
}

interface Measure {
  readonly unit: string;
  readonly count: () => Promise<number>;
}

async function measures(home: string): Promise<Readonly<Record<string, Measure>>> {
  const start = (field: keyof StartCounts, args: readonly string[]) => async () =>
    (await startCounts(home, args, field === "allocated"))[field] / (field === "modules" ? 1 : 1024);
  const exec = ["exec", "--json", "--ephemeral"];
  const found: Record<string, Measure> = {
    "start, tools: built-in modules": { unit: "", count: start("modules", ["tools"]) },
    "start, tools: code read, compiled and as text": { unit: "KB", count: start("bytes", ["tools"]) },
    "start, one turn: built-in modules": { unit: "", count: start("modules", exec) },
    "start, one turn: code read, compiled and as text": { unit: "KB", count: start("bytes", exec) },
    "start, one turn: allocated": { unit: "KB", count: start("allocated", exec) },
    "line: allocated by one call": { unit: "bytes", count: () => allocated("line") },
    "read: allocated by one call": { unit: "bytes", count: () => allocated("read") },
    "decide: allocated by one line": { unit: "bytes", count: () => allocated("decide") },
    "decode: allocated by a 20 KB answer": { unit: "bytes", count: () => allocated("decode") },
  };
  if (await isThere("strace", ["-V"], "shell, read, patch")) {
    found["shell: system calls on files and processes"] = { unit: "", count: () => systemCalls(home, shellCall) };
    found["read: system calls on files and processes"] = { unit: "", count: () => systemCalls(home, readCall) };
    found["patch: system calls on files and processes"] = { unit: "", count: () => systemCalls(home, patchCall) };
  }
  if (existsSync(launcher) && (await isThere("valgrind", ["--version"], "launcher")))
    found["launcher: instructions for a command"] = { unit: "", count: () => launcherInstructions(home) };
  return found;
}

/** What is not there is said; all else is measured. */
async function isThere(program: string, args: readonly string[], measuredWithIt: string): Promise<boolean> {
  try {
    await execute(program, args);
    return true;
  } catch {
    console.error(`not measured, because there is no ${program}: ${measuredWithIt}`);
    return false;
  }
}

/** Of the launcher's own process for one command: what ten more make more. */
async function launcherInstructions(home: string): Promise<number> {
  const few = await instructionsOf(home, 2);
  return ((await instructionsOf(home, 12)) - few) / 10;
}

async function instructionsOf(home: string, count: number): Promise<number> {
  const folder = mkdtempSync(join(home, "callgrind-"));
  const counted = join(folder, "launcher");
  // It is started with nothing in its environment, so programs are named by their paths.
  const valgrind = (await execute("/bin/sh", ["-c", "command -v valgrind"])).stdout.trim();
  const words = [valgrind, "--tool=callgrind", `--callgrind-out-file=${folder}/out.%p`, launcher];
  writeFileSync(counted, `#!/bin/sh\nexec ${words.join(" ")} "$@" 2>/dev/null\n`, { mode: 0o755 });
  await execute(process.execPath, ["bench/guard-launcher.mjs", dist, counted, String(count)]);
  // Its forks write one each. They end earlier, so its own is the largest.
  const sums = readdirSync(folder)
    .filter((name) => name.startsWith("out."))
    .map((name) => Number(/^summary: (\d+)/m.exec(readFileSync(join(folder, name), "utf8"))?.[1] ?? 0));
  return Math.max(...sums);
}

/** For everything that is allocated, so that nothing is collected. */
const room = ["--min-semi-space-size=256", "--max-semi-space-size=256"];

async function allocated(what: string): Promise<number> {
  const { stdout } = await execute(process.execPath, ["--expose-gc", ...room, "bench/guard-child.mjs", what, dist]);
  return Number(stdout);
}

/** What guard-count.cjs writes. */
interface StartCounts {
  readonly bytes: number;
  readonly modules: number;
  readonly allocated: number;
}

async function startCounts(home: string, args: readonly string[], withRoom: boolean): Promise<StartCounts> {
  const report = join(home, "report.json");
  const own = ownCopy(join(home, withRoom ? "start-with-room" : "start"));
  const env = { CALLGATE_GUARD: JSON.stringify({ dist: own, report }) };
  // Twice: the first run may be the one that compiles.
  for (let round = 0; round < 2; round++)
    await withModel([{ text: "done" }], async (model) => {
      const more = args[0] === "exec" ? [...model, "hi"] : [];
      const counted = [...(withRoom ? room : []), "--require", "./bench/guard-count.cjs"];
      await execute(process.execPath, [...counted, join(own, "cli.cjs"), ...args, ...more], {
        env: { ...process.env, ...env, CALLGATE_HOME: home },
      });
    });
  // What guard-count.cjs wrote.
  return JSON.parse(readFileSync(report, "utf8")) as StartCounts;
}

/**
 * Without the code that was kept until now, which depends on what was run; and what is kept under other flags of V8 is not
 * left to others.
 */
function ownCopy(folder: string): string {
  const copy = join(folder, "dist");
  if (existsSync(copy)) return copy;
  cpSync(dist, copy, { recursive: true, filter: (path) => path !== join(dist, "compiled") });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  return copy;
}

type Call = (index: number) => ScriptedCall;
const shellCall: Call = (index) => ({ name: "shell_command", input: { command: `true ${index}` } });
const readCall: Call = (index) => ({ name: "read_file", input: { file_path: `${index}.txt` } });
const patchCall: Call = (index) => ({
  name: "apply_patch",
  kind: "custom",
  arguments: `*** Begin Patch\n*** Update File: a.txt\n@@\n-counter = ${index}\n+counter = ${index + 1}\n*** End Patch\n`,
});

/** Of one call: what ten more make more. */
async function systemCalls(home: string, call: Call): Promise<number> {
  const few = await systemCallsOf(home, call, 2);
  return ((await systemCallsOf(home, call, 12)) - few) / 10;
}

async function systemCallsOf(home: string, call: Call, count: number): Promise<number> {
  const workspace = mkdtempSync(join(home, "workspace-"));
  writeFileSync(join(workspace, "a.txt"), "counter = 0\n");
  // Always as many, so that a snapshot of the workspace costs the same. Never the same one twice: that is taken for a loop.
  for (let index = 0; index < 12; index++) writeFileSync(join(workspace, `${index}.txt`), "text\n");
  const summary = join(home, "strace.txt");
  const turns = Array.from({ length: count }, (_, index): ScriptedAnswer => ({ calls: [call(index)] }));
  await withModel([...turns, { text: "done" }], async (model) => {
    const command = [
      process.execPath,
      join(dist, "cli.cjs"),
      "exec",
      "--json",
      "--ephemeral",
      "--sandbox",
      "full-access",
    ];
    // Of our own process: what the command and its keeper do depends on how long they take.
    const traced = ["-c", "-e", "trace=%file,%process", "-o", summary];
    await execute("strace", [...traced, ...command, "--approval", "never", ...model, "hi"], {
      cwd: workspace,
      env: { ...process.env, CALLGATE_HOME: home },
    });
  });
  // Share, seconds, microseconds a call, calls, perhaps errors, "total".
  const total = readFileSync(summary, "utf8").trim().split("\n").at(-1)!.trim().split(/\s+/);
  return Number(total[3]);
}

/** While a model thinks, what commands need is made ready. That is to be over when the first call comes, in each run. */
function slowAtFirst(model: ScriptedModel): ScriptedModel {
  let asked = false;
  return {
    ...model,
    async *ask(...request) {
      if (!asked) await setTimeout(500);
      asked = true;
      yield* model.ask(...request);
    },
  };
}

async function withModel(
  turns: readonly ScriptedAnswer[],
  use: (flags: readonly string[]) => Promise<void>,
): Promise<void> {
  const server = await serveModel(slowAtFirst(createScriptedModel(turns)));
  try {
    await use(["--base-url", server.baseUrl, "--wire", "responses", "--model", "m"]);
  } finally {
    await server.close();
  }
}
