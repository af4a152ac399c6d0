/** What it costs to start the command, against bare node: interleaved, wall and CPU. */
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createScriptedModel, serveModel } from "callgate/testing";
import { median, type BenchRow } from "./measure.ts";

const rounds = 15;

export async function run(): Promise<readonly BenchRow[]> {
  const home = mkdtempSync(join(tmpdir(), "callgate-start-"));
  // Reading a file of certificates costs every Node process more than all of its own start.
  const { NODE_EXTRA_CA_CERTS: _, ...rest } = process.env;
  const env = { ...rest, CALLGATE_HOME: home };
  const commands: Readonly<Record<string, readonly string[]>> = {
    "node -e 0": ["-e", "0"],
    "callgate --version": ["dist/cli.cjs", "--version"],
    "callgate tools": ["dist/cli.cjs", "tools"],
    "callgate policy check": ["dist/cli.cjs", "policy", "check", "--shell", "git status"],
  };
  const times = new Map<string, number[]>(Object.keys(commands).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const [name, args] of Object.entries(commands)) {
      const start = performance.now();
      spawnSync(process.execPath, [...args], { env, stdio: "ignore" });
      times.get(name)!.push(performance.now() - start);
    }
  }
  const bare = median(times.get("node -e 0")!);
  const rows = Object.keys(commands).map((name): BenchRow => {
    const value = median(times.get(name)!);
    const aim = { "callgate --version": "≤ 1.5", "callgate tools": "≤ 2.5" }[name];
    return {
      name,
      value,
      unit: "ms",
      ratio: value / bare,
      baseline: "bare node",
      ...(aim === undefined ? {} : { aim }),
    };
  });
  return [...rows, await firstRequest(env, bare)];
}

/** From the start of `exec` to its first model request, seen by the server. */
async function firstRequest(env: NodeJS.ProcessEnv, bare: number): Promise<BenchRow> {
  const { spawn } = await import("node:child_process");
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    let arrived = 0;
    const server = await serveModel(createScriptedModel([{ text: "done" }]), {
      onRequest: () => (arrived = performance.now()),
    });
    const start = performance.now();
    const args = [
      "dist/cli.cjs",
      "exec",
      "--json",
      "--ephemeral",
      "--base-url",
      server.baseUrl,
      "--wire",
      "responses",
      "--model",
      "m",
      "hi",
    ];
    await new Promise((resolve) => spawn(process.execPath, args, { env, stdio: "ignore" }).on("close", resolve));
    times.push(arrived - start);
    await server.close();
  }
  const value = median(times);
  return {
    name: "callgate exec, to the first model request",
    value,
    unit: "ms",
    ratio: value / bare,
    baseline: "bare node",
  };
}
