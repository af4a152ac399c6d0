/** What can be taken back in a workspace: turns of file tools and kept runs, in one list. */
import { existingPlaces } from "../../runtime/effects/place.ts";
import { recoverRuns } from "../../runtime/effects/runs.ts";
import { readRuns, toRun } from "../../runtime/effects/store.ts";
import type { RunRecord } from "../../runtime/effects/store.ts";
import type { HeldRun } from "../../runtime/process/child.ts";
import { thisMachine } from "../../runtime/sandbox/machine.ts";
import type { UndoLog, UndoRecord } from "../../workspace/undo.ts";

export type Undoable = UndoableRun | UndoableTurn;

export interface UndoableRun {
  readonly kind: "command";
  readonly id: string;
  readonly at: number;
  readonly state: "kept" | "undone";
  readonly record: RunRecord;
  readonly run: HeldRun;
}

export interface UndoableTurn {
  readonly kind: "files";
  readonly id: string;
  readonly at: number;
  readonly state: "kept";
  readonly turn: UndoRecord;
}

/** Newest first. What a kill interrupted is finished before it is listed. */
export async function undoable(workspace: string, log: UndoLog): Promise<readonly Undoable[]> {
  const machine = thisMachine();
  const places = existingPlaces(workspace, { stateDir: machine.stateDir, uid: machine.uid, gid: machine.gid });
  const runs: UndoableRun[] = [];
  for (const place of places) {
    await recoverRuns({ folder: place });
    for (const record of readRuns(place)) {
      const { run: id, at, state } = record;
      runs.push({ kind: "command", id, at, state, record, run: toRun(record, place) });
    }
  }
  const turns = log
    .all()
    .map((turn): UndoableTurn => ({ kind: "files", id: turn.turn, at: turn.at, state: "kept", turn }));
  return [...runs, ...turns].toSorted((a, b) => b.at - a.at);
}

/** `make release: 3 changed, 1 removed`. */
export function runWords({ command, counts }: RunRecord): string {
  const parts = (["removed", "changed", "added", "mode"] as const).filter((kind) => counts[kind] > 0);
  return `${command.join(" ")}: ${parts.map((kind) => `${counts[kind]} ${kind}`).join(", ") || "folders only"}`;
}
