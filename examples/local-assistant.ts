/** An assistant on a local model that only writes text: its calls are read from what it writes. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine } from "callgate";
import { createProviderModel, createTextModel } from "callgate/model";
import { createSession } from "callgate/session";
import { createScriptedModel, serveModel } from "callgate/testing";
import { builtins } from "callgate/tools";

const workspace = mkdtempSync(join(tmpdir(), "local-assistant-"));
writeFileSync(join(workspace, "shopping.txt"), "milk\nbread\n");

// Stands for llama.cpp, Ollama or vLLM: a server whose model knows nothing of tool calls and writes Hermes tags.
const server = await serveModel(
  createScriptedModel([
    { text: 'Let me look.\n<tool_call>{"name": "read_file", "arguments": {"file_path": "shopping.txt"}}</tool_call>' },
    { text: "You need milk and bread." },
  ]),
);

const chat = await createProviderModel({ baseUrl: server.baseUrl, model: "local" }); // yours: http://127.0.0.1:11434/v1
const model = createTextModel(chat, "hermes");
const engine = createEngine({ workspace, tools: builtins, approval: "never", sandbox: "read-only" });
const session = createSession({ id: "assistant", engine, model });
for await (const event of session.send("What do I need to buy?")) {
  if (event.type === "call.ended") console.log(event.call.tool, event.call.ok ? "ran" : event.call.code);
  if (event.type === "turn.ended") console.log(event.text);
}
await session.close();
await engine.close();
chat.close();
await server.close();
