/** A sandbox that cannot be built, without the launcher: never told as the command's own failure. */
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createExec } from "../../../src/runtime/exec.ts";
import { sandboxWords } from "../../../src/runtime/process/child.ts";
import { createProcesses } from "../../../src/runtime/processes.ts";
import type { Sandbox } from "../../../src/runtime/sandbox/backend.ts";
import { createSandbox, trySandboxes } from "../../../src/runtime/sandbox/sandbox.ts";
import type { Grant } from "../../../src/spec/access.ts";
import { freshFolder } from "./folder.ts";
import { confineAndRun } from "./run-confined.ts";

const candidates = (await trySandboxes()).filter(({ ok }) => ok);
const hasBwrap = candidates.some(({ id }) => id === "bwrap");
const env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: "/nonexistent" };

function grantFor(workspace: string): Grant {
  return {
    policy: "workspace-write",
    confined: true,
    write: [workspace],
    protect: [".git"],
    mask: [],
    network: "off",
  };
}

/** Breaks the first so many sandboxes as a path does that went while it was built. */
function breaking(sandbox: Sandbox, times: number): Sandbox {
  let left = times;
  return {
    ...sandbox,
    async confine(launch, how) {
      const confined = await sandbox.confine(launch, how);
      if (left-- <= 0) return confined;
      const [program = "", ...words] = confined.argv;
      const gone = ["--ro-bind", "/", "/", "--ro-bind", "/dev/null", "/home/somebody/private/agent.sock"];
      return { ...confined, argv: [program, ...gone, ...words] };
    },
  };
}

function scene(times: number) {
  const workspace = freshFolder("/var/tmp");
  const sandbox = createSandbox({ only: "bwrap", machine: { stateDir: freshFolder() } });
  const processes = createProcesses({ launcher: "off" });
  onTestFinished(async () => {
    await processes.close();
    await sandbox.close();
  });
  const told: string[] = [];
  const exec = createExec({
    processes,
    sandbox: breaking(sandbox, times),
    grant: grantFor(workspace),
    cwd: workspace,
    env,
    signal: new AbortController().signal,
    onOutput: ({ text }) => void told.push(text),
  });
  return { exec, told, workspace };
}

describe.skipIf(!hasBwrap)("without the launcher (needs bubblewrap)", () => {
  test("a sandbox that fails once is built again, and nobody hears of it", async () => {
    const { exec, told } = scene(1);
    const result = await exec.run({ argv: ["sh", "-c", "echo out; echo 'bwrap: my own words' >&2; exit 3"] });
    expect(result).toMatchObject({ exitCode: 3 });
    expect(result.stderr.head).toBe("bwrap: my own words\n");
    expect(told.join("")).not.toContain("somebody");
  });

  test("one that fails again is told as the sandbox's failure, without other users' paths", async () => {
    const { exec, told } = scene(2);
    const failed = exec.run({ argv: ["true"] });
    await expect(failed).rejects.toMatchObject({ code: "no_sandbox" });
    await expect(failed).rejects.toThrow(/the sandbox could not be built: bwrap: .*a path outside the workspace/);
    await expect(failed).rejects.not.toThrow(/somebody/);
    expect(told).toEqual([]);
  });

  test("in a terminal too", async () => {
    const { exec } = scene(2);
    const opened = exec.terminals.open({ argv: ["true"], tty: true, yieldMs: 5000 });
    await expect(opened).rejects.toMatchObject({ code: "no_sandbox" });
  });

  test("a program that cannot be executed is no failure of the sandbox", async () => {
    const { exec, workspace } = scene(0);
    writeFileSync(join(workspace, "plain.txt"), "no program");
    // Told by bubblewrap, or by the shell that closes what we were started with.
    const end = exec.run({ argv: [join(workspace, "plain.txt")] }).catch((error: unknown) => error);
    expect(await end).toMatchObject((await end) instanceof Error ? { code: "failed" } : { exitCode: 126 });
  });

  test.each(["kill -TERM $$", "kill -KILL $$", "exit 1", "exit 127"])(
    "%s is the command's own ending",
    async (line) => {
      const { exec } = scene(0);
      expect((await exec.run({ argv: ["sh", "-c", line] })).exitCode).toBeGreaterThan(0);
    },
  );
});

test("paths in a sandbox's words stay only if they are the command's own or the system's", () => {
  const launch = { cwd: "/ws/a b", grant: grantFor("/ws/a b") };
  const words = (text: string) => sandboxWords(text, launch);
  expect(words("bwrap: Can't mkdir parents for /home/eve/x y/s.sock: Permission denied")).toBe(
    "bwrap: Can't mkdir parents for a path outside the workspace: Permission denied",
  );
  expect(words("bwrap: Can't find source path /ws/a b/c: No such file")).toContain("/ws/a b/c: No such file");
  expect(words("bwrap: Can't mount proc on /newroot/proc: Operation not permitted")).toContain("/newroot/proc: ");
  expect(words("")).toBe("it ended before the command was started");
});

describe.each(candidates.filter(({ id }) => !id.endsWith("-old")))("what a command in $id finds of ours", ({ id }) => {
  function place() {
    const state = freshFolder("/var/tmp");
    const kept = join(state, "outputs", "mine");
    mkdirSync(join(state, "sessions"));
    mkdirSync(kept, { recursive: true });
    writeFileSync(join(state, "sessions", "s.jsonl"), "a journal");
    writeFileSync(join(state, "audit.jsonl"), "a chain");
    writeFileSync(join(kept, "long.txt"), "a kept output");
    const sandbox = createSandbox({ only: id, kept, machine: { stateDir: state } });
    onTestFinished(() => sandbox.close());
    async function run(line: string, workspace: string) {
      const launch = { argv: ["sh", "-c", line], cwd: workspace, grant: grantFor(workspace), env };
      return confineAndRun(sandbox, launch);
    }
    return { state, kept, run };
  }

  test("journals and the audit are hidden, an output that was kept for it is not", async () => {
    const { state, kept, run } = place();
    const look = `cat ${state}/sessions/s.jsonl ${state}/audit.jsonl; cat ${kept}/long.txt`;
    const { stdout } = await run(look, freshFolder("/var/tmp"));
    expect(stdout).toBe("a kept output");
  });

  test("a workspace that lies among them is open, and nothing beside it", async () => {
    const { state, run } = place();
    const workspace = join(state, "demo");
    mkdirSync(workspace);
    const { stdout } = await run(`echo new > made; cat made ../audit.jsonl`, workspace);
    expect(stdout).toBe("new\n");
  });

  test("a socket made a moment ago cannot be reached, nor its folder's next one", async () => {
    const { run } = place();
    const folder = freshFolder("/var/tmp");
    const workspace = freshFolder("/var/tmp");
    for (const name of ["first", "second"]) {
      const path = join(folder, `${name}.sock`);
      const server = createServer((socket) => socket.end("reached"));
      await new Promise<void>((done) => server.listen(path, done));
      onTestFinished(() => void server.close());
      const script = `require("net").connect(${JSON.stringify(path)}).on("error", (e) => console.log(e.code)).pipe(process.stdout)`;
      const { stdout } = await run(`"${process.execPath}" -e '${script}'`, workspace);
      expect(stdout).toMatch(/^(ENOENT|EACCES|ECONNREFUSED|EPERM|ENOTSOCK)\n$/);
    }
  });

  test.skipIf(process.getuid?.() !== 0)(
    "another user's socket in a folder of theirs breaks no command (needs root)",
    async () => {
      const { run } = place();
      const folder = join(freshFolder("/var/tmp"), "private");
      const inner = join(folder, "agent");
      mkdirSync(inner, { recursive: true });
      const server = createServer();
      await new Promise<void>((done) => server.listen(join(inner, "agent.sock"), done));
      onTestFinished(() => void server.close());
      for (const path of [join(inner, "agent.sock"), inner, folder]) {
        chmodSync(path, 0o700);
        chownSync(path, 12_345, 12_345);
      }
      expect(await run("echo hi", freshFolder("/var/tmp"))).toMatchObject({ stdout: "hi\n" });
    },
  );
});
