#!/usr/bin/env node
// Fuzzes the launcher's request parser under the sanitizers: fuzz-launcher.mjs [ROUNDS [SEED]].
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(`../native/${path}`, import.meta.url));

mkdirSync(at("build"), { recursive: true });
const flags = [
  "-g",
  "-O1",
  "-std=gnu11",
  "-Wall",
  "-Wextra",
  "-fsanitize=address,undefined",
  "-fno-sanitize-recover=all",
];
const built = spawnSync(
  process.env.CC ?? "cc",
  [...flags, "-o", at("build/fuzz"), ...["fuzz.c", "request.c", "rules.c", "tail.c"].map(at)],
  {
    stdio: "inherit",
  },
);
if (built.status !== 0) process.exit(1);
const [rounds = "2000000", seed = String(Date.now())] = process.argv.slice(2);
process.stderr.write(`seed ${seed}\n`);
process.exit(spawnSync(at("build/fuzz"), [rounds, seed], { stdio: "inherit" }).status ?? 1);
