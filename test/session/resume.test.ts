/** Going on with a session: what is known again, what is told, what is told only once. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine, defineTool } from "../../src/index.ts";
import { createSession, type SessionEvent, type SessionOptions } from "../../src/session/index.ts";
import { openJournal, readJournal } from "../../src/store/index.ts";
import { createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";
import { updatePlan } from "../../src/tools/index.ts";

const echo = defineTool({ name: "echo", description: "Echo.", input: { type: "object" }, run: () => "said" });
const newPath = () => join(mkdtempSync(join(tmpdir(), "callgate-resume-")), "s.jsonl");

/** One process's part of a session. */
function openPart(path: string, steps: readonly ScriptedStep[], options: Partial<SessionOptions> = {}) {
  const model = createScriptedModel(steps);
  const events: SessionEvent[] = [];
  const journal = openJournal(path);
  const session = createSession({
    id: "s",
    engine: createEngine({ tools: [echo, updatePlan], approval: "never", sandbox: "full-access" }),
    model,
    tools: () => [],
    journal,
    records: readJournal(path).records,
    onEvent: (event) => events.push(event),
    ...options,
  });
  const play = async (prompt: string) => {
    for await (const _event of session.send(prompt)) continue;
  };
  return { session, model, events, play, journal };
}

test("tokens, money, turns and the plan are known again", async () => {
  const path = newPath();
  const price = { input: 1, output: 1 };
  const usage = { input: 500_000, output: 0 };
  const plan = { plan: [{ step: "mend it", status: "in_progress" }] };
  const first = openPart(path, [{ calls: [{ name: "update_plan", input: plan }] }, { text: "ok", end: { usage } }], {
    price,
  });
  await first.play("plan it");
  await first.session.close();
  const second = openPart(path, [{ text: "on it", end: { usage } }, { text: "summary" }], { price });
  expect(second.session).toMatchObject({ costUsd: 0.5, usage: { input: 500_000 } });
  await second.play("go on");
  expect(second.session).toMatchObject({ costUsd: 1, usage: { input: 1_000_000 } });
  expect(second.events.find(({ type }) => type === "turn.started")).toMatchObject({ turn: 2 });
  await second.session.compact();
  expect(JSON.stringify(second.session.history)).toContain("mend it");
});

test("a call that was cut off is answered in every request, but told to the user once", async () => {
  const path = newPath();
  const first = openPart(path, []);
  const call = { type: "call", kind: "function", id: "c1", name: "echo", arguments: "{}", complete: true } as const;
  first.journal.append({ type: "turn.started", turn: 1, prompt: "go" });
  first.journal.append({ type: "item.added", item: call });
  first.journal.append({ type: "call.started", id: "c1", tool: "echo", input: {} });
  first.journal.close(); // as after a kill: no end of the call, no end of the turn

  for (const expected of [["c1"], [], []]) {
    const { session, model, play, events } = openPart(path, [{ text: "ok" }]);
    expect(session.interrupted).toEqual(expected);
    expect(events.filter(({ type }) => type === "warning")).toHaveLength(expected.length);
    await play("go on");
    const results = model.requests[0]!.input.filter((item) => item.type === "result");
    expect(results).toMatchObject([{ callId: "c1", ok: false }]);
    await session.close();
  }
});

test("a resumed session sends the very bytes it would have sent", async () => {
  const steps: readonly ScriptedStep[] = [
    { reasoning: "Hm.", text: "One.", calls: [{ name: "echo", input: { n: 1 } }, { name: "no_such_tool" }] },
    { text: "Two." },
  ];
  const [path, whole] = [newPath(), newPath()];
  const first = openPart(path, steps);
  await first.play("a");
  await first.session.close();
  const resumed = openPart(path, [{ text: "Three." }]);
  await resumed.play("b");
  const live = openPart(whole, [...steps, { text: "Three." }]);
  await live.play("a");
  await live.play("b");
  const bytes = (input: unknown) => JSON.stringify(input).replaceAll("call_0_", "call_");
  expect(bytes(resumed.model.requests[0]!.input)).toBe(bytes(live.model.requests.at(-1)!.input));
});
