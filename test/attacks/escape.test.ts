import { existsSync, readFileSync } from "node:fs";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSandbox, runConfined, trySandboxes } from "../../src/runtime/sandbox/sandbox.ts";
import { createScene } from "./scene.ts";
import type { Scene } from "./scene.ts";

/** What must stay possible; every other probe must fail. */
const allowed = [
  "write_workspace",
  "mkdir_workspace",
  "write_temp",
  "write_dev_null",
  "write_shm",
  "read_passwd",
  "read_git",
  "fork_exec",
  "serve_loopback",
  "serve_unix",
  "list_interfaces",
];

/** The outer process list shows through a bound /proc; nothing behind a name in it may. */
const boundProcShows = ["see_host_process"];

const rungs = (await trySandboxes()).filter(({ id }) => !id.endsWith("-old"));
const wanted = ["bwrap", "bwrap-bound-proc"];
const isRoot = process.getuid?.() === 0;
const nobody = { uid: 65534, gid: 65534 };
const users = isRoot
  ? ([
      ["root", undefined],
      ["an ordinary user", nobody],
    ] as const)
  : ([["this user", undefined]] as const);

describe.each(wanted)("escape from %s", (id) => {
  const works = rungs.some((rung) => rung.id === id && rung.ok);
  describe.skipIf(!works).each(users)("as %s", (_name, owner) => {
    let scene: Scene;
    let results: ReadonlyMap<string, string>;
    const state = mkdtempSync(join(tmpdir(), "callgate-state-"));

    beforeAll(async () => {
      scene = await createScene(owner);
      const sandbox = createSandbox({ only: id, machine: { env: scene.env, stateDir: state } });
      const command = await sandbox.confine({
        argv: scene.probe,
        cwd: scene.workspace,
        env: scene.env,
        grant: scene.grant,
      });
      const run = await runConfined(command, 60_000);
      await command.cleanup(run);
      await sandbox.close();
      expect(run.stderr).toBe("");
      results = new Map(
        run.stdout
          .trim()
          .split("\n")
          .map((line) => [line.split(" ")[0] ?? "", line.slice(line.indexOf(" ") + 1)]),
      );
    });

    afterAll(async () => {
      await scene.close();
      rmSync(state, { recursive: true, force: true });
    });

    test("at least a hundred ways are tried", () => {
      expect(results.size).toBeGreaterThan(100);
    });

    test("nothing forbidden succeeds", () => {
      const shown = id === "bwrap-bound-proc" ? boundProcShows : [];
      const succeeded = [...results].filter(([, outcome]) => outcome === "ok").map(([name]) => name);
      expect(succeeded.filter((name) => !allowed.includes(name) && !shown.includes(name))).toEqual([]);
    });

    test("what a build or a test needs still works", () => {
      expect(
        allowed.filter((name) => results.get(name) !== "ok").map((name) => `${name} ${results.get(name)}`),
      ).toEqual([]);
    });

    test("the host is as it was", () => {
      expect(readFileSync(join(scene.outside, "victim"), "utf8")).toBe("untouched\n");
      expect(readFileSync(join(scene.workspace, ".git", "config"), "utf8")).toBe("[core]\n");
      expect(existsSync(join(scene.workspace, ".callgate"))).toBe(false);
    });
  });
});
