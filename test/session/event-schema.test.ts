/** Every event of real sessions is as the published schema says, and the schema changes only on purpose. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isObject } from "../../src/base/json.ts";
import { createEngine, defineTool } from "../../src/index.ts";
import { createChangeTracker, createSession, eventSchema, type SessionEvent } from "../../src/session/index.ts";
import { toSchema } from "../../src/schema/schema.ts";
import type { Approver } from "../../src/spec/stages.ts";
import { createOfflineModel, createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";
import { builtins } from "../../src/tools/index.ts";
import { has } from "../needs.ts";

const { validate } = toSchema(eventSchema);

async function problemsOf(events: readonly SessionEvent[]): Promise<readonly unknown[]> {
  const problems: unknown[] = [];
  for (const event of events) {
    // As `exec --json` prints it.
    const checked = await validate(JSON.parse(JSON.stringify(event)));
    if (!checked.ok) problems.push({ event, issues: checked.issues });
  }
  return problems;
}

const noisy = defineTool({
  name: "noisy",
  description: "Tells how far it is.",
  input: { type: "object" },
  run(_input, ctx) {
    ctx.log.info("begun", { step: 1 });
    ctx.progress("half way");
    ctx.progress({ progress: 1, total: 2, message: "nearly" });
    return [
      { type: "text", text: "done" },
      { type: "image", mediaType: "image/png", data: "iVBORw0KGgo=" },
    ];
  },
});

const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n";

const steps: readonly ScriptedStep[] = [
  { reasoning: "I think.", text: "Looking.", calls: [{ name: "read_file", input: { file_path: "a.txt" } }] },
  { calls: [{ name: "shell_command", input: { command: "echo out; echo err >&2; exit 3" } }] },
  { calls: [{ name: "apply_patch", input: { input: patch } }, { name: "noisy" }, { name: "no_such_tool" }] },
  { calls: [{ name: "update_plan", input: { plan: [{ step: "look", status: "pending" }] } }] },
  { calls: [{ name: "shell_command", input: { command: "curl http://127.0.0.1:9/" } }] },
  { calls: [{ name: "read_file", arguments: '{"file', complete: false }] },
  { text: "Done.", end: { usage: { input: 10, output: 5, cached: 2 } } },
  { text: "Hand-over." },
  { end: { outcome: "error", error: { message: "wrong key", type: "auth" } } },
];

async function playAll(): Promise<readonly SessionEvent[]> {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-events-"));
  writeFileSync(join(workspace, "a.txt"), "one\n");
  const changes = createChangeTracker(workspace, join(workspace, "..", "undo.jsonl"));
  const approver: Approver = { ask: async () => ({ answer: "no", message: "not today" }) };
  const engine = createEngine({
    tools: [...builtins, noisy],
    workspace,
    approver,
    approval: "on-request",
    onFileChange: changes.note,
  });
  const events: SessionEvent[] = [];
  const session = createSession({
    id: "events",
    engine,
    model: createScriptedModel(steps),
    tools: () => [],
    changes,
    price: { input: 1, output: 2 },
    started: { wire: "responses", version: "0.0.0" },
    onEvent: (event) => events.push(event),
  });
  for await (const _event of session.send("do everything")) continue;
  await session.compact();
  for await (const _event of session.send("and fail")) continue;
  await session.close();
  await playLater(events);
  await playUndo(events);
  await engine.close();
  return events;
}

/** A question that is answered later, in a session whose terminals went with an earlier process. */
async function playLater(events: SessionEvent[]): Promise<void> {
  const ended = { id: "old", name: "t", kind: "function", arguments: "{}", askedAt: 0, ok: true, content: [] };
  const session = createSession({
    id: "later",
    engine: createEngine({ tools: builtins, approval: "on-request", approver: { ask: async () => "later" } }),
    model: createScriptedModel([
      { calls: [{ name: "shell_command", input: { command: "curl http://127.0.0.1:9/" } }] },
      { text: "Done." },
    ]),
    records: [{ type: "call.ended", call: ended, terminals: ["1: npm run dev"] }],
    onEvent: (event) => events.push(event),
  });
  for await (const event of session.send("go")) {
    if (event.type !== "approval.asked") continue;
    const { id, request } = event;
    session.on(({ type }) => {
      if (type === "turn.waiting") void session.answer(id, request.hash, { answer: "session" });
    });
  }
  for await (const _event of session.resume()) continue;
  await session.close();
}

/** A command that somebody agreed to and that is not held, taken back and done again. */
async function playUndo(events: SessionEvent[]): Promise<void> {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-events-"));
  const session = createSession({
    id: "undo",
    engine: createEngine({
      tools: builtins,
      workspace,
      approval: "unless-trusted",
      approver: { ask: async () => ({ answer: "once" }) },
    }),
    model: createScriptedModel([
      { calls: [{ name: "shell_command", input: { command: "echo new > new.txt" } }] },
      { text: "Done." },
    ]),
    changes: createChangeTracker(workspace, join(workspace, "..", "undo.jsonl")),
    onEvent: (event) => events.push(event),
  });
  for await (const _event of session.send("go")) continue;
  session.noteTakenBack({ type: "effects.undone", run: "s1", what: "echo" });
  session.noteTakenBack({ type: "effects.redone", run: "s1" });
  await session.close();
}

test.skipIf(!has("script"))(
  "events of a session with a deny rule, and of what is typed into a process, fit the schema (needs script)",
  async () => {
    const events: SessionEvent[] = [];
    const engine = createEngine({
      tools: builtins,
      workspace: mkdtempSync(join(tmpdir(), "callgate-events-")),
      approval: "on-request",
      sandbox: "full-access",
      gate: { rules: [{ command: "git push", decision: "deny" }] },
      approver: { ask: async () => ({ answer: "once" }) },
    });
    const session = createSession({
      id: "rules",
      engine,
      model: createScriptedModel([
        { calls: [{ name: "shell_command", input: { command: "echo hello" } }] },
        { calls: [{ name: "shell_command", input: { command: "git push" } }] },
        { calls: [{ name: "exec_command", input: { cmd: "cat", tty: true, yield_time_ms: 300 } }] },
        ({ input }) => {
          const told = JSON.stringify(input.at(-1));
          const id = Number(/running as session (\d+)/.exec(told)?.[1] ?? 0);
          return { calls: [{ name: "write_stdin", input: { session_id: id, chars: "hello\n", yield_time_ms: 300 } }] };
        },
        { text: "Done." },
      ]),
      onEvent: (event) => events.push(event),
    });
    for await (const _event of session.send("go")) continue;
    await session.close();
    await engine.close();
    const told = JSON.stringify(events);
    expect(told).toContain('"denied":[{"rule"');
    expect(told).toContain('"typed":["');
    expect(await problemsOf(events)).toEqual([]);
  },
);

test("every event of a session that does everything fits the schema, and every type is seen", async () => {
  const events = await playAll();
  expect(await problemsOf(events)).toEqual([]);
  const seen = new Set<string>(events.map(({ type }) => type));
  const all = (eventSchema["anyOf"] as readonly { properties: { type: { const: string } } }[]).map(
    ({ properties }) => properties.type.const,
  );
  // Seen elsewhere: test/runtime/exec-requests.test.ts, test/attacks/programs-told.test.ts and test/router/held.test.ts.
  const elsewhere = [
    "call.waiting",
    "exec.request",
    "exec.programs",
    "effects.listed",
    "effects.decided",
    "effects.settled",
    "warning",
  ];
  expect(all.filter((type) => !seen.has(type)).toSorted()).toEqual(elsewhere.toSorted());
});

test("the offline model's sessions fit the schema, nobody to approve included", async () => {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-events-"));
  const engine = createEngine({ tools: builtins, workspace, approval: "on-request" });
  const events: SessionEvent[] = [];
  const session = createSession({ id: "o", engine, model: createOfflineModel(), tools: () => [] });
  const job = "list . then run echo hi then run curl http://127.0.0.1:9/ then plan: a; b";
  for await (const event of session.send(job)) events.push(event);
  expect(await problemsOf(events)).toEqual([]);
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", calls: 4 });
  await engine.close();
});

test.each([
  [{ type: "warning" }],
  [{ type: "warning", message: "x", more: 1 }],
  [{ type: "no.such.event" }],
  [{ type: "turn.started", turn: -1, prompt: "" }],
])("what is no event is refused: %j", async (value) => {
  expect((await validate(value)).ok).toBe(false);
});

test("the event types and their fields are the committed ones", async () => {
  const rows = (eventSchema["anyOf"] as readonly unknown[]).map((schema) => {
    if (!isObject(schema) || !isObject(schema["properties"])) throw new Error("an event is an object");
    const required = schema["required"] as readonly string[];
    const type = (schema["properties"]["type"] as { const: string }).const;
    const fields = Object.keys(schema["properties"]).map((name) => (required.includes(name) ? name : `${name}?`));
    return `${type}: ${fields.filter((name) => name !== "type").join(", ")}`;
  });
  await expect(`${rows.join("\n")}\n`).toMatchFileSnapshot("events.snap.txt");
});

test("docs/sessions.md names every event", async () => {
  const { readFileSync } = await import("node:fs");
  const page = readFileSync(new URL("../../docs/sessions.md", import.meta.url), "utf8");
  const types = (eventSchema["anyOf"] as readonly { properties: { type: { const: string } } }[]).map(
    ({ properties }) => properties.type.const,
  );
  expect(types.filter((type) => !page.includes(`\`${type}\``))).toEqual([]);
});
