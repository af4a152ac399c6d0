import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine } from "callgate";
import { createSession } from "callgate/session";
import { openJournal, readJournal } from "callgate/store";
import { createOfflineModel } from "callgate/testing";
import { builtins } from "callgate/tools";

const path = join(mkdtempSync(join(tmpdir(), "example-")), "conversation.jsonl");

/** Begins the conversation, or goes on with it: after a restart, after a crash, after a kill. */
async function say(prompt: string): Promise<void> {
  const engine = createEngine({ tools: builtins, approval: "never", sandbox: "read-only" });
  const journal = openJournal(path);
  const { records } = readJournal(path);
  const session = createSession({
    id: "resumed",
    engine,
    model: createOfflineModel(),
    journal,
    records,
  });
  for (const id of session.interrupted) console.log(`${id} was cut off last time and was not run again`);
  for await (const event of session.send(prompt)) if (event.type === "turn.ended") console.log(event.text);
  console.log(`${session.history.length} items so far`);
  await session.close();
  await engine.close();
}

await say("run echo first");
await say("run echo second");
