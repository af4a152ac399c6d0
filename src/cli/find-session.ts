import { stateDir } from "../base/paths.ts";
import { readJournal, type ReadJournal } from "../store/journal.ts";
import { findSession, listSessions, type SessionSummary } from "../store/sessions.ts";
import { say, UsageError } from "./io.ts";

/** The one session that a user can have meant. */
function findNamed(state: string, wanted: string): SessionSummary {
  const found = findSession(state, wanted);
  if (!("length" in found)) return found;
  const many = found.length > 1 ? `; it fits ${found.map(({ id }) => id).join(", ")}` : "";
  throw new UsageError(`there is no session '${wanted}'${many} ('callgate sessions' lists them)`);
}

/** The session to continue. `last` is the newest of this folder, before those of others. */
export function findToResume(state: string, wanted: string, cwd: string): SessionSummary {
  const here = wanted === "last" ? listSessions(state).find((session) => session.cwd === cwd) : undefined;
  return here ?? findNamed(state, wanted);
}

/** The session that a user named, with its journal. A damaged journal is reported, and read as far as it is intact. */
export function openSession(wanted: string): { readonly summary: SessionSummary; readonly journal: ReadJournal } {
  const found = findNamed(stateDir(process.env), wanted);
  const journal = readJournal(found.path);
  for (const { line, byte, what, detail } of journal.problems)
    say(`callgate: ${found.path}, line ${line} (byte ${byte}): ${what}: ${detail}`);
  return { summary: found, journal };
}
