#!/usr/bin/env node
// Lays out the npm package that carries the launcher for one system: package-launcher.mjs [OUT [ARCH]].
// For another ARCH set CC to its cross compiler (CC=aarch64-linux-gnu-gcc … arm64). No install script: the file is the package.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildLauncher } from "./build-launcher.mjs";

const [out = fileURLToPath(new URL("../dist/packages", import.meta.url)), arch = process.arch] = process.argv.slice(2);
const { version, license } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const name = `callgate-launcher-linux-${arch}`;
const folder = join(out, name);
const program = join(folder, "callgate-launcher");

mkdirSync(folder, { recursive: true });
const problem = buildLauncher({ out: program });
if (problem !== undefined) throw new Error(problem);
chmodSync(program, 0o755);
const files = ["callgate-launcher"];
const description = "Starts and confines commands for Callgate on Linux.";
const manifest = { name, version, description, license, os: ["linux"], cpu: [arch], files, preferUnplugged: true };
writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
process.stderr.write(`${folder}\n`);
