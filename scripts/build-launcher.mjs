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
  "cgroup.c",
  "tail.c",
  "overlay.c",
  "tree.c",
  "xattrs.c",
  "effects.c",
  "list.c",
  "steps.c",
  "spans.c",
  "settle.c",
  "held.c",
];
const warnings = ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow"];

/** The kernel's headers lie beside the C library's; musl's compiler does not look there by itself. */
const kernelHeaders = (compiler) =>
  compiler.endsWith("musl-gcc")
    ? ["/usr/include", `/usr/include/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`].flatMap((path) => [
        "-idirafter",
        path,
      ])
    : [];

/** Undefined once it is built; else the reason why not, in words. `linking`: what is tried, in order. */
export function buildLauncher({
  compiler = process.env.CC ?? "cc",
  out = at("build/callgate-launcher"),
  // Static where the C library allows it, so that it runs in any root; dynamic otherwise.
  linking = [["-static"], []],
  flags = ["-O2", "-s"],
} = {}) {
  if (process.platform !== "linux") return "the launcher is for Linux only: it was not built";
  mkdirSync(at("build"), { recursive: true });
  // Under another name first: a launcher that is running cannot be overwritten.
  const fresh = `${out}.${process.pid}`;
  for (const [index, link] of linking.entries()) {
    const words = [...flags, ...warnings, ...link, ...kernelHeaders(compiler), "-o", fresh, ...parts.map(at)];
    const run = spawnSync(compiler, words, { encoding: "utf8" });
    if (run.error) return `no C compiler (${compiler}): the launcher was not built`;
    if (run.status !== 0 && index < linking.length - 1) continue;
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

/** `--checked`: a second one beside it that stops at undefined behaviour, for running the tests with (CALLGATE_LAUNCHER). */
const checked = {
  out: at("build/callgate-launcher-checked"),
  flags: ["-O1", "-g", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"],
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv.includes("--checked")) process.stderr.write(`${buildLauncher(checked) ?? `built ${checked.out}`}\n`);
  process.stderr.write(`${buildLauncher() ?? "built native/build/callgate-launcher"}\n`);
}
