#!/usr/bin/env node
// Builds native/build/callgate-launcher with the C compiler that is here. Everything works without it, slower.
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(`../native/${path}`, import.meta.url));
const parts = [
  "launcher.c",
  "server.c",
  "job.c",
  "request.c",
  "pool.c",
  "sandbox.c",
  "keeper.c",
  "start.c",
  "supervisor.c",
  "starts.c",
  "rules.c",
  "limits.c",
  "tail.c",
  "overlay.c",
  "tree.c",
  "effects.c",
  "steps.c",
  "settle.c",
];
const warnings = ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow"];

/** Undefined once it is built; else the reason why not, in words. */
export function buildLauncher({ compiler = process.env.CC ?? "cc", out = at("build/callgate-launcher") } = {}) {
  if (process.platform !== "linux") return "the launcher is for Linux only: it was not built";
  mkdirSync(at("build"), { recursive: true });
  // Under another name first: a launcher that is running cannot be overwritten.
  const fresh = `${out}.${process.pid}`;
  // Static where the C library allows it, so that it runs in any root; dynamic otherwise.
  for (const linking of [["-static"], []]) {
    const words = ["-O2", "-s", ...warnings, ...linking, "-o", fresh, ...parts.map(at)];
    const run = spawnSync(compiler, words, { encoding: "utf8" });
    if (run.error) return `no C compiler (${compiler}): the launcher was not built`;
    if (run.status !== 0 && linking.length > 0) continue;
    if (run.status !== 0) throw new Error(run.stderr);
    renameSync(fresh, out);
    return undefined;
  }
}

/** Called by vitest: a launcher of yesterday speaks yesterday's protocol. */
export function setup() {
  const time = (path) => statSync(at(path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const newest = Math.max(...["launcher.h", "supervisor.h", "held.h", ...parts].map(time));
  if (time("build/callgate-launcher") < newest) buildLauncher();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stderr.write(`${buildLauncher() ?? "built native/build/callgate-launcher"}\n`);
}
