/** Takes back what a session of the service did, with file tools and with commands. */
import { realpathSync } from "node:fs";
import { relative } from "node:path";
import type { Json } from "../../base/json.ts";
import type { Undone } from "../../serve/index.ts";
import { createUndoLog, undoFile } from "../../workspace/undo.ts";
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
  /** The turn of each kept run, by the id of the run. */
  readonly turns: ReadonlyMap<string, string>;
}

/** The newest of what the session's file tools and commands did, or all that one turn did, newest first. */
export async function undoInSession({ cwd, id, env, turns }: SessionToUndo, turn: string | undefined): Promise<Undone> {
  const workspace = realpathSync(cwd);
  const log = createUndoLog(undoFile(cwd, env));
  const turnOf = (one: Undoable) =>
    one.kind === "command" ? turns.get(one.id) : one.session === id ? one.turn : undefined;
  const own = (await undoable(workspace, log)).filter(
    (one) => one.state === "kept" && turnOf(one) !== undefined && (turn === undefined || turnOf(one) === turn),
  );
  const wanted = turn === undefined ? own.slice(0, 1) : own;
  if (wanted.length === 0) return { undone: [], conflicts: ["there is nothing to take back"] };
  const undone: Json[] = [];
  const runs: { run: string; what: string }[] = [];
  for (const one of wanted) {
    const { ok, files, conflicts, error } = await one.reverse(false);
    // Older changes lie beneath those that could not be undone, so they are not tried.
    if (!ok) return { undone, runs, conflicts: reasons(one, conflicts, error) };
    if (one.kind !== "files") undone.push({ run: one.id, action: "taken back" });
    undone.push(...(files ?? []).map(({ path, action }) => ({ path: relative(workspace, path), action })));
    runs.push({ run: one.id, what: one.what });
  }
  return { undone, runs, conflicts: [] };
}

function reasons({ kind }: Undoable, conflicts: readonly string[], error = "it was not taken back"): readonly string[] {
  return kind === "command" && conflicts.length > 0 ? conflicts.map((path) => `${path} has changed since`) : [error];
}
