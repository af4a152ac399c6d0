import { stateDir } from "../base/paths.ts";
import { findSession, readJournal, type ReadJournal, type SessionSummary } from "../store/index.ts";
import { say, UsageError } from "./io.ts";

/** The session a user named, with its journal; a damaged journal is told and read as far as it is good. */
export function openSession(wanted: string): { readonly summary: SessionSummary; readonly journal: ReadJournal } {
  const found = findSession(stateDir(process.env), wanted);
  if ("length" in found) {
    const many = found.length > 1 ? `; it fits ${found.map(({ id }) => id).join(", ")}` : "";
    throw new UsageError(`there is no session '${wanted}'${many} ('callgate sessions' lists them)`);
  }
  const journal = readJournal(found.path);
  for (const { line, byte, what, detail } of journal.problems)
    say(`callgate: ${found.path}, line ${line} (byte ${byte}): ${what}: ${detail}`);
  return { summary: found, journal };
}
