/** Orchestration: handlers, lanes, the turn's gate, features, errors. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine, defineTool, Fault, type Json } from "callgate";
import { createSession, selectProfile } from "callgate/session";
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
  service: { webSearch: async (query: string) => `found: ${query}` },
});
const say = async (name: string, input: Json) => (await engine.call(name, input)).text.trim();
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
const asked: string[] = [];
const careful = createEngine({
  tools: builtins,
  workspace,
  approval: "on-request",
  sandbox: "workspace-write",
  approver: {
    async ask({ reason }) {
      asked.push(reason);
      return { answer: "once" };
    },
  },
});
const escalated = { command: ["echo", "outside"], sandbox_permissions: "require_escalated", justification: "to see" };
row("B4", (await careful.call("shell", escalated)).text.trim(), "|", asked.join("; "));
await careful.close();
let open = () => {};
const lanes = engine.lanes({
  signal: new AbortController().signal,
  ready: new Promise<void>((resolve) => (open = resolve)),
});
const waiting = lanes.add({ id: "w", name: "change", kind: "function", arguments: "{}", askedAt: 0 });
setTimeout(open, 20);
await waiting;
row("B7", "B22", events.join(" "));
const commands = [
  await say("shell", { command: ["echo", "array"] }),
  await say("shell_command", { command: "echo string" }),
  await say("local_shell", { command: ["echo", "local"] }),
];
const opened = await engine.call("exec_command", { cmd: "cat", tty: true, yield_time_ms: 250 });
const session_id = Number(/session (\d+)/.exec(opened.text)?.[1]);
const typed = await say("write_stdin", { session_id, chars: "typed\n", yield_time_ms: 500 });
row("B8", ...commands, typed.includes("typed") ? "typed" : typed);
mkdirSync(join(workspace, "deep"));
writeFileSync(join(workspace, "deep", "b.ts"), "class A {\n  one() {\n    return 1;\n  }\n}\n");
row("B9", await say("read_file", { file_path: "a.txt", offset: 3, limit: 1 }));
const around = { file_path: "deep/b.ts", mode: "indentation", indentation: { anchor_line: 3, max_levels: 1 } };
row("B9", (await say("read_file", around)).replaceAll("\n", " "));
row("B9", (await say("list_dir", { dir_path: ".", depth: 2 })).includes("b.ts") ? "b.ts is listed" : "not listed");
row("B9", await say("grep_files", { pattern: "return 1", path: "deep" }));
const patch = "*** Begin Patch\n*** Update File: deep/b.ts\n@@\n-    return 1;\n+    return 2;\n*** End Patch\n";
await engine.call("apply_patch", { input: patch });
const freeform = patch.replace("return 1", "return 2").replace("+    return 2", "+    return 3");
const call = { id: "p", name: "apply_patch", kind: "custom", arguments: freeform, askedAt: 0 } as const;
await engine.run(call);
row(
  "B9",
  "both forms of the patch:",
  readFileSync(join(workspace, "deep", "b.ts"), "utf8")
    .split("\n")[2]
    ?.trim(),
);
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
writeFileSync(join(workspace, "pixel.png"), Buffer.from(pixel, "base64"));
row("B10", (await engine.call("view_image", { path: "pixel.png" })).content.map(({ type }) => type).join(" "));
row("B10", await say("update_plan", { plan: [{ step: "one", status: "in_progress" }] }));
row("B10", await say("web_search", { query: "callgate" }));
row("B10", await say("test_sync_tool", { sleep_after_ms: 1 }));
row("B12", selectProfile({ model: "gpt-5", features: { UnifiedExec: true, WebSearchRequest: true } }).tools.join(" "));
const families = ["gpt-5-codex", "codex-mini-latest", "gpt-5", "gpt-5-mini"];
row("B13", families.map((model) => selectProfile({ model }).name).join(" "));
row(
  "B20",
  selectProfile({ model: "gpt-5", config: { shell_type: "local", apply_patch_tool_type: "function" } }).tools.join(" "),
);
// Not below the temp folder: a command in the sandbox has one of its own.
const outside = mkdtempSync("/var/tmp/callgate-outside-");
const steps: string[] = [];
const escalating = createEngine({
  tools: builtins,
  workspace,
  approval: "on-failure",
  sandbox: "workspace-write",
  approver: {
    async ask() {
      steps.push("asked");
      return { answer: "once" };
    },
  },
});
escalating.on((event) => event.type === "call.permitted" && steps.push(event.grant.confined ? "ran confined" : "ran"));
const again = await escalating.call("shell_command", { command: `echo kept > '${join(outside, "x")}'` });
row("B15", steps.join(", then "), "|", again.ok ? readFileSync(join(outside, "x"), "utf8").trim() : again.text);
await escalating.close();
rmSync(outside, { recursive: true });
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
