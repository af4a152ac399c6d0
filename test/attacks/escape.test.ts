import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createExec } from "../../src/runtime/exec.ts";
import { launcherPath } from "../../src/runtime/process/launcher-path.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { createSandbox, runConfined, trySandboxes } from "../../src/runtime/sandbox/sandbox.ts";
import type { Sandbox } from "../../src/runtime/sandbox/sandbox.ts";
import { escapes, leaks, losses, parseOutcomes } from "./expected.ts";
import { createScene } from "./scene.ts";
import type { Scene } from "./scene.ts";

const candidates = (await trySandboxes()).filter(({ id }) => !id.endsWith("-old"));

/** Started for the command by a plain spawn, and by the launcher, which hands it to a sandbox that was waiting. */
const ways = { "a plain spawn": runPlainly, "the launcher": runByLauncher } as const;
const wanted = Object.keys(leaks).flatMap((id) => Object.entries(ways).map(([way, run]) => ({ id, way, run })));
const isRoot = process.getuid?.() === 0;
const nobody = { uid: 65534, gid: 65534 };
const users: readonly { readonly user: string; readonly owner?: typeof nobody }[] = isRoot
  ? [{ user: "root" }, { user: "an ordinary user", owner: nobody }]
  : [{ user: "this user" }];

describe.each(wanted)("escape from $id through $way (needs a sandbox and the launcher)", ({ id, way, run }) => {
  const isThere = way === "a plain spawn" || launcherPath() !== undefined;
  const works = isThere && candidates.some((candidate) => candidate.id === id && candidate.ok);
  describe.skipIf(!works).each(users)("as $user", ({ owner }) => {
    let scene: Scene;
    let results: ReadonlyMap<string, string>;
    const state = mkdtempSync(join(tmpdir(), "callgate-state-"));

    beforeAll(async () => {
      scene = await createScene(owner);
      const sandbox = createSandbox({ only: id, machine: { env: scene.env, stateDir: state } });
      const output = await run(sandbox, scene);
      await sandbox.close();
      results = parseOutcomes(output);
    });

    afterAll(async () => {
      await scene.close();
      rmSync(state, { recursive: true, force: true });
    });

    test("at least a hundred ways are tried", () => {
      expect(results.size).toBeGreaterThan(100);
    });

    test("nothing forbidden succeeds", () => {
      expect(escapes(results, leaks[id] ?? [])).toEqual([]);
    });

    test("what a build or a test needs still works", () => {
      expect(losses(results, id)).toEqual([]);
    });

    test("the host is as it was", () => {
      expect(readFileSync(join(scene.outside, "victim"), "utf8")).toBe("untouched\n");
      expect(readFileSync(join(scene.workspace, ".git", "config"), "utf8")).toBe("[core]\n");
      expect(existsSync(join(scene.workspace, ".callgate"))).toBe(false);
    });
  });
});

async function runPlainly(sandbox: Sandbox, { probe, workspace, env, grant }: Scene): Promise<string> {
  // Sockets of tests that run beside this one come and go while the sandbox is built, which then is built once more.
  const once = async () => {
    const command = await sandbox.confine({ argv: probe, cwd: workspace, env, grant });
    const end = await runConfined(command, 60_000);
    await command.cleanup(end);
    return end;
  };
  const first = await once();
  const end = first.neverBegan === undefined ? first : await once();
  expect(end.stderr).toBe("");
  return end.stdout;
}

async function runByLauncher(sandbox: Sandbox, { probe, workspace, env, grant }: Scene): Promise<string> {
  const processes = createProcesses();
  const exec = createExec({ processes, sandbox, grant, cwd: workspace, env, signal: new AbortController().signal });
  try {
    // The first leaves a waiting sandbox behind, which the second gets.
    await exec.run({ argv: ["true"] });
    const { stdout, stderr } = await exec.run({ argv: probe, timeoutMs: 60_000 });
    expect(stderr.head).toBe("");
    return stdout.head + stdout.tail;
  } finally {
    await processes.close();
  }
}
