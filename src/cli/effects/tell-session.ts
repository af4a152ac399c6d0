/**
 * What was undone is written into the journal of the session that had done it, or left beside it while
 * the journal is open.
 */
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { stateDir } from "../../base/paths.ts";
import { isObject, parseJson } from "../../base/json.ts";
import type { TakenBack } from "../../session/index.ts";
import { openJournal, type Journal } from "../../store/journal.ts";
import { sessionPath } from "../../store/sessions.ts";

/** Does nothing if the session has no journal here, because it was not kept or a service keeps it. */
export function tellSession(session: string, event: TakenBack, env: NodeJS.ProcessEnv): void {
  const path = sessionPath(stateDir(env), session);
  if (!existsSync(path)) return;
  let journal: Journal;
  try {
    journal = openJournal(path);
  } catch {
    // Another process has it open, and looks here before its next turn.
    appendFileSync(besideOf(path), `${JSON.stringify(event)}\n`, { mode: 0o600 });
    return;
  }
  journal.append({ ...event });
  journal.close();
}

/** What was left beside this journal since the last call. */
export function takeTold(journalPath: string): readonly TakenBack[] {
  const beside = besideOf(journalPath);
  if (!existsSync(beside)) return [];
  const taken = `${beside}.taken`;
  renameSync(beside, taken); // an undo that happens in the meantime begins a new file
  const events = readFileSync(taken, "utf8").split("\n").flatMap(toTakenBack);
  rmSync(taken);
  return events;
}

function besideOf(journalPath: string): string {
  return `${journalPath}.undone`;
}

function toTakenBack(line: string): readonly TakenBack[] {
  const read = parseJson(line);
  if (!read.ok || !isObject(read.value)) return [];
  const { type, run, what } = read.value;
  if ((type !== "effects.undone" && type !== "effects.redone") || typeof run !== "string") return [];
  return [{ type, run, ...(typeof what === "string" ? { what } : {}) }];
}
