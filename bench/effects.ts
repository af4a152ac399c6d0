/**
 * What holding costs, as ratios of one run: a short command warm, with and without; birth in a large and in a
 * small workspace; list, keep and undo of many new files, and of one change among many. Interleaved, because
 * the machine is never quiet.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { launcherPath } from "../src/runtime/process/launcher-path.ts";
import { runToEnd } from "../src/runtime/process/run.ts";
import type { HeldRun } from "../src/runtime/process/child.ts";
import { createProcesses } from "../src/runtime/processes.ts";
import { createSandbox } from "../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../src/spec/access.ts";
import { median, type BenchRow } from "./measure.ts";

const rounds = 40;

export async function run(): Promise<readonly BenchRow[]> {
  const base = realpathSync(mkdtempSync("/var/tmp/callgate-bench-"));
  const small = fill(join(base, "small"), 100);
  const large = fill(join(base, "large"), Number(process.env["BENCH_FILES"] ?? 200_000));
  const sandbox = createSandbox({ machine: { stateDir: join(base, "home") } });
  const processes = createProcesses();
  const signal = new AbortController().signal;

  async function once(cwd: string, line: string, writes: "direct" | "held"): Promise<{ ms: number; run?: HeldRun }> {
    const grant: Grant = {
      policy: "workspace-write",
      confined: true,
      write: [cwd],
      protect: [],
      mask: [],
      network: "off",
      writes,
    };
    const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin" };
    const confined = await sandbox.confine({ argv: ["sh", "-c", line], cwd, env, grant }, { apart: true });
    const start = performance.now();
    const end = await runToEnd(processes.spawner, confined, { maxOutputBytes: 4096, onOutput: undefined, signal });
    const ms = performance.now() - start;
    await confined.cleanup(end);
    return confined.run === undefined ? { ms } : { ms, run: confined.run };
  }

  const direct: number[] = [];
  const heldSmall: number[] = [];
  const heldLarge: number[] = [];
  for (let round = 0; round < rounds; round++) {
    direct.push((await once(small, "true", "direct")).ms);
    const one = await once(small, "true", "held");
    const other = await once(large, "true", "held");
    heldSmall.push(one.ms);
    heldLarge.push(other.ms);
    for (const { run: done } of [one, other]) held("drop", done!);
  }
  const rows: BenchRow[] = [
    { name: "true, warm sandbox", value: median(direct), unit: "ms" },
    compare("true, warm and held", heldSmall, direct, "warm", "≤ 1.15"),
    compare("true, held over the large workspace", heldLarge, heldSmall, "100 files", "≤ 1.2"),
  ];
  const many = await once(small, "mkdir new; cd new; seq 12000 | xargs touch", "held");
  rows.push(...settle("12,000 new files", many.run!, small, ["≤ 100 ms together", "≤ 50 ms"]));
  const single = await once(large, "echo changed > f1", "held");
  rows.push(...settle("one change in the large workspace", single.run!, large, ["≤ 10 ms together", ""]));
  await processes.close();
  await sandbox.close();
  rmSync(base, { recursive: true, force: true });
  return rows;
}

function compare(
  name: string,
  values: readonly number[],
  to: readonly number[],
  baseline: string,
  aim: string,
): BenchRow {
  return { name, value: median(values), unit: "ms", baseline, ratio: median(values) / median(to), aim };
}

function settle(name: string, done: HeldRun, root: string, aims: readonly [string, string]): readonly BenchRow[] {
  const [list, keep, undo] = [held("list", done, root), held("keep", done), held("undo", done)];
  held("drop", done);
  return [
    { name: `${name}: list`, value: list, unit: "ms", aim: aims[0] },
    { name: `${name}: keep`, value: keep, unit: "ms", aim: aims[0] },
    { name: `${name}: undo`, value: undo, unit: "ms", aim: aims[1] },
  ];
}

/** One call of the launcher, its start included. */
function held(verb: string, { folder }: HeldRun, ...words: readonly string[]): number {
  const start = performance.now();
  const { status } = spawnSync(launcherPath()!, ["held", verb, folder, ...words], { input: "all", maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(`held ${verb} failed`);
  return performance.now() - start;
}

function fill(folder: string, count: number): string {
  mkdirSync(folder);
  for (let at = 0; at < count; at++) {
    if (at % 1000 === 0) mkdirSync(join(folder, `d${at / 1000}`));
    writeFileSync(join(folder, at < 10 ? "" : `d${Math.floor(at / 1000)}`, `f${at}`), "x\n");
  }
  return folder;
}
