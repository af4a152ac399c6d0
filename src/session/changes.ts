import type { FileChange } from "../runtime/files.ts";
import { createTurnDiffer, type TurnDiff } from "./turn-diff.ts";
import { createUndoLog } from "./undo.ts";

/** What a turn changes on disk: shown as one diff when it ends, kept so that it can be taken back. */
export interface ChangeTracker {
  /** Before a call that may change something: the workspace is remembered once per turn, and not at all if nothing changes. */
  beforeChange(): void;
  note(change: FileChange): void;
  endTurn(turn: string, now: number): TurnDiff | undefined;
}

export function createChangeTracker(workspace: string, undoFile: string): ChangeTracker {
  const differ = createTurnDiffer({ workspace });
  const undo = createUndoLog(undoFile);
  let begun = false;
  return {
    beforeChange() {
      if (!begun) differ.begin();
      begun = true;
    },
    note(change) {
      differ.note(change);
      undo.record(change);
    },
    endTurn(turn, now) {
      undo.close(turn, now);
      if (!begun) return undefined;
      begun = false;
      const diff = differ.end();
      return diff.files.length === 0 ? undefined : diff;
    },
  };
}
