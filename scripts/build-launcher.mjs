#!/usr/bin/env node
// Builds native/build/callgate-launcher with the C compiler that is here. Everything works without it, slower.
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(`../native/${path}`, import.meta.url));
const warnings = ["-Wall", "-Wextra", "-Wshadow"];

export function build({ compiler = process.env.CC ?? "cc", out = at("build/callgate-launcher"), flags = ["-O2", "-s"], source = at("launcher.c") } = {}) {
  if (process.platform !== "linux") return "the launcher is for Linux only";
  mkdirSync(at("build"), { recursive: true });
  // Under another name first: a launcher that is running cannot be overwritten.
  const fresh = `${out}.${process.pid}`;
  for (const linking of [["-static"], []]) {
    const run = spawnSync(compiler, [...flags, ...warnings, ...linking, "-o", fresh, source], { encoding: "utf8" });
    if (run.error) return `no C compiler (${compiler}): the launcher was not built`;
    if (run.status === 0) {
      renameSync(fresh, out);
      return undefined;
    }
    if (linking.length === 0) return run.stderr;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problem = build();
  process.stderr.write(problem === undefined ? "native/build/callgate-launcher built\n" : `${problem}\n`);
  // Without a compiler set-up goes on; a compiler's complaint is a fault of ours.
  process.exitCode = problem === undefined || problem.startsWith("no C compiler") || process.platform !== "linux" ? 0 : 1;
}
