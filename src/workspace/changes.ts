import type { RunLater } from "../gate/run-later.ts";
import type { FileChange } from "../runtime/files.ts";
import type { TurnDiff, TurnDiffer } from "./turn-diff.ts";
import { createUndoLog } from "./undo.ts";

/** What a turn changes on disk: shown as one diff when it ends, kept so that it can be taken back. */
export interface ChangeTracker {
  /** Loads what the first change needs, while nobody waits for it. */
  warmUp(): Promise<void>;
  /** Before a call that may change something: the workspace is remembered once per turn, and not at all if nothing changes. */
  beforeChange(): Promise<void>;
  note(change: FileChange): void;
  endTurn(turn: string, now: number): TurnDiff | undefined;
}

/** Follows what a session changes in its workspace, for the diff of a turn and for undo. */
export function createChangeTracker(workspace: string, undoFile: string, runLater?: RunLater): ChangeTracker {
  const undo = createUndoLog(undoFile);
  let differ: TurnDiffer | undefined;
  let beginning: Promise<void> | undefined;
  const load = async () => {
    const { createTurnDiffer } = await import("./turn-diff.ts");
    return (differ ??= createTurnDiffer({ workspace, ...(runLater === undefined ? {} : { runLater }) }));
  };
  const begin = async () => (await load()).begin();
  return {
    warmUp: async () => void (await load()),
    beforeChange: () => (beginning ??= begin()),
    note(change) {
      differ?.note(change);
      undo.record(change);
    },
    endTurn(turn, now) {
      undo.close(turn, now);
      if (beginning === undefined) return undefined;
      beginning = undefined;
      const diff = differ?.end();
      return diff === undefined || diff.files.length === 0 ? undefined : diff;
    },
  };
}
