import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { reverseRun } from "../../../src/runtime/effects/runs.ts";
import { canHold, createHeldWorkspace, heldCall, owners, snapshot } from "./held.ts";
import { program, scene } from "./programs.ts";

/** A few of them here, 200 in .ci/run; `CALLGATE_LAWS=1000 npx vitest run test/runtime/effects/laws.test.ts` for more. */
const programs = Number(process.env["CALLGATE_LAWS"] ?? 12);
const perOwner = Math.ceil(programs / owners.length);

/** Empties a folder and builds the scene in it, as its owner would. */
function reset(folder: string, uid: number): void {
  const line = `chmod -R u+rwX .; find . -mindepth 1 -delete; ${scene}`;
  spawnSync("/bin/bash", ["-c", line], { cwd: folder, uid, gid: uid, env: { PATH: process.env["PATH"] } });
}

describe.skipIf(!canHold).each(owners)(
  "held runs of user %s (skipped where nothing can be held: needs bubblewrap)",
  (uid) => {
    const held = createHeldWorkspace(uid);
    const plain = held.sibling("plain");
    afterAll(() => held.close());

    test(
      "dropped: nothing changed, inodes and ctimes included; kept: as if run directly; undone: as before",
      { timeout: 7_200_000 },
      async () => {
        await fc.assert(
          fc.asyncProperty(program, async (line) => {
            reset(held.workspace, uid);
            reset(plain, uid);
            const before = snapshot(held.workspace, "exact");
            const times = snapshot(held.workspace, "times");

            const dropped = await held.hold(line);
            expect((await dropped.settle("none")).kept).toBe("none");
            expect(snapshot(held.workspace, "exact")).toEqual(before);

            const kept = await held.hold(line);
            expect(kept.effects).toEqual(dropped.effects);
            const settled = await kept.settle("all");
            expect(settled.conflicts).toEqual([]);
            await held.direct(line, plain);
            expect(snapshot(held.workspace, "content")).toEqual(snapshot(plain, "content"));
            const after = snapshot(held.workspace, "times");

            if (settled.kept === "none") return;
            expect(await reverseRun(kept.run, "undo")).toEqual({ ok: true, conflicts: [] });
            expect(snapshot(held.workspace, "times")).toEqual(times);
            expect(await reverseRun(kept.run, "redo")).toEqual({ ok: true, conflicts: [] });
            expect(snapshot(held.workspace, "times")).toEqual(after);
            heldCall(kept.run, ["drop", kept.run.folder]);
          }),
          { numRuns: perOwner, endOnFailure: true },
        );
      },
    );
  },
);
