import { existsSync } from "node:fs";
import { join } from "node:path";
import { openJournal, readJournal } from "../store/journal.ts";
import type { HistoryRecord } from "./history.ts";
import type { SessionJournal } from "./session-options.ts";

/** Where a chat service keeps its conversations. */
export interface ConversationStore {
  /** To go on with a conversation, or to begin it. */
  open(id: string): { readonly journal: SessionJournal; readonly records: readonly HistoryRecord[] };
  /** To look at it only; empty when there is none. */
  read(id: string): readonly HistoryRecord[];
}

/** What a file name may hold on every system, with room for the ending. */
const maxNameLength = 200;

/** One journal a conversation, in a folder. The id may come from anyone: it never leads out of the folder. */
export function createConversationFolder(folder: string): ConversationStore {
  const pathOf = (id: string) => {
    const name = encodeURIComponent(id).replaceAll("*", "%2A");
    if (name === "" || name.length > maxNameLength) throw new TypeError("a conversation id has 1 to 200 characters");
    return join(folder, `chat-${name}.jsonl`);
  };
  const read = (id: string): readonly HistoryRecord[] => {
    const path = pathOf(id);
    return existsSync(path) ? readJournal(path).records : [];
  };
  return {
    read,
    open(id) {
      // Opened first: a torn last line is cut off, an edited one throws.
      const journal = openJournal(pathOf(id));
      return { journal, records: read(id) };
    },
  };
}
