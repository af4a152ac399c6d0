/**
 * Work in /dev/shm, where people put a workspace that must be quick. A sandbox has a /dev of its own, so
 * the workspace has to be shown in it, and no more of the host's than that.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { createExec } from "../../../src/runtime/exec.ts";
import { launcherPath } from "../../../src/runtime/process/launcher-path.ts";
import { createProcesses } from "../../../src/runtime/processes.ts";
import { createSandbox, trySandboxes } from "../../../src/runtime/sandbox/sandbox.ts";
import type { Machine } from "../../../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { freshFolder } from "./folder.ts";

const candidates = await trySandboxes();
const launcher = launcherPath();
const hasShm = statSync("/dev/shm", { throwIfNoEntry: false })?.isDirectory() === true;
const ways = [
  { name: "bwrap, kept ready by the launcher", only: "bwrap", through: launcher },
  { name: "bwrap, started for each command", only: "bwrap", through: "off" },
  { name: "landlock", only: "landlock", through: launcher },
].map((way) => ({
  ...way,
  works: hasShm && way.through !== undefined && candidates.some(({ id, ok }) => id === way.only && ok),
}));

describe.each(ways)("$name", ({ only, through = "off", works }) => {
  describe.skipIf(!works)("(needs a sandbox and the launcher)", () => {
    const processes = createProcesses({ launcher: through });
    afterAll(() => processes.close());
    const isLandlock = only === "landlock";

    function at(folder: string, more: Partial<Grant> = {}, machine: Partial<Machine> = {}) {
      const stateDir = freshFolder("/var/tmp");
      const sandbox = createSandbox({ only, machine: { stateDir, ...machine } });
      onTestFinished(() => sandbox.close());
      const grant: Grant = {
        policy: "workspace-write",
        confined: true,
        write: [folder],
        protect: [".git"],
        mask: [],
        network: "off",
        ...more,
      };
      const exec = createExec({
        processes,
        sandbox,
        grant,
        cwd: folder,
        env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
        signal: new AbortController().signal,
      });
      return async (line: string) => {
        const { stdout, stderr, exitCode } = await exec.run({ argv: ["sh", "-c", line], timeoutMs: 60_000 });
        return { said: stdout.head, exitCode, stderr: stderr.head };
      };
    }

    test("a workspace there can be worked in, and what is protected in it is", async () => {
      const workspace = freshFolder("/dev/shm");
      mkdirSync(join(workspace, ".git"));
      writeFileSync(join(workspace, ".git", "config"), "[core]\n");
      const run = at(workspace);
      expect(await run("pwd && echo x > made && cat made")).toMatchObject({ said: `${workspace}\nx\n`, exitCode: 0 });
      expect(readFileSync(join(workspace, "made"), "utf8")).toBe("x\n");
      await run("echo evil > .git/config");
      expect(readFileSync(join(workspace, ".git", "config"), "utf8")).toBe("[core]\n");
    });

    test("read-only means read-only there too", async () => {
      const workspace = freshFolder("/dev/shm");
      writeFileSync(join(workspace, "notes"), "notes\n");
      const run = at(workspace, { policy: "read-only", write: [] });
      expect(await run("cat notes && pwd")).toMatchObject({ said: `notes\n${workspace}\n`, exitCode: 0 });
      expect((await run("echo x > made")).exitCode).not.toBe(0);
      expect((await run("echo x >> notes")).exitCode).not.toBe(0);
      expect(readdirSync(workspace)).toEqual(["notes"]);
      expect(readFileSync(join(workspace, "notes"), "utf8")).toBe("notes\n");
    });

    test("what is hidden in it stays hidden, and so does what lies beside it", async () => {
      const [workspace, beside] = [freshFolder("/dev/shm"), freshFolder("/dev/shm")];
      for (const file of [join(workspace, "key"), join(beside, "key")]) writeFileSync(file, "secret\n");
      writeFileSync(join(workspace, "open"), "open\n");
      const run = at(workspace, { mask: [join(workspace, "key"), join(beside, "key")] });
      expect((await run(`cat key ${beside}/key; cat open`)).said).toBe("open\n");
      expect((await run(`echo x > ${beside}/made`)).exitCode).not.toBe(0);
      expect(readdirSync(beside)).toEqual(["key"]);
    });

    test("our own state there is hidden from a command that works elsewhere", async () => {
      const state = freshFolder("/dev/shm");
      writeFileSync(join(state, "journal"), "secret\n");
      const run = at(freshFolder("/var/tmp"), {}, { stateDir: state });
      const { said, stderr } = await run(`cat ${state}/journal; echo ran`);
      expect([said, stderr.includes("bwrap")]).toEqual(["ran\n", false]);
    });

    test("a command may start in /dev/shm itself, which stays as it is when nothing was granted", async () => {
      const run = at("/dev/shm", { policy: "read-only", write: [] });
      const name = `callgate-test-${process.pid}`;
      onTestFinished(() => rmSync(join("/dev/shm", name), { force: true }));
      expect((await run("pwd")).said).toBe("/dev/shm\n");
      await run(`echo x > /dev/shm/${name}`);
      expect(existsSync(join("/dev/shm", name))).toBe(false);
    });

    test("a command that may change everything may change a workspace there", async () => {
      const workspace = freshFolder("/dev/shm");
      expect(await at(workspace, { policy: "full-access", write: ["/"] })("echo x > made")).toMatchObject({
        exitCode: 0,
      });
      expect(readdirSync(workspace)).toEqual(["made"]);
    });

    // Landlock has no mounts: there it is the host's.
    if (isLandlock) return;
    test("shared memory beside the workspace is the command's own, and gone with it", async () => {
      const workspace = freshFolder("/dev/shm");
      const run = at(workspace);
      const name = `callgate-left-${process.pid}`;
      expect((await run(`echo kept > /dev/shm/${name} && cat /dev/shm/${name}`)).said).toBe("kept\n");
      expect(existsSync(join("/dev/shm", name))).toBe(false);
      expect((await run("ls /dev/shm")).said).toBe(`${workspace.slice("/dev/shm/".length)}\n`);
      expect((await run("touch /dev/made")).exitCode === 0).toBe(through === "off");
    });
  });
});
