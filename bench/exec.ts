/**
 * What one short command costs, from the request to its result: bare spawn, each backend cold, ready
 * sandboxes through the launcher, and the sandboxes of two peers where they are installed; with a small
 * Node and with one that holds a gigabyte. Interleaved rounds, because the machine is never quiet.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createExec } from "../src/runtime/exec.ts";
import { createProcesses } from "../src/runtime/processes.ts";
import { createSandbox } from "../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../src/spec/access.ts";
import type { Exec } from "../src/spec/capability.ts";
import { openPeers } from "./exec-peers.ts";
import { median, percentile, type BenchRow } from "./measure.ts";

const argv = ["bash", "-c", "true"];
const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin" };

export interface Way {
  readonly name: string;
  readonly aim?: string;
  readonly run: () => Promise<unknown>;
}

export async function run(): Promise<readonly BenchRow[]> {
  // Not the temp folder: peers leave that writable, and codex refuses to live there.
  const cwd = realpathSync(mkdtempSync("/var/tmp/callgate-bench-"));
  const { ways, flood, close } = openWays(cwd);
  const peers = await openPeers(cwd, argv);
  const rows = [...(await race([...ways, ...peers.ways], 120, "")), ...(await floods(cwd, flood))];
  const ballast = Array.from({ length: 16 }, () => Buffer.alloc(64 << 20, 1)); // touched, so that its pages are there
  const heavy = ways.filter(({ name }) => /bare|launcher/.test(name));
  rows.push(...(await race(heavy, 40, ", Node holding 1 GB")));
  ballast.length = 0;
  await Promise.all([close(), peers.close()]);
  rmSync(cwd, { recursive: true, force: true });
  return rows;
}

function openWays(cwd: string) {
  const open: Grant = { policy: "full-access", confined: false, write: ["/"], protect: [], mask: [], network: "on" };
  const confined: Grant = { ...open, policy: "workspace-write", confined: true, write: [cwd], network: "off" };
  const signal = new AbortController().signal;
  const launched = createProcesses();
  const plain = createProcesses({ launcher: "off" });
  const bubble = createSandbox();
  const landlock = createSandbox({ only: "landlock" });
  const execOf = (processes: typeof plain, grant: Grant, sandbox?: typeof bubble): Exec =>
    createExec({ processes, grant, cwd, env, signal, ...(sandbox ? { sandbox } : {}) });
  const bare = execOf(launched, open);
  const ways: readonly Way[] = [
    { name: "bare child_process.spawn", run: () => bareSpawn(cwd) },
    { name: "our plain spawn", run: () => execOf(plain, open).run({ argv }) },
    { name: "launcher, no sandbox", run: () => bare.run({ argv }) },
    {
      name: "launcher, fresh ready sandbox",
      aim: "≤ 1.2",
      run: () => execOf(launched, confined, bubble).run({ argv }),
    },
    {
      name: "launcher, Landlock + seccomp",
      aim: "≤ 1.6",
      run: () => execOf(launched, confined, landlock).run({ argv }),
    },
    { name: "bubblewrap, cold", aim: "≤ 6", run: () => execOf(plain, confined, bubble).run({ argv }) },
  ];
  const close = async () => {
    await Promise.all([launched.close(), plain.close(), bubble.close(), landlock.close()]);
  };
  return { ways, flood: bare, close };
}

function bareSpawn(cwd: string): Promise<unknown> {
  const [program = "", ...args] = argv;
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.resume();
    child.stderr.resume();
    child.once("close", resolve);
  });
}

/** All ways in turn, again and again; between two calls as long as a quick model would need. */
async function race(ways: readonly Way[], rounds: number, where: string): Promise<BenchRow[]> {
  const times = new Map(ways.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const { name, run: once } of ways) {
      const start = performance.now();
      await once();
      times.get(name)?.push(performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }
  const base = times.get(ways[0]!.name)!;
  return ways.map(({ name, aim }, index) => {
    const own = times.get(name)!;
    const quick = percentile(own, 0.1);
    const goal = where === "" ? aim : name.startsWith("launcher, fresh") ? "≤ 0.1" : undefined;
    const quickRatio = index === 0 ? "" : `, ${(quick / percentile(base, 0.1)).toFixed(2)} ×`;
    return {
      name: `${name}${where} (p10 ${quick.toFixed(1)} ms${quickRatio})`,
      value: median(own),
      unit: "ms",
      ...(index === 0 ? {} : { ratio: median(own) / median(base), baseline: "bare spawn" }),
      ...(goal ? { aim: goal } : {}),
    };
  });
}

const line = "yes 0123456789012345678901234567890123456789 | head -c";

/** What the pipe alone costs and what ours costs, for 200 MB; and whether 1.5 GB stays out of our memory. */
async function floods(cwd: string, exec: Exec): Promise<BenchRow[]> {
  const bare: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < 7; round++) {
    const start = performance.now();
    await new Promise((resolve) =>
      spawn("sh", ["-c", `${line} 200000000 | cat > /dev/null`], { cwd, env }).once("close", resolve),
    );
    const between = performance.now();
    await exec.run({ argv: ["sh", "-c", `${line} 200000000`] });
    bare.push(between - start);
    ours.push(performance.now() - between);
  }
  const before = process.memoryUsage().rss;
  const { stdout } = await exec.run({ argv: ["sh", "-c", `${line} 1500000000`] });
  if (stdout.totalBytes !== 1_500_000_000) throw new Error(`the flood was ${stdout.totalBytes} bytes`);
  const grown = (process.memoryUsage().rss - before) / 1e6;
  const ratio = median(ours) / median(bare);
  return [
    { name: "200 MB drained by cat", value: median(bare), unit: "ms" },
    { name: "200 MB through us", value: median(ours), unit: "ms", ratio, baseline: "cat", aim: "≤ 1.4" },
    { name: "memory grown by a flood of 1.5 GB", value: grown, unit: "MB", aim: "≤ 40" },
  ];
}
