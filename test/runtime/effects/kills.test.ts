import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { HeldRun } from "../../../src/runtime/process/child.ts";
import { launcherPath } from "../../../src/runtime/process/launcher-path.ts";
import { recoverRuns, reverseRun } from "../../../src/runtime/effects/runs.ts";
import { canHold, createHeldWorkspace, heldCall, owners, snapshot } from "./held.ts";
import { program, scene } from "./programs.ts";

/** 50 by `CALLGATE_KILLS=50 npx vitest run test/runtime/effects/kills.test.ts`. */
const programs = Number(process.env["CALLGATE_KILLS"] ?? 2);

/** As if whoever was to decide about the run had been killed as well: this process lives on. */
function orphan(run: HeldRun): void {
  rmSync(join(run.folder, "owner"));
}

describe.skipIf(!canHold).each(owners)(
  "killed as user %s (skipped where nothing can be held: needs bubblewrap)",
  (uid) => {
    const held = createHeldWorkspace(uid);
    afterAll(() => held.close());

    test("before any change of the disk, in keep and in undo: the next start finishes it, and it is never between", async () => {
      await fc.assert(
        fc.asyncProperty(program, async (line) => {
          spawnSync("chmod", ["-R", "u+rwX", held.workspace]);
          await held.direct(`find . -mindepth 1 -delete; ${scene}`);
          const before = snapshot(held.workspace, "times");
          const content = snapshot(held.workspace, "content");
          const first = await held.hold(line);
          if ((await first.settle("all")).kept === "none") return;
          const after = snapshot(held.workspace, "content");
          await reverseRun(first.run, "undo");
          heldCall(first.run, ["drop", first.run.folder]);

          for (let stop = 0, killed = true; killed; stop++) {
            const { run } = await held.hold(line);
            orphan(run);
            const runs = { ...run, folder: dirname(run.folder) };
            killed = heldCall(run, ["keep", run.folder], stop, "all") === null;
            const [recovered] = await recoverRuns(runs);
            expect(recovered?.state).toBe(killed ? (stop === 0 ? "dropped" : "kept") : undefined);
            expect(snapshot(held.workspace, "content")).toEqual(recovered?.state === "dropped" ? content : after);
            if (recovered?.state === "dropped") continue;
            const undone = heldCall(run, ["undo", run.folder], stop);
            const [finished] = await recoverRuns(runs);
            // Killed before it said so on disk, nothing was taken back yet.
            if (undone === null && finished === undefined) expect(heldCall(run, ["undo", run.folder])).toBe(0);
            expect(snapshot(held.workspace, "times")).toEqual(before);
            heldCall(run, ["drop", run.folder]);
          }
        }),
        { numRuns: Math.ceil(programs / owners.length), endOnFailure: true },
      );
    }, 600_000);

    test("at a random time", async () => {
      await held.direct(`find . -mindepth 1 -delete; mkdir d; for i in {1..300}; do echo old > d/f$i; done`);
      const content = snapshot(held.workspace, "content");
      const line = "for i in {1..300}; do echo new > d/f$i; done";
      for (let round = 0; round < 6; round++) {
        const { run } = await held.hold(line);
        orphan(run);
        const runs = { ...run, folder: dirname(run.folder) };
        const seconds = (0.001 + Math.random() * 0.03).toFixed(4);
        spawnSync("timeout", ["-s", "KILL", seconds, launcherPath()!, "held", "keep", run.folder], {
          input: "all",
          ...(uid === process.getuid?.() ? {} : { uid, gid: uid }),
        });
        const [recovered] = await recoverRuns(runs);
        const now = snapshot(held.workspace, "content");
        const news = now.filter((entry, at) => entry !== content[at]).length;
        expect(recovered?.state === "dropped" ? [0] : [300]).toContain(news);
        if (recovered?.state === "dropped") continue;
        expect(heldCall(run, ["undo", run.folder])).toBe(0);
        expect(snapshot(held.workspace, "content")).toEqual(content);
        heldCall(run, ["drop", run.folder]);
      }
    }, 120_000);
  },
);
