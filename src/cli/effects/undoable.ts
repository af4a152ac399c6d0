/** What can be undone in a workspace, in one list: kept runs, commands by snapshot, and turns of file tools. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { CallError } from "../../base/error.ts";
import { defined, isObject } from "../../base/json.ts";
import { stateDir } from "../../base/paths.ts";
import { existingPlaces } from "../../runtime/effects/place.ts";
import { recoverRuns, reverseRun } from "../../runtime/effects/runs.ts";
import { readRuns, toRun } from "../../runtime/effects/store.ts";
import type { RunRecord } from "../../runtime/effects/store.ts";
import { thisMachine } from "../../runtime/sandbox/machine.ts";
import { listSessions } from "../../store/sessions.ts";
import {
  createUndoLog,
  filesToUndo,
  reverseTurn,
  undoFile,
  type Undone,
  type UndoLog,
  type UndoRecord,
} from "../../workspace/undo.ts";

export interface Undoable {
  readonly kind: "command" | "snapshot" | "files";
  readonly id: string;
  readonly at: number;
  readonly state: "kept" | "undone";
  /** When it was taken back. */
  readonly undoneAt?: number;
  /** `make release: 3 changed, 1 removed`. */
  readonly what: string;
  readonly session?: string;
  /** The turn of the session, which a kept run does not know. */
  readonly turn?: string;
  /** As `undo --list --json` prints it. */
  readonly json: Readonly<Record<string, unknown>>;
  /** Undoes it, or does it again: all of it or nothing. */
  reverse(dryRun: boolean): Promise<Reversal>;
}

export interface Reversal {
  readonly ok: boolean;
  /** Paths that are not as they were left. If there are any, nothing was done. */
  readonly conflicts: readonly string[];
  /** Why nothing was done. */
  readonly error?: string;
  /** What happened to each file, if file tools or a snapshot are undone. */
  readonly files?: readonly Undone[];
}

/** The folder in which a run or a turn can be undone, wherever that is. Undefined if nothing here knows it. */
export function findWorkspaceOf(id: string, env: NodeJS.ProcessEnv): string | undefined {
  const state = stateDir(env);
  for (const name of namesIn(join(state, "undo"))) {
    const file = join(state, "undo", name);
    const record = readFileSync(file, "utf8").includes(JSON.stringify(id))
      ? createUndoLog(file)
          .all()
          .find(({ turn }) => turn === id)
      : undefined;
    // The file has the name of its workspace, as a hash, and what changed lies in that workspace.
    const found = record?.files.flatMap(({ path }) => parentsOf(path)).find((folder) => undoFile(folder, env) === file);
    if (found !== undefined) return found;
  }
  const runIn = (place: string) => readRuns(place).find(({ run }) => run === id)?.roots[0];
  for (const name of namesIn(join(state, "held"))) {
    const found = runIn(join(state, "held", name));
    if (found !== undefined) return found;
  }
  // Runs of another disk lie beside their workspace or in it. Sessions say where they worked.
  const { uid, gid } = thisMachine();
  const folders = new Set(listSessions(state).map(({ cwd }) => cwd));
  return [...folders].find((folder) =>
    existingPlaces(folder, { stateDir: state, uid, gid }).some((place) => runIn(place) !== undefined),
  );
}

function namesIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function parentsOf(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...parentsOf(parent)];
}

/** Newest first. What a kill interrupted is finished before it is listed. */
export async function undoable(workspace: string, log: UndoLog): Promise<readonly Undoable[]> {
  const machine = thisMachine();
  const places = existingPlaces(workspace, { stateDir: machine.stateDir, uid: machine.uid, gid: machine.gid });
  const runs: Undoable[] = [];
  for (const place of places) {
    await recoverRuns({ folder: place });
    for (const record of readRuns(place)) runs.push(fromRun(record, place));
  }
  const turns = log.all().map((record) => fromTurn(record, workspace, log));
  return [...runs, ...turns].toSorted((a, b) => b.at - a.at);
}

/** What is undone next, or, with `redo`, what was undone last. */
export function nextOf(all: readonly Undoable[], redo: boolean): Undoable | undefined {
  if (!redo) return all.find(({ state }) => state === "kept");
  return all.filter(({ state }) => state === "undone").toSorted((a, b) => b.undoneAt! - a.undoneAt!)[0];
}

function fromRun(record: RunRecord, place: string): Undoable {
  const { run: id, at, state, since, session, command, cwd, kept, counts, bytes } = record;
  return {
    kind: "command",
    id,
    at,
    state,
    what: `${command.join(" ")}: ${countWords(counts)}`,
    ...defined({ session, undoneAt: state === "undone" ? since : undefined }),
    json: { run: id, kind: "command", at, state, command, cwd, kept, counts, bytes, ...defined({ session }) },
    async reverse(dryRun) {
      const what = state === "undone" ? "redo" : "undo";
      const { ok, conflicts } = await reverseRun(toRun(record, place), dryRun ? `check-${what}` : what);
      return ok ? { ok, conflicts } : { ok, conflicts, error: "it was changed since" };
    },
  };
}

function countWords(counts: RunRecord["counts"]): string {
  const parts = (["removed", "changed", "added", "mode"] as const).filter((kind) => counts[kind] > 0);
  return parts.map((kind) => `${counts[kind]} ${kind}`).join(", ") || "folders only";
}

function fromTurn(record: UndoRecord, workspace: string, log: UndoLog): Undoable {
  const { turn: id, at, undoneAt, snapshot } = record;
  const state = undoneAt === undefined ? "kept" : "undone";
  const paths = record.files.map(({ path }) => relative(workspace, path));
  const names = paths.length > 3 ? `${paths.slice(0, 3).join(", ")} and ${paths.length - 3} more` : paths.join(", ");
  const of = snapshot?.of ?? id;
  const [session, turn] = of.includes(":") ? [of.slice(0, of.lastIndexOf(":")), of.slice(of.lastIndexOf(":") + 1)] : [];
  const files = record.files.map(({ path }) => path);
  return {
    kind: snapshot === undefined ? "files" : "snapshot",
    id,
    at,
    state,
    what: snapshot === undefined ? `file tools: ${names}` : snapshotWords(snapshot.command, names, snapshot.leftOut),
    ...defined({ session, turn, undoneAt }),
    json:
      snapshot === undefined
        ? { turn: id, kind: "files", at, state, files }
        : { run: id, kind: "snapshot", at, state, command: snapshot.command, files, leftOut: snapshot.leftOut },
    async reverse(dryRun) {
      try {
        const { done, inverse } = await reverseTurn(record, filesToUndo(workspace), { dryRun });
        if (!dryRun) log.replace(record, inverse);
        return { ok: true, conflicts: [], files: done };
      } catch (error) {
        if (!CallError.is(error)) throw error;
        const found = isObject(error.data) ? error.data["conflicts"] : undefined;
        const conflicts = Array.isArray(found) ? found.map((path) => relative(workspace, String(path))) : [];
        return { ok: false, conflicts, error: error.message };
      }
    },
  };
}

function snapshotWords(command: readonly string[], names: string, leftOut: readonly string[]): string {
  const left = leftOut.length === 0 ? "" : `; too large to be kept: ${leftOut.join(", ")}`;
  return `${command.join(" ")}: by snapshot, ${names}${left}`;
}
