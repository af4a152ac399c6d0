/**
 * What judging every start of a program costs real work: `make` of fifty files, `npm ci` with install scripts, and the
 * dearest case there is, a loop of nothing but starts. Each with a deny rule and without, in turns, under bubblewrap.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toDeniedProgram } from "../src/gate/command/prefix.ts";
import { compileRules } from "../src/gate/rules.ts";
import { createExec } from "../src/runtime/exec.ts";
import { createProcesses } from "../src/runtime/processes.ts";
import { createSandbox } from "../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../src/spec/access.ts";
import { median, type BenchRow } from "./measure.ts";

const rounds = 7;
const work = [
  { name: "make, 50 C files", line: "make -C c -s clean && make -C c -s", aim: "≤ 1.15" },
  {
    name: "npm ci, 8 packages with install scripts",
    line: "cd npm && npm ci --offline --no-audit --no-fund --loglevel=error",
    aim: "≤ 1.15",
  },
  { name: "300 starts of /bin/true", line: "for i in {1..300}; do /bin/true; done" },
];

export async function run(): Promise<readonly BenchRow[]> {
  const cwd = realpathSync(mkdtempSync("/var/tmp/callgate-judging-"));
  prepare(cwd);
  const rules = compileRules(["git push", "dd"].map((command) => ({ command, decision: "deny" as const })));
  const denied = rules.denials.map((rule) => toDeniedProgram(rule, "/"));
  const grant: Grant = {
    policy: "workspace-write",
    confined: true,
    write: [cwd],
    protect: [],
    mask: [],
    network: "off",
  };
  const [processes, sandbox] = [createProcesses(), createSandbox()];
  const env = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: join(cwd, "home") };
  const once = async (line: string, judged: boolean) => {
    const signal = new AbortController().signal;
    const exec = createExec({ processes, sandbox, grant: judged ? { ...grant, denied } : grant, cwd, env, signal });
    const start = performance.now();
    const { exitCode, output } = await exec.run({ shell: line, login: false, timeoutMs: 120_000 });
    if (exitCode !== 0) throw new Error(`${line}: ${output.head}${output.tail}`);
    return performance.now() - start;
  };
  const rows: BenchRow[] = [];
  for (const { name, line, aim } of work) {
    const times: Record<"free" | "judged", number[]> = { free: [], judged: [] };
    await once(line, false);
    for (let round = 0; round < rounds; round++) {
      times.free.push(await once(line, false));
      times.judged.push(await once(line, true));
    }
    const [free, judged] = [median(times.free), median(times.judged)];
    rows.push({ name: `${name}, no rule`, value: free, unit: "ms" });
    const ratio = judged / free;
    rows.push({
      name: `${name}, starts judged`,
      value: judged,
      unit: "ms",
      ratio,
      baseline: "no rule",
      ...(aim ? { aim } : {}),
    });
  }
  await processes.close();
  await sandbox.close();
  rmSync(cwd, { recursive: true, force: true });
  return rows;
}

function prepare(cwd: string): void {
  const write = (path: string, text: string) => {
    mkdirSync(join(cwd, path, ".."), { recursive: true });
    writeFileSync(join(cwd, path), text);
  };
  write("home/.keep", "");
  const names = Array.from({ length: 50 }, (_, n) => `f${n}`);
  for (const name of names)
    write(`c/${name}.c`, `#include <stdio.h>\nint ${name}(int x) { return printf("%d", x); }\n`);
  write(
    "c/Makefile",
    `all: ${names.map((name) => `${name}.o`).join(" ")}\n%.o: %.c\n\tcc -c -o $@ $<\nclean:\n\trm -f *.o\n`,
  );
  const packages = Array.from({ length: 8 }, (_, n) => `p${n}`);
  for (const name of packages)
    write(
      `npm/packages/${name}/package.json`,
      JSON.stringify({ name, version: "1.0.0", scripts: { install: "node -e 0 && ls > /dev/null" } }),
    );
  const dependencies = Object.fromEntries(packages.map((name) => [name, `file:packages/${name}`]));
  write("npm/package.json", JSON.stringify({ name: "judged", version: "1.0.0", dependencies }));
  execFileSync("npm", ["install", "--package-lock-only", "--offline", "--no-audit", "--loglevel=error"], {
    cwd: join(cwd, "npm"),
  });
}
