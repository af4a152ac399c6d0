import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { findPlace } from "../../../src/runtime/effects/place.ts";
import { dropRun, recoverRuns, reverseRun } from "../../../src/runtime/effects/runs.ts";
import { canHold, createHeldWorkspace, grantFor, owners, snapshot, type Undecided } from "./held.ts";
import type { HeldRun } from "../../../src/runtime/process/child.ts";
import { tryHeld } from "../../../src/runtime/effects/probe.ts";
import { makeRoom, readRuns } from "../../../src/runtime/effects/store.ts";
import { createProcesses } from "../../../src/runtime/processes.ts";
import { createSandbox } from "../../../src/runtime/sandbox/sandbox.ts";

describe.skipIf(!canHold).each(owners)(
  "what a held run of user %s did (skipped where nothing can be held: needs bubblewrap)",
  (uid) => {
    const held = createHeldWorkspace(uid);
    const { workspace } = held;
    afterAll(() => held.close());
    const fresh = (line: string) => held.direct(`chmod -R u+rwX .; find . -mindepth 1 -delete; ${line}`);
    const did = async (line: string) => {
      const run = await held.hold(line);
      const list = run.effects.map(({ kind, path, typeBefore, touched }) =>
        [kind, path, ...(typeBefore ? [`was ${typeBefore}`] : []), ...(touched ? ["touched"] : [])].join(" "),
      );
      return { ...run, list };
    };

    test("a run that somebody is still asked about is left alone by others who tidy up, and one whose asker is gone is not", async () => {
      await fresh("echo a > a");
      const run = await held.hold("echo b > b");
      const place = dirname(run.run.folder);
      await recoverRuns({ ...run.run, folder: place });
      expect(existsSync(run.run.folder)).toBe(true);
      expect(await run.settle("all")).toMatchObject({ kept: "all" });
      const orphan = await held.hold("echo c > c");
      writeFileSync(join(orphan.run.folder, "owner"), "999999 1");
      expect(await recoverRuns({ ...orphan.run, folder: place })).toMatchObject([{ state: "dropped" }]);
      expect(existsSync(orphan.run.folder)).toBe(false);
    });

    test.each([
      ["nothing that is only read or opened", "echo a > a", "cat a; : >> a", []],
      ["chmod and back is nothing", "echo a > a", "chmod 600 a; chmod 644 a", []],
      ["a touch is a touch", "echo a > a", "touch -d 2001-01-01 a", ["mode a touched"]],
      [
        "a folder emptied and filled again is what differs in it",
        "mkdir d; echo a > d/a; echo b > d/b",
        "rm -rf d; mkdir d; echo a > d/a; echo c > d/c",
        ["mode d/a touched", "removed d/b", "added d/c"].toSorted(),
      ],
      [
        "a file where a folder was",
        "mkdir d; echo a > d/a",
        "rm -rf d; echo f > d",
        ["changed d was folder", "removed d/a"],
      ],
      ["a folder where a file was", "echo f > d", "rm d; mkdir d; echo a > d/a", ["changed d was file", "added d/a"]],
      [
        "a folder inside an emptied one hides what was there",
        "mkdir -p d/s; echo a > d/s/a",
        "rm -rf d; mkdir -p d/s; echo b > d/s/b",
        ["removed d/s/a", "added d/s/b"].toSorted(),
      ],
      ["a link that points elsewhere", "ln -s x l", "ln -sfn y l", ["changed l"]],
      ["what came and went is nothing", "true", "echo a > t; rm t; mkdir d; rmdir d", []],
      ["a moved file is one gone and one new", "echo a > a", "mv a b", ["removed a", "added b"].toSorted()],
    ])("%s", async (_title, before, line, expected) => {
      await fresh(before);
      const { list, settle } = await did(line);
      expect(list.toSorted()).toEqual([...expected].toSorted());
      await settle("none");
    });

    test("the kernel's marks do not stay on what was kept", async () => {
      await fresh("echo a > a; chmod 444 a; mkdir d; echo b > d/b");
      const { settle } = await held.hold(
        "chmod 600 a; echo x >> a; chmod 444 a; rm -rf d; mkdir d; echo c > d/c; mv a z",
      );
      await settle("all");
      expect(await held.direct(`python3 -c "${listMarks}"`)).toBe(0);
    });

    test("a part brings the folders it needs, and the rest stays as it was", async () => {
      await fresh("mkdir old; echo 1 > old/one; echo 2 > old/two; echo k > keep");
      const { settle, run } = await held.hold(
        "mkdir -p n/deep; echo a > n/deep/a; echo b > n/deep/b; rm -r old; echo x > keep",
      );
      expect(await settle({ paths: ["n/deep/a", "old/one"] })).toMatchObject({ kept: "part", conflicts: [] });
      expect([existsSync(join(workspace, "n/deep/a")), existsSync(join(workspace, "n/deep/b"))]).toEqual([true, false]);
      expect(readdirSync(join(workspace, "old"))).toEqual(["two"]);
      expect(readFileSync(join(workspace, "keep"), "utf8")).toBe("k\n");
      expect(await reverseRun(run, "undo")).toEqual({ ok: true, conflicts: [] });
      expect(readdirSync(workspace).toSorted()).toEqual(["keep", "old"]);
      expect(readdirSync(join(workspace, "old"))).toEqual(["one", "two"]);
    });

    test("other names of a file are told, because they keep the old content", async () => {
      await fresh("echo a > a; ln a other");
      const { effects, settle } = await held.hold("echo b > a");
      expect(effects[0]).toMatchObject({ path: "a", otherNames: 1 });
      await settle("all");
      expect(readFileSync(join(workspace, "other"), "utf8")).toBe("a\n");
    });

    test("undo leaves alone what came since, and says so", async () => {
      await fresh("true");
      const { run, settle } = await held.hold("mkdir n; echo a > n/a");
      await settle("all");
      writeFileSync(join(workspace, "n/mine"), "mine\n");
      expect(await reverseRun(run, "undo")).toEqual({ ok: false, conflicts: ["n"] });
      expect(existsSync(join(workspace, "n/mine"))).toBe(true);
    });

    test.each([
      [
        "the x bit taken",
        "mkdir -p d/s; echo a > d/a; echo b > d/s/b",
        "echo c > d/a; echo c > d/s/b; chmod 644 d/s d",
      ],
      ["all bits taken", "mkdir -p d/s; echo a > d/a; echo b > d/s/b", "rm d/a; mkdir d/n; chmod 000 d/s; chmod 000 d"],
      ["closed before", "mkdir d; echo a > d/a; chmod 000 d", "chmod 700 d; echo b > d/a; echo n > d/n"],
      ["closed before and after", "mkdir d; echo a > d/a; chmod 600 d", "chmod 700 d; echo b > d/a; chmod 600 d"],
    ])("a folder that is closed to its owner is no obstacle to keep and undo: %s", async (_title, before, line) => {
      await fresh(before);
      const plain = held.sibling(`closed-${randomUUID()}`);
      await held.direct(before, plain);
      const times = snapshot(workspace, "times");
      const { run, settle } = await held.hold(line);
      expect(await settle("all")).toMatchObject({ kept: "all", conflicts: [] });
      await held.direct(line, plain);
      expect(snapshot(workspace, "content")).toEqual(snapshot(plain, "content"));
      expect(await reverseRun(run, "undo")).toEqual({ ok: true, conflicts: [] });
      expect(snapshot(workspace, "times")).toEqual(times);
    });

    test("an undo that stops at a conflict below a closed folder leaves its mode as it was found", async () => {
      await fresh("mkdir d; echo a > d/a; echo b > d/b");
      const { run, settle } = await held.hold("echo c > d/a; echo c > d/b; chmod 644 d");
      await settle("all");
      await held.direct("chmod 755 d; echo mine > d/a; chmod 644 d");
      const found = snapshot(workspace, "exact");
      expect(await reverseRun(run, "undo")).toEqual({ ok: false, conflicts: ["d/a"] });
      expect(snapshot(workspace, "exact")).toEqual(found);
    });

    test("runs that changed the same files are taken back one after the other, and done again", async () => {
      await fresh("echo 0 > a; mkdir d; echo 0 > d/x");
      const states: (readonly string[])[] = [snapshot(workspace, "times")];
      const runs: HeldRun[] = [];
      const lines = [
        "echo 1 >> a; echo 1 > d/x; mkdir n; echo 1 > n/f",
        "echo 2 >> a; echo 2 > n/f; echo 2 > n/g; chmod 700 d",
        "rm a; rm -r n; chmod 755 d; echo 3 > d/x",
      ];
      for (const line of lines) {
        const { run, settle } = await held.hold(line);
        await settle("all");
        runs.push(run);
        states.push(snapshot(workspace, "times"));
      }
      for (let round = 0; round < 2; round++) {
        for (const at of [2, 1, 0]) {
          expect(await reverseRun(runs[at]!, "undo")).toEqual({ ok: true, conflicts: [] });
          expect(snapshot(workspace, "times")).toEqual(states[at]);
        }
        for (const at of [0, 1, 2]) {
          expect(await reverseRun(runs[at]!, "redo")).toEqual({ ok: true, conflicts: [] });
          expect(snapshot(workspace, "times")).toEqual(states[at + 1]);
        }
      }
      await reverseRun(runs[2]!, "undo");
      writeFileSync(join(workspace, "n/f"), "mine\n");
      expect(await reverseRun(runs[1]!, "undo")).toEqual({ ok: false, conflicts: ["n/f"] });
    });

    test("a file that was replaced by its like is no conflict; one that says something else is", async () => {
      await fresh("echo 0 > a");
      const { run, settle } = await held.hold("echo 1 > a; echo 1 > b");
      await settle("all");
      await held.direct("cp a t; mv t a; cp b t; mv t b"); // other inodes
      expect(await reverseRun(run, "undo")).toEqual({ ok: true, conflicts: [] });
      await held.direct("cp a t; mv t a");
      expect(await reverseRun(run, "redo")).toEqual({ ok: true, conflicts: [] });
      expect(readFileSync(join(workspace, "a"), "utf8")).toBe("1\n");
      await held.direct("echo 2 > t; mv t b");
      expect(await reverseRun(run, "undo")).toEqual({ ok: false, conflicts: ["b"] });
      await held.direct("echo 1 > t; chmod 600 t; mv t b"); // its like, but not as open
      expect(await reverseRun(run, "undo")).toEqual({ ok: false, conflicts: ["b"] });
    });

    test("a folder's mode that somebody set since is not overwritten, by undo, redo or keep", async () => {
      await fresh("mkdir d e; echo a > d/a");
      const kept = await held.hold("chmod 700 d; echo b > d/a");
      await kept.settle("all");
      await held.direct("chmod 750 d");
      expect(await reverseRun(kept.run, "check-undo")).toEqual({ ok: false, conflicts: ["d"] });
      expect(await reverseRun(kept.run, "undo")).toEqual({ ok: false, conflicts: ["d"] });
      expect(readFileSync(join(workspace, "d/a"), "utf8")).toBe("b\n");
      await held.direct("chmod 700 d");
      expect(await reverseRun(kept.run, "undo")).toEqual({ ok: true, conflicts: [] });
      await held.direct("chmod 711 d");
      expect(await reverseRun(kept.run, "check-redo")).toEqual({ ok: false, conflicts: ["d"] });

      const asked = await held.hold("chmod 700 e; echo c > c");
      await held.direct("chmod 711 e"); // while it is asked about
      expect(await asked.settle("all")).toMatchObject({ kept: "part", conflicts: ["e"] });
      const meanwhile = await held.hold("chmod 700 e");
      await held.direct("chmod 755 e");
      expect(await meanwhile.settle("all")).toMatchObject({ kept: "none", conflicts: ["e"] });
      expect(await held.direct("test $(stat -c %a d) = 711 && test $(stat -c %a e) = 755")).toBe(0);
    });

    test("nothing of a dropped run is left on the disk", async () => {
      await fresh("echo a > a");
      const { run, settle } = await held.hold("echo b > a; mkdir d; chmod 000 d");
      await settle("none");
      expect(existsSync(run.folder)).toBe(false);
      expect(readdirSync(dirname(run.folder))).not.toContain(run.id);
    });

    // Only root can give files to another group.
    if (uid === 0)
      test("files of another group are said before, and then nothing is held", async () => {
        await fresh("echo a > a");
        const { chownSync } = await import("node:fs");
        chownSync(join(workspace, "a"), 0, 5);
        const sandbox = createSandbox({ machine: { stateDir: held.home } });
        expect(await sandbox.whyNotHeld(grantFor(workspace), workspace)).toContain("another user or group");
        await fresh("mkdir -p d/e; echo a > d/e/a");
        chownSync(join(workspace, "d/e/a"), 0, 5);
        const processes = createProcesses();
        const trial = { sandbox, spawner: processes.spawner, grant: grantFor(workspace), cwd: workspace };
        expect(await tryHeld(trial)).toBe("d/e/a belongs to another user or group");
        chownSync(join(workspace, "d/e/a"), 0, 0);
        expect(await tryHeld(trial)).toBeUndefined();
        await processes.close();
        await sandbox.close();
      });

    test("the store is bounded: the oldest runs go first, never the newest, and it is said which went", async () => {
      await fresh("echo 0 > a");
      const runs: Undecided[] = [];
      for (let at = 1; at <= 5; at++) {
        runs.push(await held.hold(`echo ${at}0000 > a`));
        await runs.at(-1)?.settle("all");
      }
      const [first] = runs;
      const place = dirname(first!.run.folder);
      const ids = () => readRuns(place).map(({ run }) => run);
      const before = ids();
      const newest = before.at(-1)!;
      expect(await makeRoom(place, newest, dropRun, { runs: 3, bytes: 1e9 })).toEqual(before.slice(0, -3));
      expect(ids()).toEqual(before.slice(-3));
      expect(ids()).not.toContain(first!.run.id);
      expect(await makeRoom(place, newest, dropRun, { runs: 99, bytes: 1 })).toEqual(before.slice(-3, -1));
      expect(ids()).toEqual([newest]);
      expect(readdirSync(place).filter((name) => name.startsWith("r"))).toEqual([newest]);
      expect(readFileSync(join(workspace, "a"), "utf8")).toBe("50000\n");
    });
  },
);

/** Ends with 1 where anything below still has one. */
const listMarks =
  "import os,sys; sys.exit(any('overlay' in n for r,ds,fs in os.walk('.') for f in ds+fs+['.'] for n in os.listxattr(os.path.join(r,f), follow_symlinks=False)))";

test.skipIf(!existsSync("/dev/shm"))(
  "a workspace in /dev, which a sandbox has its own of, is said to be impossible",
  () => {
    const workspace = mkdtempSync("/dev/shm/callgate-");
    onTestFinished(() => rmSync(workspace, { recursive: true }));
    const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0];
    expect(findPlace([workspace], { stateDir: workspace, uid, gid })).toEqual({
      reason: expect.stringContaining("lies in /dev"),
    });
  },
);
