import { existsSync } from "node:fs";
import { join } from "node:path";
import { openJournal, readJournal } from "../store/journal.ts";
import type { HistoryRecord } from "./history.ts";
import type { SessionJournal } from "./session-options.ts";

/** Where a chat service keeps its conversations. */
export interface ConversationStore {
  /** Opens a conversation to continue or begin it. */
  open(id: string): { readonly journal: SessionJournal; readonly records: readonly HistoryRecord[] };
  /** Reads a conversation without opening it. Empty if there is none. */
  read(id: string): readonly HistoryRecord[];
}

/** The length that a file name may have on every system, with room for the extension. */
const maxNameLength = 200;

/** One journal per conversation, in a folder. The id may come from anyone, and never leads out of the folder. */
export function openConversationFolder(folder: string): ConversationStore {
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
      // Opened first, because that cuts off a torn last line and throws for an edited one.
      const journal = openJournal(pathOf(id));
      return { journal, records: read(id) };
    },
  };
}
