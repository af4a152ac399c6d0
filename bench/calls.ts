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
const count = 40;
/** The first calls load what they need, and are told apart. */
const first = 5;
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
  const home = join(root, "home");
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
  try {
    for (let round = -1; round < rounds; round++) {
      for (const [name, toArgs] of Object.entries(peers)) {
        const seen = await runOnce(kind, makeWorkspace(root), home, toArgs);
        if (round >= 0) gaps.get(name)!.push(kind === "edit" ? seen.slice(1) : seen); // the one before is to warm up
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
      { name: "… its first call, over the later ones", value: firstCall - value, unit: "ms" },
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

async function runOnce(
  kind: Kind,
  folder: string,
  home: string,
  toArgs: (url: string) => readonly string[],
): Promise<number[]> {
  const server = fork("bench/calls-server.mjs", [kind, `${count}`, folder]);
  const port = await new Promise<number>((resolve) => server.once("message", resolve));
  const [script, ...rest] = toArgs(`http://127.0.0.1:${port}/v1`);
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  const code = await new Promise((resolve) =>
    spawn(process.execPath, [join(process.cwd(), script!), ...rest], {
      cwd: folder,
      env: { ...env, CALLGATE_HOME: home },
      stdio: ["ignore", "ignore", "inherit"],
    }).on("close", resolve),
  );
  if (code !== 0) throw new Error(`${script} ended with ${String(code)}`);
  const gaps = new Promise<unknown>((resolve) => server.once("message", resolve));
  server.send("done");
  return (await gaps) as number[]; // as calls-server.mjs sends them
}
