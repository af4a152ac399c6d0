import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createHttpModel } from "../../src/model/http.ts";
import { createEngine, type Engine } from "../../src/router/engine.ts";
import { createSession, type SessionEvent } from "../../src/session/index.ts";
import type { ToolSpec } from "../../src/spec/model.ts";
import { createScriptedModel, serveModel, type ScriptedStep } from "../../src/testing/index.ts";
import { builtins } from "../../src/tools/index.ts";
import { codecs } from "../../src/wire/index.ts";
import { openJournal, readJournal } from "../../src/store/index.ts";

const cleanups: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups) await cleanup();
});

function createWorkspace(): { readonly cwd: string; readonly engine: Engine } {
  const cwd = mkdtempSync(join(tmpdir(), "callgate-session-"));
  writeFileSync(join(cwd, "hello.txt"), "one\ntwo\n");
  const engine = createEngine({ tools: builtins, workspace: cwd, approval: "never", sandbox: "workspace-write" });
  cleanups.push(() => engine.close());
  return { cwd, engine };
}

const offered = (engine: Engine): readonly ToolSpec[] =>
  ["read_file", "shell_command", "apply_patch", "update_plan"].map((name) => ({
    kind: "function",
    name,
    description: name,
    parameters: engine.registry.find(name) ? { type: "object" } : {},
  }));

async function play(steps: readonly ScriptedStep[], wire: keyof typeof codecs, prompt = "go") {
  const { cwd, engine } = createWorkspace();
  const scripted = createScriptedModel(steps);
  const server = await serveModel(scripted);
  cleanups.push(server.close);
  const model = createHttpModel({ codec: codecs[wire], baseUrl: server.baseUrl, model: "scripted" });
  const path = join(mkdtempSync(join(tmpdir(), "callgate-journal-")), "session.jsonl");
  const session = createSession({ id: "s1", engine, model, tools: () => offered(engine), journal: openJournal(path) });
  const events: SessionEvent[] = [];
  for await (const event of session.send(prompt)) events.push(event);
  await session.close();
  model.close();
  return { cwd, events, requests: scripted.requests, journal: readJournal(path), session };
}

const endings = (events: readonly SessionEvent[]) =>
  events.flatMap((event) =>
    event.type === "call.ended" ? [{ tool: event.call.tool, ok: event.call.ok, code: event.call.code }] : [],
  );

test.each(["responses", "chat", "messages", "gemini"] as const)(
  "over %s a turn reads, runs and changes files, and the model is told each result",
  async (wire) => {
    const patch = "*** Begin Patch\n*** Update File: hello.txt\n@@\n-two\n+zwei\n*** End Patch\n";
    const { cwd, events, requests } = await play(
      [
        { text: "Looking.", calls: [{ name: "read_file", input: { file_path: "hello.txt" } }] },
        { calls: [{ name: "shell_command", input: { command: "echo from the shell" } }] },
        { calls: [{ name: "apply_patch", input: { input: patch } }] },
        { text: "Done." },
      ],
      wire,
    );
    expect(endings(events)).toEqual([
      { tool: "read_file", ok: true, code: undefined },
      { tool: "shell_command", ok: true, code: undefined },
      { tool: "apply_patch", ok: true, code: undefined },
    ]);
    expect(readFileSync(join(cwd, "hello.txt"), "utf8")).toBe("one\nzwei\n");
    const results = requests.at(-1)!.input.filter((item) => item.type === "result");
    expect(results.map(({ content }) => JSON.stringify(content))).toEqual([
      expect.stringContaining("one"),
      expect.stringContaining("from the shell"),
      expect.stringContaining("hello.txt"),
    ]);
    expect(events.at(-1)).toMatchObject({ type: "turn.ended", reason: "done", text: "Done.", calls: 3, requests: 4 });
  },
);

test("an unknown tool is answered so that the model can go on", async () => {
  const { events, requests } = await play([{ calls: [{ name: "read_fil", input: {} }] }, { text: "ok" }], "chat");
  expect(endings(events)).toEqual([{ tool: undefined, ok: false, code: "unknown_tool" }]);
  expect(JSON.stringify(requests[1]!.input.at(-1))).toContain("read_file");
});

test("what the journal holds rebuilds the same history", async () => {
  const { journal, session } = await play(
    [{ calls: [{ name: "shell_command", input: { command: "true" } }] }, { text: "ok" }],
    "responses",
  );
  const { rebuildHistory } = await import("../../src/session/index.ts");
  expect(journal.problems).toEqual([]);
  expect(rebuildHistory(journal.records).items).toEqual(session.history);
});
