/** The file tools through the whole line, against the programs people would use instead. */
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, type Engine } from "callgate";
import { builtins } from "callgate/tools";
import { median, perOperation, type BenchRow } from "./measure.ts";

export async function run(): Promise<readonly BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), "callgate-bench-"));
  const engine = createEngine({ workspace: root, tools: builtins, approval: "never", sandbox: "workspace-write" });
  try {
    return [
      ...(await smallReads(root, engine)),
      ...(await largeReads(root, engine)),
      ...(await searches(root, engine)),
      ...(await patches(root)),
    ];
  } finally {
    await engine.close();
    rmSync(root, { recursive: true, force: true });
  }
}

async function use(engine: Engine, name: string, input: Parameters<Engine["call"]>[1]): Promise<void> {
  const ended = await engine.call(name, input);
  if (!ended.ok) throw new Error(`${name}: ${JSON.stringify(ended.content).slice(0, 500)}`);
}

async function smallReads(root: string, engine: Engine): Promise<readonly BenchRow[]> {
  const path = join(root, "small.ts");
  writeFileSync(path, Array.from({ length: 100 }, (_, index) => `const line${index} = ${index};\n`).join(""));
  const read = () => use(engine, "read_file", { file_path: "small.ts" });
  await perOperation(2_000, 1, read);
  const bare = await perOperation(2_000, 5, () => readFile(path, "utf8"));
  const tool = await perOperation(2_000, 5, read);
  return [
    { name: "fs.readFile, 100 lines", value: bare, unit: "µs" },
    {
      name: "read_file, 100 lines, whole line",
      value: tool,
      unit: "µs",
      ratio: tool / bare,
      baseline: "fs.readFile",
      aim: "≤ 2",
    },
  ];
}

async function largeReads(root: string, engine: Engine): Promise<readonly BenchRow[]> {
  const block = Array.from(
    { length: 20_000 },
    (_, index) => `line ${index} with some words in it, as in a log file\n`,
  ).join("");
  const rows: BenchRow[] = [];
  const path = join(root, "large.log");
  let last: number | undefined;
  for (const megabytes of [10, 100, 1_000]) {
    const lines = grow(path, block, megabytes);
    const middle = await timed(3, () =>
      use(engine, "read_file", { file_path: path, offset: Math.floor(lines / 2), limit: 50 }),
    );
    rows.push({
      name: `read_file, 50 lines in the middle of ${megabytes} MB, by number`,
      value: middle,
      unit: "ms",
      ...(last === undefined ? {} : { ratio: middle / last, baseline: "a tenth of the size", aim: "≤ 11 (linear)" }),
    });
    last = middle;
  }
  const tail = await timed(9, () => execFileSync("tail", ["-n", "50", path]));
  const end = await timed(9, () => use(engine, "read_file", { file_path: path, offset: -50 }));
  rmSync(path);
  return [
    ...rows,
    { name: "tail -n 50 of 1 GB", value: tail, unit: "ms" },
    {
      name: "read_file, last 50 lines of 1 GB",
      value: end,
      unit: "ms",
      ratio: end / tail,
      baseline: "tail",
      aim: "≤ 1",
    },
  ];
}

/** Makes the file as large as asked; returns how many lines it has. */
function grow(path: string, block: string, megabytes: number): number {
  const bytes = Buffer.from(block);
  const times = Math.ceil((megabytes * 1e6) / bytes.length);
  const fd = openSync(path, "w");
  for (let index = 0; index < times; index++) writeSync(fd, bytes);
  closeSync(fd);
  return times * 20_000;
}

async function searches(root: string, engine: Engine): Promise<readonly BenchRow[]> {
  const tree = join(root, "tree");
  for (let index = 0; index < 3_000; index++) {
    const folder = join(tree, `d${index % 60}`);
    mkdirSync(folder, { recursive: true });
    const words = Array.from(
      { length: 250 },
      (_, line) => `export const value_${index}_${line} = compute(${line});\n`,
    ).join("");
    writeFileSync(join(folder, `f${index}.ts`), words + (index % 100 === 0 ? "// the needle is here\n" : ""));
  }
  const reference = hasProgram("rg") ? "rg" : "grep";
  const argv = reference === "rg" ? ["-l", "the needle is", tree] : ["-rlE", "the needle is", tree];
  const alone = createEngine({ workspace: root, tools: builtins, approval: "never", service: { ripgrep: false } });
  const grepWith = (own: Engine) => () => use(own, "grep_files", { pattern: "the needle is", path: tree });
  const [program, plain, tool, without] = await inTurns([
    () => execFileSync(reference, argv),
    () => plainSearch(tree, /the needle is/),
    grepWith(engine),
    grepWith(alone),
  ]);
  await alone.close();
  return [
    { name: `${reference}, 3,000 files, 30 MB`, value: program, unit: "ms" },
    {
      name: "plain JS, one thread, synchronous",
      value: plain,
      unit: "ms",
      ratio: plain / program,
      baseline: reference,
    },
    {
      name: `grep_files, whole line${reference === "rg" ? ", which starts rg" : ""}`,
      value: tool,
      unit: "ms",
      ratio: tool / program,
      baseline: reference,
    },
    {
      name: "grep_files, whole line, without ripgrep",
      value: without,
      unit: "ms",
      ratio: without / program,
      baseline: reference,
      aim: "≤ 1.5",
    },
  ];
}

function hasProgram(name: string): boolean {
  try {
    execFileSync(name, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    // Not installed: the comparison is made with grep.
    return false;
  }
}

function plainSearch(folder: string, pattern: RegExp): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && pattern.test(readFileSync(join(entry.parentPath, entry.name), "latin1")),
  ).length;
}

/** Five changes in each of a hundred files, applied to fresh copies. */
async function patches(root: string): Promise<readonly BenchRow[]> {
  const origin = join(root, "origin");
  mkdirSync(origin);
  const own: string[] = ["*** Begin Patch"];
  const unified = join(root, "changes.diff");
  for (let file = 0; file < 100; file++) {
    const lines = Array.from({ length: 500 }, (_, line) => `line ${line} of file ${file}`);
    writeFileSync(join(origin, `f${file}.txt`), `${lines.join("\n")}\n`);
    own.push(`*** Update File: f${file}.txt`);
    appendFileSync(unified, `--- a/f${file}.txt\n+++ b/f${file}.txt\n`);
    for (const at of [50, 150, 250, 350, 450]) {
      const body = [` ${lines[at - 1]}`, `-${lines[at]}`, `+changed ${at}`, ` ${lines[at + 1]}`];
      own.push("@@", ...body);
      appendFileSync(unified, `@@ -${at},3 +${at},3 @@\n${body.join("\n")}\n`);
    }
  }
  const text = [...own, "*** End Patch"].join("\n");
  const [git, gnu, bare, ours] = await inTurns(
    [
      (dir) => execFileSync("git", ["apply", unified], { cwd: dir }),
      (dir) => execFileSync("patch", ["-s", "-p1", "-i", unified], { cwd: dir }),
      // What nobody who replaces files as a whole can do without.
      (dir) => {
        for (let file = 0; file < 100; file++) {
          const path = join(dir, `f${file}.txt`);
          writeFileSync(`${path}.new`, readFileSync(path));
          renameSync(`${path}.new`, path);
        }
      },
      async (dir) => {
        const engine = createEngine({ workspace: dir, tools: builtins, approval: "never" });
        await use(engine, "apply_patch", text);
        await engine.close();
      },
    ],
    () => {
      const dir = mkdtempSync(join(root, "copy-"));
      cpSync(origin, dir, { recursive: true });
      return dir;
    },
  );
  return [
    { name: "git apply, 500 hunks over 100 files", value: git, unit: "ms" },
    { name: "patch, the same", value: gnu, unit: "ms", ratio: gnu / git, baseline: "git apply" },
    {
      name: "bare Node: read, write beside, rename over, the same files",
      value: bare,
      unit: "ms",
      ratio: bare / git,
      baseline: "git apply",
    },
    {
      name: "apply_patch, whole line, all or none",
      value: ours,
      unit: "ms",
      ratio: ours / git,
      baseline: "git apply",
      aim: "≤ 1.5",
    },
  ];
}

/**
 * Median milliseconds of each way. They take turns, because a disk that still writes what was made before is slow for
 * whoever comes next. The first round only warms up.
 */
async function inTurns<const T extends readonly ((dir: string) => unknown)[]>(
  ways: T,
  prepare = () => "",
): Promise<{ readonly [K in keyof T]: number }> {
  const times = ways.map((): number[] => []);
  for (let round = 0; round < 10; round++)
    for (const [index, way] of ways.entries()) {
      const dir = prepare();
      const taken = await timed(1, () => way(dir));
      if (round > 0) times[index]!.push(taken);
    }
  // One number for each way, in their order.
  return times.map(median) as { readonly [K in keyof T]: number };
}

/** Median of several runs, in milliseconds. */
async function timed(rounds: number, body: () => unknown): Promise<number> {
  return (await perOperation(1, rounds, body)) / 1_000;
}
