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
 * then confines a command.
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
  "what confines commands where",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "callgate-places-"));
    const program = join(folder, "ask.mjs");

    beforeAll(async () => {
      const source = fileURLToPath(new URL("../../../src/runtime/sandbox/sandbox.ts", import.meta.url));
      const entry = join(folder, "ask.ts");
      writeFileSync(
        entry,
        `import { createSandbox } from ${JSON.stringify(source)};\nconsole.log((await createSandbox().confinement()).name);\n`,
      );
      const bundle = await rolldown({ input: entry, platform: "node", logLevel: "silent" });
      await bundle.write({ file: program, codeSplitting: false });
      await bundle.close();
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    test.each(places)("$name", async ({ name, line, expected }) => {
      const env = { ...process.env, CALLGATE_LAUNCHER: launcher, CALLGATE_HOME: join(folder, name) };
      const { stdout } = await promisify(execFile)("sh", ["-c", line, "sh", process.execPath, program], { env });
      expect(stdout.trim()).toBe(expected);
    });
  },
);
