/**
 * What holding costs, as ratios of one run: a short command warm, with and without; birth in a large and in a
 * small workspace; list, keep and undo of many new files, and of one change among many; a large npm ci. Interleaved, because
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

  /** Commands one right after the other, so that the birth of each sandbox is waited for. */
  async function inARow(): Promise<BenchRow> {
    const each = { direct: [] as number[], held: [] as number[] };
    for (let round = 0; round < 5; round++)
      for (const writes of ["direct", "held"] as const) {
        const runs: HeldRun[] = [];
        const start = performance.now();
        for (let at = 0; at < 20; at++) {
          const { run: done } = await once(small, "true", writes);
          if (done !== undefined) runs.push(done);
        }
        each[writes].push((performance.now() - start) / 20);
        for (const done of runs) held("drop", done);
      }
    const more = median(each.held) - median(each.direct);
    return { name: "true, twenty in a row: what holding adds to each", value: more, unit: "ms", aim: "≤ 0.5" };
  }

  async function settle(name: string, root: string, line: string, aims: readonly [string, string]) {
    const times = { settled: [] as number[], undone: [] as number[] };
    for (let round = 0; round < 5; round++) {
      const done = (await once(root, line, "held")).run!;
      times.settled.push(held("list", done, root) + held("keep", done));
      times.undone.push(held("undo", done));
      held("drop", done);
    }
    return [
      { name: `${name}: list and keep`, value: median(times.settled), unit: "ms", aim: aims[0] },
      { name: `${name}: undo`, value: median(times.undone), unit: "ms", aim: aims[1] },
    ];
  }

  /** Of a package with 4,000 files that lies beside the project, so that no registry is needed. */
  async function npmCi(): Promise<readonly BenchRow[]> {
    const project = join(base, "project");
    fill(join(base, "big"), 4_000);
    mkdirSync(project);
    writeFileSync(join(base, "big/package.json"), '{"name":"big","version":"1.0.0"}');
    writeFileSync(
      join(project, "package.json"),
      '{"name":"p","version":"1.0.0","dependencies":{"big":"file:big.tgz"}}',
    );
    const sh = (line: string) => spawnSync("sh", ["-c", line], { cwd: project, stdio: "ignore" }).status === 0;
    const quiet = "--offline --no-audit --no-fund --loglevel=error --cache ./.cache";
    if (!sh(`npm pack ../big --silent && mv big-1.0.0.tgz big.tgz && npm install --package-lock-only ${quiet}`))
      return [];
    const times = { direct: [] as number[], held: [] as number[] };
    for (let round = 0; round < 3; round++)
      for (const writes of ["direct", "held"] as const) {
        sh("rm -rf node_modules .cache");
        const { ms, run: done } = await once(project, `HOME=$PWD npm ci ${quiet}`, writes);
        if (done !== undefined) held("drop", done);
        times[writes].push(ms);
      }
    return [
      { name: "npm ci of 4,000 files", value: median(times.direct), unit: "ms" },
      compare("npm ci of 4,000 files, held", times.held, times.direct, "direct", "≤ 1.2"),
    ];
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
  rows.push(await inARow());
  rows.push(
    ...(await settle("12,000 new files", small, "mkdir new; cd new; seq 12000 | xargs touch", ["≤ 100 ms", "≤ 50 ms"])),
  );
  rows.push(...(await settle("one change in the large workspace", large, "echo changed > f1", ["≤ 10 ms", ""])));
  rows.push(...(await npmCi()));
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
