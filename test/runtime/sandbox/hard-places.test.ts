import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launcherPath } from "../../../src/runtime/process/launcher-path.ts";

/**
 * Places where the best sandbox cannot work, made for real. Each line runs `$@` there; `expected` is what
 * then confines a command, which must run through the launcher as well.
 */
const places: readonly { readonly name: string; readonly line: string; readonly expected: string }[] = [
  { name: "an ordinary machine", line: '"$@"', expected: "bwrap+seccomp" },
  {
    name: "user namespaces are switched off",
    line: `unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; "$@"' sh "$@"`,
    expected: "landlock+seccomp",
  },
  {
    name: "a container hides parts of /proc",
    line: `unshare -Urmpf --mount-proc sh -c 'mount -t tmpfs x /proc/tty; "$@"' sh "$@"`,
    expected: "bwrap(bound /proc)+seccomp",
  },
  {
    name: "root lacks the right capabilities",
    line: 'setpriv --bounding-set -sys_admin,-setfcap "$@"',
    expected: "landlock+seccomp",
  },
  {
    name: "neither bubblewrap nor the launcher is there",
    line: `unshare -m sh -c 'mount --bind /dev/null "$(command -v bwrap)"; CALLGATE_LAUNCHER=off "$@"' sh "$@"`,
    expected: "none",
  },
];

const launcher = launcherPath();
const canUnshare = spawnSync("unshare", ["-Urmpf", "--mount-proc", "true"]).status === 0 && process.getuid?.() === 0;

describe.skipIf(launcher === undefined || !canUnshare || spawnSync("bwrap", ["--version"]).status !== 0)(
  "what confines commands where (needs bubblewrap, root and the launcher)",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "callgate-places-"));
    const program = join(folder, "ask.mjs");

    beforeAll(async () => {
      const source = (path: string) => fileURLToPath(new URL(`../../../src/runtime/${path}`, import.meta.url));
      const entry = join(folder, "ask.ts");
      writeFileSync(
        entry,
        `import { createExec } from ${JSON.stringify(source("exec.ts"))};
import { createProcesses } from ${JSON.stringify(source("processes.ts"))};
import { createSandbox } from ${JSON.stringify(source("sandbox/sandbox.ts"))};
const [sandbox, processes] = [createSandbox(), createProcesses()];
const grant = { policy: "workspace-write", confined: true, write: [process.cwd()], protect: [], mask: [], network: "off" };
const signal = new AbortController().signal;
const exec = createExec({ processes, sandbox, grant, cwd: process.cwd(), env: { PATH: "/usr/bin:/bin" }, signal });
const { name, available } = await sandbox.confinement();
const line = "echo made > made && chmod 600 made && touch /etc/not-made 2>/dev/null; ls made /etc/not-made 2>/dev/null";
const said = available ? (await exec.run({ argv: ["sh", "-c", line] })).stdout.head.trim() : "nothing";
console.log(name, said);
await processes.close();
await sandbox.close();\n`,
      );
      const bundle = await rolldown({ input: entry, platform: "node", logLevel: "silent" });
      await bundle.write({ file: program, codeSplitting: false });
      await bundle.close();
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    test.each(places)("$name", async ({ name, line, expected }) => {
      const env = { ...process.env, CALLGATE_LAUNCHER: launcher, CALLGATE_HOME: join(folder, name) };
      const cwd = mkdtempSync("/var/tmp/callgate-places-");
      const { stdout } = await promisify(execFile)("sh", ["-c", line, "sh", process.execPath, program], { env, cwd });
      rmSync(cwd, { recursive: true });
      expect(stdout.trim()).toBe(`${expected} ${expected === "none" ? "nothing" : "made"}`);
    });
  },
);
