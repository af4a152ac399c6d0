/** Orchestration: handlers, lanes, the turn's gate, features, errors. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool, Fault } from "callgate";
import { createSession, familyOf, selectProfile } from "callgate/session";
import { createScriptedModel, testSyncTool } from "callgate/testing";
import { builtins } from "callgate/tools";

const row = (id: string, ...words: readonly unknown[]) => console.log(id, ...words);
const workspace = mkdtempSync(join(tmpdir(), "callgate-orchestration-"));
writeFileSync(join(workspace, "a.txt"), Array.from({ length: 5_000 }, (_, line) => `line ${line}`).join("\n"));

const change = defineTool({
  name: "change",
  description: "Changes something, or only looks.",
  input: { type: "object", properties: { dry: { type: "boolean" } } },
  mutates: ({ dry }) => dry !== true,
  run: ({ dry }) => (dry ? "looked" : "changed"),
});
const fatal = defineTool({
  name: "fatal",
  description: "Breaks the turn.",
  input: { type: "object", properties: {} },
  run: () => {
    throw new Fault("db gone");
  },
});
const events: string[] = [];
const engine = createEngine({
  tools: [...builtins, testSyncTool, change, fatal],
  workspace,
  approval: "auto",
  sandbox: "none",
});
engine.on((event) => event.type === "call.waiting" && events.push(event.state));

row("B1", engine.registry.list().length > 30, typeof engine.run);
row("B2", (await engine.call("change", { dry: true })).text);
const parallel = ["grep_files", "list_dir", "read_file", "test_sync_tool"];
row(
  "B3",
  parallel.every((name) => engine.registry.find(name)?.parallel === true),
);
const both = await Promise.all(
  [1, 2].map(() => engine.call("test_sync_tool", { barrier: { id: "b", participants: 2, timeout_ms: 5_000 } })),
);
row("B3", both.every(({ ok }) => ok) ? "both passed the barrier" : "did not meet");
row("B4", (await engine.call("shell", { command: ["true"], sandbox_permissions: "require_escalated" })).ok);
let open = () => {};
const lanes = engine.lanes({
  signal: new AbortController().signal,
  ready: new Promise<void>((resolve) => (open = resolve)),
});
const waiting = lanes.add({ id: "w", name: "change", kind: "function", arguments: "{}", askedAt: 0 });
setTimeout(open, 20);
await waiting;
row("B7", "B22", events.join(" "));
row(
  "B8",
  ["shell", "shell_command", "local_shell", "exec_command", "write_stdin"].every((name) => engine.registry.find(name)),
);
row("B9", (await engine.call("read_file", { file_path: "a.txt", limit: 1 })).text.trim());
row("B10", (await engine.call("update_plan", { plan: [{ step: "one", status: "in_progress" }] })).ok);
row("B12", selectProfile({ model: "gpt-5", features: { UnifiedExec: true, WebSearchRequest: true } }).tools.join(" "));
row("B13", ["gpt-5-codex", "codex-mini-latest", "gpt-5", "gpt-5-mini"].map(familyOf).join(" "));
row(
  "B20",
  selectProfile({ model: "gpt-5", config: { shell_type: "local", apply_patch_tool_type: "function" } }).tools.join(" "),
);
const told = createSession({ id: "b", engine, model: createScriptedModel([{ calls: [{ name: "fatal" }] }]) });
for await (const event of told.send("go")) if (event.type === "error") row("B16", event.message);
await told.close();
const cut = createEngine({ tools: builtins, workspace, approval: "auto", result: { budget: { maxLines: 6 } } });
row("B18", (await cut.call("shell_command", { command: "cat a.txt" })).text.split("\n").length < 12);
await cut.close();
const session = createSession({
  id: "c",
  engine,
  model: createScriptedModel([{ text: "short" }, { text: "hand-over" }, { text: "on" }]),
});
for await (const _ of session.send("a long story")) continue;
await session.compact();
row(
  "B17",
  session.history.some(({ type }) => type === "compaction"),
);
await session.close();
await engine.close();
