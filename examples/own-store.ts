// Conversations in a place of one's own. Here a Map; a database's insert and select in real life.
import { createEngine } from "callgate";
import { createChatService, type ConversationStore } from "callgate/session";
import type { JournalRecord } from "callgate/store";
import { createOfflineModel } from "callgate/testing";
import { builtins } from "callgate/tools";

const rows = new Map<string, JournalRecord[]>();
const store: ConversationStore = {
  read: (id) => rows.get(id) ?? [],
  open(id) {
    const records = rows.get(id) ?? [];
    rows.set(id, records);
    return {
      records: [...records],
      journal: { append: (record) => void records.push(record), close: () => undefined },
    };
  },
};

const engine = createEngine({ tools: builtins, approval: "never", sandbox: "read-only" });
const chat = createChatService({ engine, model: createOfflineModel(), store });
for (const message of ["run echo one", "run echo two"])
  for await (const chunk of chat.handleStream("anna", message)) if (chunk.type === "done") console.log(chunk.text);
console.log(`${rows.get("anna")?.length} records`);
await chat.close();
await engine.close();
