/**
 * Undo by snapshot, for commands that could not be held: the folder is read before and after, and the
 * differences are kept. It covers less than a held run (no links, no folders, nothing that is
 * ignored), and attributes to the command what anybody changed in the meantime. So it is called a
 * snapshot wherever it is shown.
 */
import { randomBytes } from "node:crypto";
import { compare, type Change } from "./turn-diff.ts";
import { takeSnapshot, type Snapshot, type SnapshotLimits } from "./snapshot.ts";
import { hashOf, type UndoFile, type UndoLog } from "./undo.ts";

/** What a command was found to have changed. */
export interface CommandChanges {
  /** The name under which it can be undone. Undefined if nothing of it can be. */
  readonly run?: string;
  /** The paths, relative to the folder. */
  readonly paths: readonly string[];
  /** Files that changed too, but were too large to be kept. */
  readonly leftOut: readonly string[];
  /** What can no longer be undone because of it. */
  readonly warning?: string;
}

export interface CommandUndo {
  /** Why the command cannot be undone. Undefined means that the folder was remembered. */
  before(): string | undefined;
  /** Undefined if it changed nothing. */
  after(command: readonly string[], turn: string, now: number): CommandChanges | undefined;
}

export const commandLimits: SnapshotLimits = {
  maxFiles: 20_000,
  maxFileBytes: 4 * 1024 * 1024,
  maxTotalBytes: 64 * 1024 * 1024,
};

export function createCommandUndo(
  workspace: string,
  log: UndoLog,
  bounds: SnapshotLimits = commandLimits,
): CommandUndo {
  let last: Snapshot | undefined;
  return {
    before() {
      last = takeSnapshot(workspace, bounds, last);
      if (!last.isPartial) return undefined;
      last = undefined;
      return `the folder has more than ${bounds.maxFiles.toLocaleString("en")} files, which is too many to look at before and after`;
    },
    after(command, turn, now) {
      if (last === undefined) return undefined;
      const before = last;
      const after = (last = takeSnapshot(workspace, bounds, before));
      const changes = compare(before, after);
      if (changes.length === 0) return undefined;
      const known = changes.filter((change) => change.before !== null && change.after !== null);
      const leftOut = changes.filter((change) => !known.includes(change)).map(({ path }) => path);
      const paths = known.map(({ path }) => path);
      if (known.length === 0) return { paths, leftOut };
      const run = `s${now.toString(36)}-${randomBytes(3).toString("hex")}`;
      const files = known.map((change) => toUndoFile(change, before));
      const warning = log.add({ turn: run, at: now, files, snapshot: { of: turn, command, leftOut } });
      return { run, paths, leftOut, ...(warning === undefined ? {} : { warning }) };
    },
  };
}

function toUndoFile({ path, before, after }: Change, old: Snapshot): UndoFile {
  return {
    path: old.absolute(path),
    before: before ? Buffer.from(before).toString("base64") : null,
    after: after ? hashOf(after) : null,
    mode: old.files.get(path)?.mode ?? 0o644,
  };
}
