// A model, an engine, and the turn between them.
import { createEngine } from "callgate";
import { createProviderModel } from "callgate/model";
import { createSession } from "callgate/session";
import { createOfflineModel, serveModel } from "callgate/testing";
import { builtins } from "callgate/tools";

const { baseUrl, close } = await serveModel(createOfflineModel()); // a server that needs no key

const model = await createProviderModel({ baseUrl, model: "offline" }); // or { provider: "anthropic", model: "claude-…" }
const engine = createEngine({ tools: builtins, approval: "never", sandbox: "workspace-write" });
const session = createSession({ id: "first", engine, model });
for await (const event of session.send("list . then run echo hello")) {
  if (event.type === "call.ended") console.log(event.call.tool, event.call.ok);
  if (event.type === "turn.ended") console.log(event.text);
}

await session.close();
await engine.close();
model.close();
await close();
