/**
 * What a session changes on disk: the diff of a turn, and what can be taken back. `workspace/` reads and
 * writes the files of one folder. It knows no model, runs no command and asks nobody.
 */
import { checkOptions, optionsShape } from "../base/shape.ts";
import type { RunLater } from "../gate/run-later.ts";
import type { FileChange } from "../runtime/files.ts";
import type { Permitted } from "../spec/call.ts";
import type { CommandChanges, CommandUndo } from "./command-undo.ts";
import type { TurnDiff, TurnDiffer } from "./turn-diff.ts";
import { createUndoLog } from "./undo.ts";

/** What a turn changes on disk: shown as one diff when it ends, and kept so that it can be undone. */
export interface ChangeTracker {
  /** Loads what the first change needs, in the background. */
  warmUp(): Promise<void>;
  /**
   * Called before a call runs. The workspace is remembered once per turn, and not at all if nothing
   * changes; and once more for a command that somebody had to agree to and that is not held. Returns why
   * such a command cannot be undone.
   */
  beforeCall(call: Permitted): Promise<string | undefined>;
  /**
   * Called after a call of the model. Returns what a command did that is not held, and that can be
   * undone by its name.
   */
  afterCall(id: string, turn: string, now: number): CommandChanges | undefined;
  note(change: FileChange): void;
  /** The warning says what can no longer be undone. */
  endTurn(turn: string, now: number): { readonly diff?: TurnDiff; readonly warning?: string };
}

/** Options of `createChangeTracker`. */
export interface ChangeTrackerOptions {
  /** Files that run later, marked in the diff. Left out: our own table. */
  readonly runLater?: RunLater;
  /**
   * `all`: the folder is compared before and after every command that is not held. Left out: only for
   * those that somebody agreed to.
   */
  readonly undo?: "files" | "all";
  /** Folders inside the workspace that hold none of its work, by absolute path, such as the folder of the journals. */
  readonly except?: readonly string[];
}

const trackerShape = optionsShape<ChangeTrackerOptions>({
  runLater: "any",
  undo: { oneOf: ["files", "all"] },
  except: "strings",
});

/** Follows what a session changes in its workspace, for the diff of a turn and for undo. */
export function createChangeTracker(
  workspace: string,
  undoFile: string | (() => string),
  options: ChangeTrackerOptions = {},
): ChangeTracker {
  checkOptions("createChangeTracker", options, trackerShape);
  const { runLater, undo = "files", except = [] } = options;
  const log = createUndoLog(undoFile);
  let differ: TurnDiffer | undefined;
  let beginning: Promise<void> | undefined;
  let commands: CommandUndo | undefined;
  /** The commands that run now and can be undone, by their calls. */
  const running = new Map<string, Permitted>();
  const load = async () => {
    const { createTurnDiffer } = await import("./turn-diff.ts");
    return (differ ??= createTurnDiffer({
      workspace,
      limits: { except },
      ...(runLater === undefined ? {} : { runLater }),
    }));
  };
  const begin = async () => (await load()).begin();
  return {
    warmUp: async () => void (await load()),
    async beforeCall(call) {
      if (!call.mutates) return undefined;
      await (beginning ??= begin());
      // A call that runs again with a wider grant was remembered before it ran first.
      if (running.has(call.id) || !isLookedAt(call, undo)) return undefined;
      const { createCommandUndo, commandLimits } = await import("./command-undo.ts");
      commands ??= createCommandUndo(workspace, log, { ...commandLimits, except });
      // Beside another command nothing new is remembered. Whichever ends first is told what both have done until then.
      const why = running.size > 0 ? undefined : commands.before();
      if (why === undefined) running.set(call.id, call);
      return why;
    },
    afterCall(id, turn, now) {
      const call = running.get(id);
      if (call === undefined) return undefined;
      running.delete(id);
      const [command] = call.access.commands ?? [];
      return commands?.after(command?.argv ?? [command?.shell ?? ""], turn, now);
    },
    note(change) {
      differ?.note(change);
      log.record(change);
    },
    endTurn(turn, now) {
      running.clear(); // a call that failed with a fault has not come back
      const warning = log.close(turn, now);
      const told = warning === undefined ? {} : { warning };
      if (beginning === undefined) return told;
      beginning = undefined;
      const diff = differ?.end();
      return diff === undefined || diff.files.length === 0 ? told : { ...told, diff };
    },
  };
}

/**
 * A command of the model that writes directly, although a person was asked about it or everything is
 * to be undoable.
 */
function isLookedAt({ access, grant, ruling, parent }: Permitted, undo: "files" | "all"): boolean {
  const isCommand = (access.commands ?? []).length > 0 && parent === undefined;
  const isDirect = (grant.writes ?? "direct") === "direct";
  return isCommand && isDirect && (undo === "all" || ruling.by === "person" || ruling.by === "memory");
}
