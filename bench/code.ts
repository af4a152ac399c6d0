/** Code mode: what a script with a hundred inner calls costs, against the start of one bare Node and of one confined. */
import { spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { createEngine, defineTool } from "../src/index.ts";
import { addCodeMode } from "../src/tools/index.ts";
import { median, type BenchRow } from "./measure.ts";

const rounds = 15;

export async function run(): Promise<readonly BenchRow[]> {
  const workspace = realpathSync(mkdtempSync("/var/tmp/callgate-bench-"));
  const number = { type: "number" } as const;
  const add = defineTool({
    name: "add",
    description: "Adds.",
    input: { type: "object", properties: { a: number, b: number }, required: ["a", "b"] },
    mutates: false,
    run: ({ a, b }) => a + b,
  });
  const engine = createEngine({ tools: [add], workspace });
  addCodeMode(engine.registry);
  const script = async (code: string) => {
    const { ok, text } = await engine.call("run_code", code);
    if (!ok) throw new Error(text);
  };
  const ways = {
    "node -e 0, bare spawn": () => bareNode(workspace),
    "a script without calls": () => script("return 0"),
    "a script with 100 calls, one after the other": () =>
      script("let s = 0; for (let i = 0; i < 100; i++) s = Number(await tools.add({ a: s, b: i })); return s"),
    "a script with 100 calls at once": () =>
      script("return (await Promise.all(Array.from({ length: 100 }, (_, b) => tools.add({ a: 1, b })))).length"),
  };
  const times = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]));
  // Interleaved, because the machine is never quiet; the first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const [name, way] of Object.entries(ways)) {
      const start = performance.now();
      await way();
      if (round > 0) times.get(name)!.push(performance.now() - start);
    }
  }
  await engine.close();
  rmSync(workspace, { recursive: true, force: true });
  const [bare = Number.NaN] = [...times.values()].map(median);
  return [...times].map(([name, all], index) => ({
    name,
    value: median(all),
    unit: "ms",
    ...(index === 0 ? {} : { baseline: "bare node", ratio: median(all) / bare }),
    ...(name.includes("100") ? { aim: "≤ 3" } : {}),
  }));
}

function bareNode(cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["-e", "0"], { cwd, stdio: "ignore" });
    child.once("error", reject);
    child.once("exit", () => resolve());
  });
}
