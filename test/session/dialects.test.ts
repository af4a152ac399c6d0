/** Whole sessions with models that can only write text: every dialect, over real HTTP, the same job. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { dialects } from "../../src/dialect/index.ts";
import { createEngine } from "../../src/index.ts";
import { createHttpModel } from "../../src/model/http.ts";
import { createTextModel } from "../../src/model/text.ts";
import { createSession, type SessionEvent } from "../../src/session/index.ts";
import { toToolSpecs } from "../../src/registry/tool-spec.ts";
import { createScriptedModel, serveModel, type ScriptedStep } from "../../src/testing/index.ts";
import { builtins } from "../../src/tools/index.ts";
import { codecs } from "../../src/wire/index.ts";

const workspace = mkdtempSync(join(tmpdir(), "callgate-dialects-"));
const asked: string[] = [];
const engine = createEngine({
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
afterAll(() => engine.close());

const only = ["read_file", "shell_command", "apply_patch"];
const offered = () => toToolSpecs(engine, { only, custom: false, native: false });

const patch = '*** Begin Patch\n*** Update File: a.txt\n@@\n-two < 3 & "four"\n+zwei < 3 & "vier"\n*** End Patch\n';
const job: readonly ScriptedStep[] = [
  { text: "Looking.", calls: [{ name: "read_file", input: { file_path: "a.txt" } }] },
  { calls: [{ name: "shell_command", input: { command: "echo 'from the <shell> & \"more\"'" } }] },
  { calls: [{ name: "apply_patch", input: { patch } }] },
  { text: "Done." },
];

test.each(dialects.map(({ name }) => name))("in %s a model reads, runs and changes files", async (dialect) => {
  writeFileSync(join(workspace, "a.txt"), 'one\ntwo < 3 & "four"\n');
  asked.length = 0;
  const scripted = createScriptedModel(job);
  const server = await serveModel(scripted, { dialect });
  const http = createHttpModel({ codec: codecs.chat, baseUrl: server.baseUrl, model: "text" });
  const session = createSession({
    id: dialect,
    engine,
    model: createTextModel(http, dialect),
    instructions: "Be brief.",
    tools: offered,
  });
  const events: SessionEvent[] = [];
  for await (const event of session.send("go")) events.push(event);
  const ended = events.flatMap((event) => (event.type === "call.ended" ? [event.call] : []));
  expect(ended.map(({ tool, ok, content }) => ({ tool, ok, why: ok ? "" : JSON.stringify(content) }))).toEqual([
    { tool: "read_file", ok: true, why: "" },
    { tool: "shell_command", ok: true, why: "" },
    { tool: "apply_patch", ok: true, why: "" },
  ]);
  // A bare list of calls may be a quotation: a person is asked before its command runs.
  const bare = "nothing in the answer marks it as a call: it may be a quotation";
  expect(asked).toEqual(dialect === "json-array" || dialect === "llama3-json" ? [bare] : []);
  expect(JSON.stringify(ended[1]!.content)).toContain("from the <shell> &");
  expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe('one\nzwei < 3 & "vier"\n');
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", reason: "done", text: "Done.", calls: 3 });
  await session.close();
  http.close();
  await server.close();
});

test("a model's own words go back as it wrote them, and its calls have ids that no other conversation has", async () => {
  const said = 'Let me look.\n<tool_call>\n{"name": "read_file", "arguments": {"file_path": "a.txt"}}\n</tool_call>';
  const play = async (id: string) => {
    const inner = createScriptedModel([{ text: said }, { text: "ok" }]);
    const session = createSession({ id, engine, model: createTextModel(inner, "hermes"), tools: offered });
    for await (const _ of session.send("look"));
    await session.close();
    const sent = inner.requests[1]!.input.filter((item) => item.type === "message" && item.role === "assistant");
    const ids = session.history.flatMap((item) => (item.type === "call" ? [item.id] : []));
    return { sent, ids };
  };
  const first = await play("one");
  expect(first.sent).toMatchObject([{ content: [{ type: "text", text: said }] }]);
  expect((await play("two")).ids).not.toEqual(first.ids);
  expect((await play("one")).ids).toEqual(first.ids); // a replay has the same
});
