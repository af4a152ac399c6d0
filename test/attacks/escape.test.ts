import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dropRun } from "../../src/runtime/effects/runs.ts";
import { createExec } from "../../src/runtime/exec.ts";
import type { HeldRun } from "../../src/runtime/process/child.ts";
import { launcherPath } from "../../src/runtime/process/launcher-path.ts";
import { createProcesses } from "../../src/runtime/processes.ts";
import { createSandbox, trySandboxes } from "../../src/runtime/sandbox/sandbox.ts";
import type { Sandbox } from "../../src/runtime/sandbox/sandbox.ts";
import { escapes, leaks, losses, parseOutcomes } from "./expected.ts";
import { snapshot } from "../runtime/effects/held.ts";
import { createScene } from "./scene.ts";
import type { Scene } from "./scene.ts";
import { confineAndRun } from "../runtime/sandbox/run-confined.ts";

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

/** A held command may write to the repository, in its own copy: what it did there is shown before any of it counts. */
const heldGit = ["write_git_config", "create_git_hook", "unlink_git_config", "chmod_git_config", "hardlink_git_config"];
const holds = launcherPath() !== undefined && candidates.some(({ id, ok }) => id === "bwrap" && ok);

describe.skipIf(!holds).each(users)("escape from a held run as $user (needs bubblewrap)", ({ owner }) => {
  let scene: Scene;
  let results: ReadonlyMap<string, string>;
  let before: readonly string[];

  beforeAll(async () => {
    scene = await createScene(owner);
    // Beside the workspace, so that it lies on the same disk.
    const sandbox = createSandbox({
      only: "bwrap",
      machine: { env: scene.env, stateDir: join(scene.folder, "state") },
    });
    before = snapshot(scene.workspace, "exact");
    results = parseOutcomes(await runHeld(sandbox, scene));
    await sandbox.close();
  });

  afterAll(() => scene.close());

  test("nothing forbidden succeeds, and what a build or a test needs still works", () => {
    expect(results.size).toBeGreaterThan(100);
    expect(escapes(results, heldGit)).toEqual([]);
    expect(losses(results, "bwrap")).toEqual([]);
  });

  test("dropped, the workspace is as it was, inodes and ctimes included, and so is the host", () => {
    expect(snapshot(scene.workspace, "exact")).toEqual(before);
    expect(readFileSync(join(scene.outside, "victim"), "utf8")).toBe("untouched\n");
  });
});

async function runHeld(sandbox: Sandbox, { probe, workspace, env, grant }: Scene): Promise<string> {
  const processes = createProcesses();
  const once = async (argv: readonly string[]) => {
    let run: HeldRun | undefined;
    const exec = createExec({
      processes,
      sandbox,
      grant: { ...grant, writes: "held" },
      cwd: workspace,
      env,
      signal: new AbortController().signal,
      onHeld: (held) => (run = held),
    });
    const { stdout, stderr } = await exec.run({ argv, timeoutMs: 60_000 });
    expect(stderr.head).toBe("");
    expect(run).toBeDefined();
    if (run !== undefined) await dropRun(run);
    return stdout.head + stdout.tail;
  };
  try {
    await once(["true"]); // leaves a waiting sandbox behind, which the next one gets
    return await once(probe);
  } finally {
    await processes.close();
  }
}

async function runPlainly(sandbox: Sandbox, { probe, workspace, env, grant }: Scene): Promise<string> {
  const end = await confineAndRun(sandbox, { argv: probe, cwd: workspace, env, grant }, 60_000);
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
