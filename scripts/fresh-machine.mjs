// Vitest as on a machine that has nothing but Node, npm, git and a C compiler: everything else that some tests use is
// covered in a mount namespace of our own (needs root). `node scripts/fresh-machine.mjs [test paths and options]`
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";

const programs =
  "bwrap rg tmux psql initdb postgres chromium chromium-browser google-chrome python python3 jq busybox sqlite3 strace gdb valgrind curl wget patch script expect socat gawk zsh fish pwsh musl-gcc clang aarch64-linux-gnu-gcc qemu-aarch64-static qemu-aarch64 docker podman".split(
    " ",
  );

if (process.env["CALLGATE_FRESH"] === undefined) {
  const again = [process.execPath, ...process.argv.slice(1)];
  const { status } = spawnSync("unshare", ["--mount", "--propagation", "private", ...again], {
    stdio: "inherit",
    env: { ...process.env, CALLGATE_FRESH: "1" },
  });
  process.exit(status ?? 1);
}

const folders = (process.env["PATH"] ?? "").split(delimiter);
const found = folders
  .flatMap((folder) => programs.map((name) => join(folder, name)))
  .filter((path) => existsSync(path));
// A device cannot be executed, by root neither. The same file may have several names.
for (const file of new Set(found.map((path) => realpathSync(path))))
  execFileSync("mount", ["--bind", "/dev/null", file]);
console.log(`covered: ${[...new Set(found.map((path) => path.split("/").at(-1)))].join(" ")}`);
const { CALLGATE_FRESH: _, ...env } = process.env;
const { status } = spawnSync("node_modules/.bin/vitest", ["run", ...process.argv.slice(2)], { stdio: "inherit", env });
process.exit(status ?? 1);
