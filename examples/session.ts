import { createEngine } from "callgate";
import { createSession } from "callgate/session";
import { createOfflineModel } from "callgate/testing";
import { builtins } from "callgate/tools";

const engine = createEngine({ tools: builtins, approval: "never", sandbox: "workspace-write" });
const session = createSession({ id: "example", engine, model: createOfflineModel() });

for await (const event of session.send("list . then run echo hello")) {
  if (event.type === "call.ended") console.log(event.call.tool, event.call.ok);
  if (event.type === "turn.ended") console.log(event.text);
}
await session.close();
await engine.close();
