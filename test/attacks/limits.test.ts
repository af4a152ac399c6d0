/** Commands that use up what they can: the command ends, and the machine and the session go on. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { createExec } from "../../src/runtime/exec.ts";
import { defaultLimits } from "../../src/runtime/exec.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { createSandbox } from "../../src/runtime/sandbox/sandbox.ts";
import { launcherPath } from "../../src/runtime/process/launcher-path.ts";
import { howProcessesAreHeld } from "../../src/runtime/sandbox/programs.ts";
import type { Grant } from "../../src/spec/access.ts";
import type { Limits } from "../../src/spec/capability.ts";
import { works } from "./denied-programs.ts";

const mib = 1024 ** 2;
/** CALLGATE_LINE_MB=1024 plays the long one. */
const lineMiB = Number(process.env["CALLGATE_LINE_MB"] ?? 300);

/** Whether the kernel counts the processes of a command, so that the launcher need not. */
function isHeld(backend: string): boolean {
  const [inBwrap, elsewhere] = howProcessesAreHeld(launcherPath() ?? "") ?? ["watched", "watched"];
  return (backend === "bwrap" ? inBwrap : elsewhere) !== "watched";
}

describe.each(["bwrap", "bwrap-bound-proc", "landlock"])(
  "limits of a command under %s (needs a sandbox and the launcher)",
  (backend) => {
    const here = launcherPath() !== undefined && works(backend);
    const processes = createProcesses({});
    const sandbox = here ? createSandbox({ only: backend }) : undefined;
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "callgate-limits-")));
    afterAll(async () => {
      await processes.close();
      await sandbox?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    function run(line: string, limits: Limits = {}) {
      const grant: Grant = {
        policy: "workspace-write",
        confined: true,
        write: [folder],
        protect: [],
        mask: [],
        network: "off",
      };
      const env = { PATH: process.env["PATH"] ?? "", HOME: folder };
      const signal = new AbortController().signal;
      const exec = createExec({
        processes,
        sandbox: sandbox!,
        grant,
        cwd: folder,
        env,
        signal,
        shell: "/bin/bash",
        limits,
      });
      return exec.run({ shell: line, login: false, timeoutMs: 60_000 });
    }
    const goesOn = async () => expect((await run("echo still here")).stdout.head).toBe("still here\n");

    test.skipIf(!here)("a fork bomb", async () => {
      const result = await run(":(){ :|:& };:; sleep 30", { processes: 150 });
      // The kernel's own limit may have stopped it first: then it ran into 'Resource temporarily unavailable'.
      expect(result.timedOut).toBe(false);
      if (result.limit !== undefined) expect(result.limit).toBe("processes");
      await goesOn();
    });

    // Ours come on top, and the numbers below 300 that the kernel does not use again.
    test.skipIf(!here || !isHeld(backend))("the kernel itself stops one that is faster than we look", async () => {
      const source = fileURLToPath(new URL("./fork.c", import.meta.url));
      execFileSync("cc", ["-O1", "-o", join(folder, "fork"), source]);
      const result = await run("./fork", { processes: 200 });
      expect(result.limit).toBe("processes");
      const made = Number(readFileSync(join(folder, "count")).readBigUInt64LE());
      expect(made).toBeGreaterThan(150);
      expect(made).toBeLessThan(200 + 600);
      await goesOn();
    });

    test.skipIf(!here)("many sleeping processes", async () => {
      const result = await run("for i in {1..220}; do sleep 60 & done; wait", { processes: 150 });
      expect(result).toMatchObject({ limit: "processes", denied: { what: "command", rule: "limit processes" } });
      await goesOn();
    });

    test.skipIf(!here)("memory that is filled", async () => {
      const fill =
        "const all = []; for (let i = 0; i < 3000; i++) all.push(Buffer.alloc(1 << 20, 1)); setTimeout(() => all, 30000)";
      const result = await run(`node -e '${fill}'`, { memoryBytes: 300 * mib });
      expect(result.limit).toBe("memoryBytes");
      expect(result.denied?.reason).toContain("memory");
      await goesOn();
    });

    test.skipIf(!here)("one file that grows", async () => {
      const result = await run("head -c 64M /dev/zero > big", { fileBytes: 8 * mib });
      expect(result.denied).toMatchObject({ rule: "limit fileBytes" });
      expect(statSync(join(folder, "big")).size).toBeLessThanOrEqual(8 * mib);
    });

    test.skipIf(!here)("a temp folder that fills", async () => {
      const line = "d=${TMPDIR:-/tmp}; for i in {1..40}; do head -c 4M /dev/zero > $d/f$i; sleep 0.1; done; sleep 20";
      const result = await run(line, { tempBytes: 20 * mib });
      expect(result.limit).toBe("tempBytes");
      await goesOn();
    });

    test.skipIf(!here)("open files", async () => {
      const result = await run("ulimit -n", { openFiles: 77 });
      expect(result.stdout.head).toBe("77\n");
    });

    test.skipIf(!here)(`a line of ${lineMiB} MB`, async () => {
      const result = await run(`head -c ${lineMiB}M /dev/zero | tr '\\0' x`);
      expect(result.output.totalBytes).toBe(lineMiB * mib);
      expect(result.output.head.length + result.output.tail.length).toBeLessThan(4 * mib);
    });

    test.skipIf(!here)("a command within its limits is left alone, and 0 is no limit", async () => {
      expect(await run("sleep 0.3; true")).toMatchObject({ exitCode: 0 });
      expect(
        await run("for i in {1..50}; do sleep 0.3 & done; wait", { processes: 0, memoryBytes: 0, tempBytes: 0 }),
      ).toMatchObject({ exitCode: 0 });
    });
  },
);

test("limits are on by default", () => {
  expect(Object.keys(defaultLimits()).toSorted()).toEqual([
    "fileBytes",
    "memoryBytes",
    "openFiles",
    "processes",
    "tempBytes",
  ]);
});
