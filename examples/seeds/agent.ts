/** How a request offers tools, and how calls run: events, approvals, patches, terminals. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEngine } from "callgate";
import { createChangeTracker, createSession } from "callgate/session";
import { createScriptedModel } from "callgate/testing";
import { builtins } from "callgate/tools";

const row = (id: string, ...words: readonly unknown[]) => console.log(id, ...words);
const workspace = mkdtempSync(join(tmpdir(), "callgate-agent-"));
writeFileSync(join(workspace, "a.txt"), "one\n");
const asked: string[] = [];
const engine = createEngine({
  tools: builtins,
  workspace,
  approval: "on-failure",
  sandbox: "full-access",
  approver: {
    async ask({ reason }) {
      asked.push(reason);
      return { answer: "session" };
    },
  },
});
const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n";
const model = createScriptedModel(
  [
    {
      calls: [
        { name: "shell", input: { command: ["echo", "hi"], workdir: ".", timeout_ms: 5_000 } },
        { name: "no_such_tool" },
      ],
    },
    { calls: [{ name: "apply_patch", kind: "custom", arguments: patch }] },
    { text: "done" },
  ],
  "gpt-5",
);
const session = createSession({
  id: "agent",
  engine,
  model,
  changes: createChangeTracker(workspace, join(workspace, "..", "undo.jsonl")),
  request: { parallel: false },
  offer: { config: { include_apply_patch_tool: true } },
});
const seen = new Map<string, number>();
for await (const event of session.send("go")) {
  seen.set(event.type, (seen.get(event.type) ?? 0) + 1);
  if (event.type === "diff.updated") row("E11", event.diff.includes("+two"));
}
const [first] = model.requests;
row("E1", first?.toolChoice, first?.cacheKey);
row("E14", first?.parallel);
row("E4", seen.get("item.done"), "items");
row("E5", JSON.stringify(model.requests[1]?.input.at(-1)).includes("Unknown tool"));
row("E10", model.requests[1]?.input.filter(({ type }) => type === "result").length, "results");
row("E8", seen.get("exec.output") !== undefined);
row("E13", session.history.length);
await session.close();
row("E2", JSON.stringify((await engine.toolsFor("chat", { model: "gpt-5" })).tools).includes("require_escalated"));
const wires = await Promise.all(
  (["responses", "chat"] as const).map((wire) => engine.toolsFor(wire, { model: "gpt-5-codex" })),
);
row(
  "E3",
  wires.map(({ tools }) => tools.find((tool) => JSON.stringify(tool).includes('"apply_patch"'))?.["type"]).join(" "),
);
row("E6", (await engine.call("container.exec", { command: ["true"], workdir: "." })).ok);
const slow = await engine.call("shell_command", { command: "sleep 0.5; echo slept", timeout_ms: 300 });
row("E7", "E15", slow.text.trim(), "|", asked.at(-1)?.slice(0, 22));
const before = asked.length;
const twice = { command: ["sleep", "0.4"], timeout_ms: 300 };
await engine.call("shell", twice);
await engine.call("shell", twice);
row("E7", `approved for the session: asked ${asked.length - before} time for two calls`);
const opened = await engine.call("exec_command", { cmd: "cat", tty: true, yield_time_ms: 250 });
const session_id = Number(/session (\d+)/.exec(opened.text)?.[1]);
const typed = await engine.call("write_stdin", { session_id, chars: "hello\n", yield_time_ms: 500 });
row("E9", typed.text.includes("hello") ? "answers" : typed.text);
const stopped = await engine.call("write_stdin", { session_id, chars: "\u0003", yield_time_ms: 2_000 });
row("E9", stopped.exitCode === undefined ? stopped.text : `Ctrl-C ended it with ${stopped.exitCode}`);
await engine.close();
