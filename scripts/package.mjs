#!/usr/bin/env node
// Packs what is published: callgate itself, and the launcher for each system as a package of its own that npm installs
// beside it (an optional dependency; no install script). package.mjs [OUT] [--check]
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildLauncher } from "./build-launcher.mjs";

const project = fileURLToPath(new URL("..", import.meta.url));
const words = process.argv.slice(2);
const out = words.find((word) => !word.startsWith("--")) ?? join(project, "dist", "packages");
const manifest = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
const { version, license } = manifest;

/** Static, so that one file serves glibc and musl alike; the first compiler that is here is taken. */
const systems = [
  {
    arch: "x64",
    compilers: process.arch === "x64" ? ["musl-gcc", "cc"] : ["x86_64-linux-gnu-gcc"],
    runner: "qemu-x86_64-static",
  },
  {
    arch: "arm64",
    compilers: process.arch === "arm64" ? ["musl-gcc", "cc"] : ["aarch64-linux-gnu-gcc"],
    runner: "qemu-aarch64-static",
  },
];

const say = (text) => process.stderr.write(`${text}\n`);
const has = (program) => spawnSync(program, ["--version"], { stdio: "ignore" }).error === undefined;
const npmPack = (folder) =>
  execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", out], {
    cwd: folder,
    encoding: "utf8",
  })
    .trim()
    .split("\n")
    .at(-1);

/** The name of the package, or undefined where nothing here can build it. */
function packLauncher({ arch, compilers, runner }) {
  const name = `callgate-launcher-linux-${arch}`;
  const compiler = compilers.find(has);
  if (compiler === undefined) return say(`${name}: left out, there is none of ${compilers.join(", ")}`);
  const folder = join(out, name);
  const program = join(folder, "callgate-launcher");
  mkdirSync(folder, { recursive: true });
  const problem = buildLauncher({ compiler, out: program, linking: [["-static"]] });
  if (problem !== undefined) throw new Error(problem);
  chmodSync(program, 0o755);
  // It must really run, here or under emulation: a file that only links is no launcher.
  const run = arch === process.arch ? [program] : has(runner) ? [runner, program] : undefined;
  if (run !== undefined) execFileSync(run[0], [...run.slice(1), "nothing"]);
  const sum = createHash("sha256").update(readFileSync(program)).digest("hex");
  writeFileSync(join(folder, "callgate-launcher.sha256"), `${sum}  callgate-launcher\n`);
  const own = {
    name,
    version,
    description: "Starts and confines commands for Callgate on Linux.",
    license,
    os: ["linux"],
    cpu: [arch],
    files: ["callgate-launcher", "callgate-launcher.sha256"],
    preferUnplugged: true,
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(own, undefined, 2)}\n`);
  say(`${npmPack(folder)}  ${compiler}${run === undefined ? ", not run here" : ""}  ${sum}`);
  return name;
}

/** The project as it is, with the launchers as optional dependencies: they cannot stand in the checkout's own manifest before they are published. */
function packMain(launchers) {
  const folder = mkdtempSync(join(tmpdir(), "callgate-package-"));
  try {
    const packed = execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder], {
      cwd: project,
      encoding: "utf8",
    })
      .trim()
      .split("\n")
      .at(-1);
    execFileSync("tar", ["xzf", packed], { cwd: folder });
    const whole = join(folder, "package");
    const optionalDependencies = Object.fromEntries(launchers.map((name) => [name, version]));
    writeFileSync(
      join(whole, "package.json"),
      `${JSON.stringify({ ...manifest, optionalDependencies }, undefined, 2)}\n`,
    );
    say(npmPack(whole));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A plain install of the tarballs in an empty folder finds the launcher, and no script ran. */
function check() {
  const folder = mkdtempSync(join(tmpdir(), "callgate-install-"));
  try {
    const tarballs = readdirSync(out).filter(
      (name) => name.endsWith(".tgz") && !/-linux-/.test(name.replace(`-linux-${process.arch}`, "")),
    );
    writeFileSync(join(folder, "package.json"), "{}");
    for (const name of tarballs) copyFileSync(join(out, name), join(folder, name));
    execFileSync(
      "npm",
      ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", ...tarballs.map((name) => `./${name}`)],
      { cwd: folder },
    );
    // Before the command has run: then it keeps its compiled code.
    checkSize(join(folder, "node_modules"));
    const { stdout } = spawnSync(join(folder, "node_modules", ".bin", "callgate"), ["doctor", "--json"], {
      cwd: folder,
      encoding: "utf8",
    });
    const found = JSON.parse(stdout).findings.find(({ name }) => name === "launcher");
    if (found?.state !== "ok" || !found.detail.includes(`callgate-launcher-linux-${process.arch}`))
      throw new Error(`doctor: ${JSON.stringify(found)}`);
    say(`installed in an empty folder: launcher ok`);
    checkMaps(join(folder, "node_modules", "callgate", "dist"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As a disk counts: each file takes whole blocks. */
function checkSize(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const sizes = files.map(({ parentPath, name }) => statSync(join(parentPath, name)).size);
  const onDisk = sizes.reduce((sum, size) => sum + Math.ceil(size / 4096) * 4096, 0);
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
  const told = `${megabytes(sizes.reduce((sum, size) => sum + size, 0))} in ${sizes.length} files, ${megabytes(onDisk)} on disk`;
  if (onDisk > 6e6) throw new Error(`the installed package is too big: ${told}`);
  say(`installed: ${told}`);
}

/** With `node --enable-source-maps`, errors name our files and lines, from the library and from the command. */
function checkMaps(dist) {
  const library = `
    import { defineTool } from ${JSON.stringify(join(dist, "index.js"))};
    try { defineTool({ name: "no name" }); } catch (error) { console.error(error.stack); }`;
  // The command prints a list with writeSync, without loading Node's streams.
  const hook = `
    const fs = require("node:fs");
    const { writeSync } = fs;
    fs.writeSync = (descriptor, ...rest) => {
      if (descriptor === 1) console.error(new Error().stack);
      return writeSync(descriptor, ...rest);
    };`;
  const hookFile = join(dist, "..", "hook.cjs");
  writeFileSync(hookFile, hook);
  const runs = {
    library: ["--input-type=module", "-e", library],
    command: ["--require", hookFile, join(dist, "cli.cjs"), "tools"],
  };
  for (const [name, args] of Object.entries(runs)) {
    const { stderr } = spawnSync(process.execPath, ["--enable-source-maps", ...args], { encoding: "utf8" });
    const [, first = ""] = stderr.split(/^\w*Error\b.*$/m);
    const frames = [...first.matchAll(/at (?!async )(?:\w+\.)*(\w+) .*?(src[\\/][\w\\/.-]+\.ts):(\d+)/g)];
    if (frames.length < 2) throw new Error(`the ${name}'s errors do not name our files:\n${stderr}`);
    // Each line but the first is a call of the function before it.
    for (const [at, [frame, , path, line]] of frames.entries()) {
      const text = readFileSync(join(project, path), "utf8").split("\n")[Number(line) - 1] ?? "";
      const called = frames[at - 1]?.[1];
      if (called !== undefined && !text.includes(called)) throw new Error(`${frame}\nis not the line '${text}'`);
    }
  }
  for (const file of readdirSync(dist, { recursive: true }).filter((name) => name.endsWith(".js"))) {
    const [, map] =
      /\n\/\/# sourceMappingURL=(\S+)\s*$/.exec(readFileSync(join(dist, file), "utf8").slice(-4000)) ?? [];
    if (map !== undefined && !map.startsWith("data:")) readFileSync(join(dist, file, "..", map));
  }
  say("installed: errors name our files and lines");
}

/** `npm start` builds without the declarations, and a package without them would be packed without a word. */
const missing = [
  ...Object.values(manifest.exports).flatMap((entry) => (typeof entry === "string" ? entry : Object.values(entry))),
  "THIRD-PARTY-LICENSES.md",
].filter((path) => !existsSync(join(project, path)));
if (missing.length > 0) {
  say(
    `package: ${missing[0]} and ${missing.length - 1} more of what is published are not built: run node scripts/build.mjs`,
  );
  process.exit(1);
}
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
packMain(systems.map(packLauncher).filter((name) => name !== undefined));
if (words.includes("--check")) check();
