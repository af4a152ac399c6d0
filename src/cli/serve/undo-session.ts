/** Taking back what a session of the service did: what its file tools wrote, and the held runs it kept. */
import { realpathSync } from "node:fs";
import { relative } from "node:path";
import { CallError } from "../../base/error.ts";
import type { Json } from "../../base/json.ts";
import type { Undone } from "../../serve/index.ts";
import { createUndoLog, filesToUndo, undoFile, undoTurn, type UndoLog } from "../../workspace/undo.ts";
import { undoable, type Undoable } from "../effects/undoable.ts";

/** Which held runs this session kept, and in which turn, from what it recorded and from what happens now. */
export function createKeptRuns(records: readonly Readonly<Record<string, unknown>>[]) {
  const turns = new Map<string, string>();
  let turn = "";
  const heard = (event: {
    readonly type?: unknown;
    readonly turn?: unknown;
    readonly run?: unknown;
    readonly kept?: unknown;
  }) => {
    if (event.type === "turn.started") turn = String(event.turn);
    if (event.type === "effects.settled" && event.kept !== "none") turns.set(String(event.run), turn);
  };
  for (const record of records) heard(record);
  return { turns, heard };
}

export interface SessionToUndo {
  readonly cwd: string;
  readonly id: string;
  readonly env: NodeJS.ProcessEnv;
  /** Of each kept run. */
  readonly turns: ReadonlyMap<string, string>;
}

/** The newest of what the session's file tools and kept commands did, or all that one turn did, newest first. */
export async function undoInSession({ cwd, id, env, turns }: SessionToUndo, turn: string | undefined): Promise<Undone> {
  const workspace = realpathSync(cwd);
  const log = createUndoLog(undoFile(cwd, env));
  const turnOf = (one: Undoable) => (one.kind === "command" ? turns.get(one.id) : ownTurn(one.id, id));
  const own = (await undoable(workspace, log)).filter(
    (one) => one.state === "kept" && turnOf(one) !== undefined && (turn === undefined || turnOf(one) === turn),
  );
  const wanted = turn === undefined ? own.slice(0, 1) : own;
  if (wanted.length === 0) return { undone: [], conflicts: ["there is nothing to take back"] };
  const done: { undone: Json[]; runs: string[]; conflicts: string[] } = { undone: [], runs: [], conflicts: [] };
  for (const one of wanted) {
    const { undone, runs = [], conflicts } = await undoOne(one, workspace, log);
    done.undone.push(...undone);
    done.runs.push(...runs);
    done.conflicts.push(...conflicts);
    if (conflicts.length > 0) break; // what is older lies below what could not be taken back
  }
  return done;
}

function ownTurn(turn: string, id: string): string | undefined {
  return turn.startsWith(`${id}:`) ? turn.slice(id.length + 1) : undefined;
}

async function undoOne(one: Undoable, workspace: string, log: UndoLog): Promise<Undone> {
  if (one.kind === "command") {
    const { reverseRun } = await import("../../runtime/effects/runs.ts");
    const { ok, conflicts } = await reverseRun(one.run, "undo");
    if (!ok) return { undone: [], conflicts: conflicts.map((path) => `${path} has changed since`) };
    return { undone: [{ run: one.id, action: "taken back" }], runs: [one.id], conflicts: [] };
  }
  const record = one.turn;
  try {
    const done = await undoTurn(record, filesToUndo(workspace));
    log.drop(record);
    return { undone: done.map(({ path, action }) => ({ path: relative(workspace, path), action })), conflicts: [] };
  } catch (error) {
    if (!CallError.is(error)) throw error;
    return { undone: [], conflicts: [error.message] };
  }
}
