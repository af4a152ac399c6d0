/**
 * What a call takes from the end of the answer that holds it to the next request, in a process that has just started:
 * a bare loop, the same loop with the least that governs a call (bench/calls-loop.mjs), and the command.
 */
import { fork, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median, type BenchRow } from "./measure.ts";

const rounds = 6;
/** Calls of one run. The first ones load what they need, and are told apart. */
const [count, first] = [40, 5];
/** A model that takes as long as a quick one does, and how many calls show what a first one costs then. */
const [thinkingMs, thinkingCalls] = [150, 8];
const kinds = ["read", "edit", "shell"] as const;
const aims = { read: "≤ 1.5", edit: "≤ 1.6", shell: "≤ 1.2" } as const;

type Kind = (typeof kinds)[number];

export async function run(): Promise<readonly BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const kind of kinds) rows.push(...(await compare(kind)));
  return rows;
}

async function compare(kind: Kind): Promise<readonly BenchRow[]> {
  const root = mkdtempSync(join(tmpdir(), "callgate-calls-"));
  const words = "exec --json --wire chat --model m --approval never";
  const command = (sandbox: string) => (url: string) =>
    `dist/cli.cjs ${words} --sandbox ${sandbox} --base-url ${url} go`.split(" ");
  const peers: Readonly<Record<string, (url: string) => readonly string[]>> = {
    bare: (url) => ["bench/calls-loop.mjs", url, "bare"],
    governed: (url) => ["bench/calls-loop.mjs", url, "governed"],
    callgate: command("full-access"),
    "callgate in its sandbox": command("workspace-write"),
  };
  const gaps = new Map(Object.keys(peers).map((name) => [name, [] as number[][]]));
  const extra = new Map(Object.keys(peers).map((name) => [name, [] as number[]]));
  try {
    for (let round = -1; round < rounds; round++) {
      for (const [name, toArgs] of Object.entries(peers)) {
        const run = (calls: number, delayMs: number) => runOnce({ kind, root, toArgs, calls, delayMs });
        const seen = await run(count, 0);
        const [slow = Number.NaN, ...later] = name.startsWith("callgate") ? await run(thinkingCalls, thinkingMs) : [];
        if (round < 0) continue; // to warm up
        gaps.get(name)!.push(seen);
        extra.get(name)!.push(slow - median(later.slice(2)));
      }
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  const later = (name: string) => median(gaps.get(name)!.flatMap((one) => one.slice(first)));
  const bare = later("bare");
  return Object.keys(peers).flatMap((name): readonly BenchRow[] => {
    const value = later(name);
    const aim = name.startsWith("callgate") ? { aim: aims[kind] } : {};
    const row = { name: `${kind}, ${name}`, value, unit: "ms" };
    const compared = name === "bare" ? row : { ...row, ratio: value / bare, baseline: "bare", ...aim };
    if (!name.startsWith("callgate")) return [compared];
    const firstCall = median(gaps.get(name)!.map(([one]) => one!));
    return [
      compared,
      {
        name: "… against the governed loop",
        value: value - later("governed"),
        unit: "ms more",
        ratio: value / later("governed"),
        baseline: "governed",
      },
      {
        name: "… its first call over the later ones, the model answering at once",
        value: firstCall - value,
        unit: "ms",
      },
      {
        name: `… the same, the model taking ${thinkingMs} ms`,
        value: median(extra.get(name)!),
        unit: "ms",
        aim: "≤ 8",
      },
    ];
  });
}

function makeWorkspace(root: string): string {
  const folder = join(root, "workspace");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  const line = (n: number) => `line ${n}: some words that fill it until it is about as long as one of code\n`;
  for (let n = 0; n < 20; n++) {
    writeFileSync(join(folder, `file${n}.txt`), Array.from({ length: 40 }, (_, at) => line(n * 1000 + at)).join(""));
  }
  writeFileSync(join(folder, "edit.txt"), `${line(1).repeat(30)}counter = 0\n${line(2).repeat(30)}`);
  return folder;
}

interface Run {
  readonly kind: Kind;
  readonly root: string;
  readonly toArgs: (url: string) => readonly string[];
  readonly calls: number;
  /** How long the model takes for each answer. */
  readonly delayMs: number;
}

/** How long each call took, in milliseconds. */
async function runOnce({ kind, root, toArgs, calls, delayMs }: Run): Promise<number[]> {
  const folder = makeWorkspace(root);
  const server = fork("bench/calls-server.mjs", [kind, `${calls}`, folder, `${delayMs}`]);
  const port = await new Promise<number>((resolve) => server.once("message", resolve));
  const [script, ...rest] = toArgs(`http://127.0.0.1:${port}/v1`);
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const code = await new Promise((resolve) =>
    spawn(process.execPath, [join(process.cwd(), script!), ...rest], {
      cwd: folder,
      env: { ...env, CALLGATE_HOME: join(root, "home") },
      stdio: ["ignore", "ignore", "inherit"],
    }).on("close", resolve),
  );
  if (code !== 0) throw new Error(`${script} ended with ${String(code)}`);
  const asked = new Promise<unknown>((resolve) => server.once("message", resolve));
  server.send("done");
  const gaps = (await asked) as number[]; // as calls-server.mjs sends them
  return kind === "edit" ? gaps.slice(1) : gaps; // the first one was a read
}
