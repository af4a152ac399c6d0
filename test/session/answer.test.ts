/** Answers that have to fit a schema, ids that come twice, and what interrupts or costs a turn. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createEngine, defineTool } from "../../src/index.ts";
import type { Model } from "../../src/model/index.ts";
import { createSession, rebuildHistory, type SessionOptions, type TurnEnded } from "../../src/session/index.ts";
import { createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";

const echo = defineTool({
  name: "echo",
  description: "Says it again.",
  input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  run: ({ text }) => `echo ${text}`,
});
const engine = createEngine({ tools: [echo], workspace: mkdtempSync(join(tmpdir(), "callgate-answer-")) });
afterAll(() => engine.close());

const schema = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] } as const;
let opened = 0;

async function play(steps: readonly ScriptedStep[], options: Partial<SessionOptions> = {}) {
  const model = createScriptedModel(steps);
  const records: Record<string, unknown>[] = [];
  const journal = { append: (record: object) => void records.push({ ...record }), close: () => undefined };
  const session = createSession({ id: `s${++opened}`, engine, model, journal, ...options });
  let ended: TurnEnded | undefined;
  for await (const event of session.send("go")) if (event.type === "turn.ended") ended = event;
  await session.close();
  return { ended: ended!, model, session, records: records as { readonly type: string }[] };
}

test("an answer that does not fit is asked for again, with what is wrong and the schema", async () => {
  const { ended, model } = await play(
    [{ text: "about 42" }, { text: '{"sum":"42"}' }, { text: '```json\n{"sum":42}\n```' }],
    {
      output: schema,
    },
  );
  expect(ended).toMatchObject({ reason: "done", output: { sum: 42 }, requests: 3 });
  expect(model.requests[0]?.outputSchema?.schema).toEqual(schema);
  const told = JSON.stringify(model.requests[2]?.input.at(-1));
  expect(told).toContain("sum: must be number");
  expect(told).toContain('"synthetic":true');
});

test("a model that never fits fails the turn; request.outputSchema is held to as well", async () => {
  const request = { outputSchema: { name: "sum", schema } };
  const { ended } = await play(
    Array.from({ length: 3 }, (): ScriptedStep => ({ text: '{"a":"notnumber"}' })),
    { request },
  );
  expect(ended.reason).toBe("error");
  expect(ended.detail).toContain("does not fit");
  expect(ended.output).toBeUndefined();
});

test("a schema that is none is a TypeError", () => {
  const model = createScriptedModel([]);
  expect(() => createSession({ id: "x", engine, model, output: { $ref: "#/nowhere" } })).toThrow(TypeError);
});

test("ids that a server gives again are told apart, live and when the journal is read", async () => {
  const call = (text: string) => ({ name: "echo", id: "call_1", input: { text } });
  const { session, records } = await play([
    { calls: [call("a"), call("b")] },
    { calls: [call("c")] },
    { text: "done" },
  ]);
  const pairs = (items: typeof session.history) =>
    items.flatMap((item) =>
      item.type === "call"
        ? [`${item.id} ${item.arguments}`]
        : item.type === "result"
          ? [`${item.callId} ${JSON.stringify(item.content)}`]
          : [],
    );
  const live = pairs(session.history);
  expect(new Set(live.map((line) => line.split(" ")[0])).size).toBe(3);
  for (const text of ["a", "b", "c"]) {
    const id = live.find((line) => line.endsWith(`{"text":"${text}"}`))?.split(" ")[0];
    expect(live).toContainEqual(`${id} [{"type":"text","text":"echo ${text}"}]`);
  }
  const again = rebuildHistory(records);
  expect(pairs(again.items)).toEqual(live);
  const next = await play([{ calls: [call("d")] }, { text: "done" }], { records });
  expect(next.session.history.filter((item) => item.type === "call").map(({ id }) => id)).toHaveLength(4);
  expect(new Set(next.session.history.flatMap((item) => (item.type === "call" ? [item.id] : []))).size).toBe(4);
});

test("an interruption ends the wait before a broken answer is asked for again", async () => {
  const error = { message: "busy", retryAfterMs: 3_600_000 };
  const model = createScriptedModel([{ end: { outcome: "error", error } }]);
  const session = createSession({ id: "waiting", engine, model, isRetryable: () => true });
  const ends: string[] = [];
  for await (const event of session.send("go")) {
    if (event.type === "warning") session.interrupt();
    if (event.type === "turn.ended") ends.push(event.reason);
  }
  expect(ends).toEqual(["interrupted"]);
  await session.close();
});

test("a compaction is paid for", async () => {
  const usage = { input: 50_000, output: 2_000 };
  const { session } = await play([{ text: "hello" }]);
  expect(session.usage).toEqual({ input: 0, output: 0 });
  const model = createScriptedModel([{ text: "hello" }, { text: "summary", end: { usage } }]);
  const other = createSession({ id: "compacted", engine, model, price: { input: 1, output: 1 } });
  for await (const _ of other.send("go"));
  await other.compact();
  expect(other.usage).toMatchObject(usage);
  expect(other.costUsd).toBeGreaterThan(0);
  await other.close();
});

test("what a request's sender has to say is a warning, typed on its way", async () => {
  const model: Model = {
    name: "noting",
    async *ask() {
      yield { type: "note", note: { type: "tool.dropped", name: "echo", reason: "too long" } };
      yield { type: "answer.ended", answer: { outcome: "ok", finish: "stop" } };
    },
  };
  const session = createSession({ id: "noted", engine, model });
  const warnings: string[] = [];
  for await (const event of session.send("go")) if (event.type === "warning") warnings.push(event.message);
  expect(warnings).toContain("The tool echo is not offered: too long");
  await session.close();
});
