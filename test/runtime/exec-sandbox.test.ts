import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { Grant } from "../../src/spec/access.ts";
import { createExec, warmUp } from "../../src/runtime/exec.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { createSandbox } from "../../src/runtime/sandbox/sandbox.ts";
import { has } from "../needs.ts";
import { launchers } from "./process/spawners.ts";

const workspace = realpathSync(mkdtempSync(join(tmpdir(), "callgate-confined-")));
const outside = realpathSync(mkdtempSync(join(homedir(), ".callgate-outside-")));
mkdirSync(join(workspace, ".git"));
writeFileSync(join(workspace, ".git", "config"), "kept\n");
const grant: Grant = {
  policy: "workspace-write",
  confined: true,
  write: [workspace],
  protect: [join(workspace, ".git")],
  mask: [],
  network: "off",
};
// Not our own PATH: a checkout below the temp folder would put folders on it that a sandbox does not have.
const env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: homedir() };

/** Processes of that name below this one: what the launcher keeps ready. */
function children(name: string): number[] {
  const stats = readdirSync("/proc").flatMap((pid) => {
    try {
      const stat = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/stat`, "latin1") : "";
      const [, own, , parent] = /^(\d+) \(.*\) (\S) (\d+)/.exec(stat) ?? [];
      return own
        ? [{ pid: Number(own), parent: Number(parent), name: stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")")) }]
        : [];
    } catch {
      return []; // it ended while we looked
    }
  });
  const ours = new Set(stats.filter(({ parent }) => parent === process.pid).map(({ pid }) => pid));
  return stats.filter((stat) => ours.has(stat.parent) && stat.name === name).map(({ pid }) => pid);
}

describe.skipIf(!has("bubblewrap")).each(launchers)(
  "a confined command through $name (needs bubblewrap)",
  ({ launcher }) => {
    const processes = createProcesses({ launcher });
    const sandbox = createSandbox();
    const exec = () =>
      createExec({
        processes,
        sandbox,
        grant,
        cwd: workspace,
        env,
        signal: new AbortController().signal,
        shell: "/bin/bash",
      });
    const run = (line: string) => exec().run({ shell: line, login: false, timeoutMs: 20_000 });
    afterAll(async () => {
      await processes.close();
      await sandbox.close();
    });

    test("may change the workspace and says what confined it", async () => {
      const result = await run("echo new > made.txt && cat made.txt");
      expect(result).toMatchObject({ exitCode: 0, sandbox: "bwrap+seccomp" });
      expect(result.stdout.head).toBe("new\n");
      expect(existsSync(join(workspace, "made.txt"))).toBe(true);
    });

    test("may not change what is outside, nor what is protected inside", async () => {
      const result = await run(`touch ${outside}/no; echo x >> .git/config; rm -rf .git; cat .git/config`);
      expect(result.stdout.head).toBe("kept\n");
      expect(existsSync(join(outside, "no"))).toBe(false);
    });

    test("sees a fresh sandbox every time", async () => {
      await run("echo left > /dev/shm/left-behind; ipcmk -M 100 >/dev/null; sleep 60 &");
      const { stdout } = await run(
        "cat /dev/shm/left-behind; touch /dev/left; ipcs -m | grep -c 0x; pgrep -x sleep | wc -l",
      );
      expect(stdout.head.trim()).toBe("0\n0");
    });

    test("gives its exit code, its signal and its input", async () => {
      expect((await run("exit 7")).exitCode).toBe(7);
      expect((await exec().run({ argv: ["wc", "-c"], stdin: "x".repeat(300_000) })).stdout.head.trim()).toBe("300000");
      expect(await run("kill -SEGV $$")).toMatchObject(
        launcher === "off" ? { exitCode: 139 } : { exitCode: null, signal: "SIGSEGV" }, // bubblewrap turns a signal into a code
      );
    });

    test("that runs too long is ended with everything it started", async () => {
      const result = await exec().run({
        shell: "sleep 321 & setsid sleep 321 & sleep 321",
        login: false,
        timeoutMs: 300,
      });
      expect(result.timedOut).toBe(true);
      expect(result.durationMs).toBeLessThan(20_000);
    });

    test("that does not exist is a failure of the command, not of the sandbox", async () => {
      await expect(exec().run({ argv: ["no-such-program-here"] })).rejects.toMatchObject({ code: "failed" });
    });

    test("can be prepared for while nobody waits", async () => {
      await warmUp({ processes, sandbox, grant, cwd: workspace, env, signal: new AbortController().signal });
      expect((await run("echo ready")).stdout.head).toBe("ready\n");
    });

    test("cannot reach into what watches over it", async () => {
      const line = [
        "head -c 1 /proc/$PPID/environ >/dev/null 2>&1 && echo environ",
        "readlink /proc/$PPID/fd/3 && echo descriptors",
        "exec 7<>/proc/$PPID/mem && echo memory",
        "ls -l /proc/self/fd | grep -c socket",
      ].join("; ");
      const { stdout } = await run(`{ ${line}; } 2>/dev/null`);
      expect(stdout.head).toBe("0\n");
    });

    test("does not notice that the sandbox kept ready for it has died", async () => {
      await run("true");
      await new Promise((resolve) => setTimeout(resolve, 200));
      // All of it is gone before the next command comes: one that had begun in it would end with it.
      for (let tries = 0; children("bwrap").length > 0; tries++) {
        if (tries > 500) throw new Error("the sandbox does not die");
        for (const pid of children("bwrap")) endIfThere(pid);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      expect((await run("echo alive")).stdout.head).toBe("alive\n");
    });

    test("notices that a protected name was replaced since the last command", async () => {
      expect((await run("cat .git/config")).stdout.head).toBe("kept\n");
      rmSync(join(workspace, ".git"), { recursive: true });
      mkdirSync(join(workspace, ".git"));
      writeFileSync(join(workspace, ".git", "config"), "kept\n");
      expect((await run("echo x >> .git/config; cat .git/config")).stdout.head).toBe("kept\n");
    });
  },
);

/** One of them may end by itself between being listed and being killed. */
function endIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

afterAll(() => {
  rmSync(workspace, { recursive: true, force: true });
  rmSync(outside, { recursive: true, force: true });
});
