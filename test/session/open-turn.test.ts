/** What records say of a turn that was left open, and what of a recorded turn is played again. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findOpenTurn, isHeldQuestion } from "../../src/session/open-turn.ts";
import { createRecordedModel, readTurns } from "../../src/session/replay.ts";
import { rebuildHistory } from "../../src/session/history.ts";
import type { CallItem, Item, MessageItem, ModelEvent } from "../../src/spec/model.ts";
import type { JournalRecord } from "../../src/store/journal.ts";
import { collect } from "../../src/wire/answer.ts";

const said = (role: "user" | "assistant", text: string): MessageItem => ({
  type: "message",
  role,
  content: [{ type: "text", text }],
});
const call = (id: string, name = "echo"): CallItem => ({
  type: "call",
  id,
  name,
  kind: "function",
  arguments: `{"id":"${id}"}`,
  complete: true,
});
const added = (item: Item, finish?: string): JournalRecord => ({ type: "item.added", item, ...(finish && { finish }) });
const started = (turn = 1): readonly JournalRecord[] => [
  { type: "turn.started", turn, prompt: "go" },
  added(said("user", "go")),
  { type: "request.sent", turn },
];
const ended = (id: string, more: object = {}): JournalRecord => ({
  type: "call.ended",
  call: { id, name: "echo", kind: "function", ok: true, content: [{ type: "text", text: `${id} done` }], ...more },
});
const asked = (id: string, hash: string, more: object = {}): JournalRecord => ({
  type: "approval.asked",
  id,
  request: { hash, grant: { network: "off" }, ...more },
});

describe("a turn", () => {
  test("that has ended, or that never began, is not open", () => {
    expect(findOpenTurn([])).toBeUndefined();
    expect(findOpenTurn([{ type: "session.started" }])).toBeUndefined();
    expect(findOpenTurn([...started(), { type: "turn.ended" }])).toBeUndefined();
    expect(findOpenTurn([...started(), { type: "turn.ended" }, ...started(2)])).toMatchObject({ turn: 2 });
  });

  test("whose prompt did not join the history still has it; one whose prompt did has not", () => {
    expect(findOpenTurn([{ type: "turn.started", turn: 3, prompt: "go" }])).toMatchObject({ turn: 3, prompt: "go" });
    expect(findOpenTurn(started())).not.toHaveProperty("prompt");
  });

  test("whose answer breaks off is asked again; one whose answer is whole has its calls to run", () => {
    const broken = findOpenTurn([...started(), added(said("assistant", "half")), added(call("a"))]);
    expect(broken).toMatchObject({ isBroken: true, calls: [], answerItems: 2, text: "half" });
    expect(broken).not.toHaveProperty("finish");
    const whole = findOpenTurn([...started(), added(said("assistant", "I look")), added(call("a"), "tool_calls")]);
    expect(whole).toMatchObject({ isBroken: false, calls: [{ id: "a" }], answerItems: 2, finish: "tool_calls" });
  });

  test.each<[string, JournalRecord]>([
    ["a call that began", { type: "call.started", id: "a" }],
    ["a call that ended", ended("a")],
    ["a question", asked("a", "h")],
  ])("whose answer is followed by %s is whole: calls run only then", (_what, record) => {
    const turn = findOpenTurn([...started(), added(call("a")), added(call("b")), record]);
    expect(turn).toMatchObject({ isBroken: false, calls: [{ id: "a" }, { id: "b" }] });
  });

  test("has only the calls of its last answer to run; those before are settled", () => {
    const records = [
      ...started(),
      added(call("a"), "tool_calls"),
      ended("a"),
      { type: "request.sent" },
      added(call("b"), "tool_calls"),
      { type: "call.started", id: "b" },
      added(said("user", "and quickly")),
      { type: "request.sent" },
      added(call("c"), "tool_calls"),
      added(call("d"), "tool_calls"),
      { type: "call.started", id: "c" },
    ];
    expect(findOpenTurn(records)).toMatchObject({
      calls: [{ id: "c" }, { id: "d" }],
      settled: [{ id: "a" }, { id: "b" }],
      answerItems: 2,
      // Settled calls and those that began count; one that did not begin counts when it runs.
      spent: { requests: 3, calls: 3 },
    });
    const compacted = findOpenTurn([...records, { type: "history.compacted", items: [] }]);
    expect(compacted).toMatchObject({ calls: [], settled: [{ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" }] });
  });

  test("a call that ended without having begun, because it was refused, counts as one that was made", () => {
    const records = [...started(), added(call("a")), added(call("b"), "tool_calls"), ended("a", { code: "denied" })];
    expect(findOpenTurn(records)).toMatchObject({ refused: 1, spent: { calls: 1 } });
    expect(findOpenTurn([...records, ended("b", { code: "failed" })])).toMatchObject({ refused: 1 });
  });

  test("one that a person stopped is stopped; one that nobody did is not", () => {
    const records = [...started(), added(call("a"), "tool_calls")];
    expect(findOpenTurn([...records, ended("a", { stopsTurn: true })])?.isStopped).toBe(true);
    expect(findOpenTurn([...records, ended("a")])?.isStopped).toBe(false);
  });

  test("questions wait until they are answered or their call has ended", () => {
    const records = [...started(), added(call("a")), added(call("b")), added(call("c"), "tool_calls")];
    const open = [...records, asked("a", "ha"), asked("b", "hb"), asked("c", "hc")];
    expect([...findOpenTurn(open)!.questions]).toEqual([
      ["a", "ha"],
      ["b", "hb"],
      ["c", "hc"],
    ]);
    const later = findOpenTurn([
      ...open,
      ended("a"),
      { type: "approval.answered", id: "b", hash: "hb", answer: "approve" },
      { type: "approval.answered", id: "c", answer: "deny" },
    ])!;
    expect([...later.questions]).toEqual([]);
    expect([...later.answers]).toEqual([["b", { hash: "hb", answer: "approve" }]]);
    const again = findOpenTurn([
      ...open,
      { type: "approval.answered", id: "b", hash: "hb", answer: "approve" },
      asked("b", "other"),
    ])!;
    expect([again.questions.get("b"), again.answers.has("b")]).toEqual(["other", false]);
  });

  test("a question that came up while its call ran went with the run: the call was cut off", () => {
    const records = [...started(), added(call("a"), "tool_calls"), { type: "call.started", id: "a" }, asked("a", "h")];
    expect(findOpenTurn(records)?.questions.size).toBe(0);
    expect(rebuildHistory(records).interrupted).toEqual(["a"]);
    // A held run that was run again may be asked about before it runs: that question waits.
    const again = [...started(), added(call("a"), "tool_calls"), { type: "call.started", id: "a" }];
    const held = asked("a", "h", { effects: {} });
    expect([...findOpenTurn([...again, held, asked("a", "other")])!.questions]).toEqual([["a", "other"]]);
  });

  test("a question about what a held run did is no question any more; what a run that could reach others did is not known", () => {
    const held = asked("a", "h", { effects: {} });
    const reaching = asked("a", "h", { effects: {}, grant: { network: "on" } });
    expect([held, reaching, asked("a", "h"), ended("a")].map(isHeldQuestion)).toEqual([true, false, false, false]);
    const records = [...started(), added(call("a"), "tool_calls"), { type: "call.started", id: "a" }];
    expect(findOpenTurn([...records, held])?.questions.size).toBe(0);
    expect(findOpenTurn([...records, reaching])?.questions.size).toBe(0);
    const fate = (record: JournalRecord) =>
      JSON.stringify(rebuildHistory([...records, record]).items.findLast(({ type }) => type === "result"));
    expect(fate(held)).toContain("Nothing was kept: it did not happen");
    expect(fate(reaching)).toContain("look at what it may have done");
    expect(fate({ type: "workspace.restored", undone: ["a"] })).toContain("set back to what it was");
    const decided = rebuildHistory([...records, held, { type: "effects.decided", id: "a" }]);
    expect(decided.interrupted).toEqual(["a"]);
  });

  test("its time is that in which a process ran it, and a clock that goes back takes nothing away", () => {
    const at = (time: number, record: JournalRecord): JournalRecord => ({ ...record, at: time });
    const [begun, prompt, request] = started() as [JournalRecord, JournalRecord, JournalRecord];
    const turn = [at(100, begun), at(110, prompt), at(130, request)];
    expect(findOpenTurn(turn)?.spent.ms).toBe(30);
    expect(findOpenTurn([...turn, at(90, added(said("assistant", "x"))), at(95, { type: "x" })])?.spent.ms).toBe(35);
    const later = [
      at(9_000, { type: "session.started" }),
      at(9_010, { type: "turn.resumed" }),
      at(9_015, { type: "x" }),
    ];
    expect(findOpenTurn([...turn, ...later])?.spent.ms).toBe(35);
    const answered = [at(5_000, { type: "approval.answered", id: "a" }), at(5_003, { type: "x" })];
    expect(findOpenTurn([...turn, ...answered])?.spent.ms).toBe(33);
    expect(findOpenTurn([...turn, { type: "without a time" }])?.spent.ms).toBe(0);
  });

  test("its cost is what it spent itself, not what turns before it did", () => {
    const used = (input: number, costUsd?: number): JournalRecord => ({
      type: "usage.updated",
      usage: { input, output: 1 },
      ...(costUsd !== undefined && { costUsd }),
    });
    const before = [...started(), used(5, 2), { type: "turn.ended" }];
    const spent = findOpenTurn([...before, ...started(2), used(7, 2.5), used(2, 3)])!.spent;
    expect(spent).toMatchObject({ costUsd: 1, usage: { input: 9, output: 2 } });
    expect(findOpenTurn([...before, ...started(2), used(7)])?.spent.costUsd).toBe(0);
  });
});

describe("a history", () => {
  const callOrText = fc.oneof(
    fc.constantFrom("a", "b", "c").map((text) => said("assistant", text)),
    fc.nat(999).map((n) => call(`c${n}`)),
  );
  test("wherever its records stop, every call has exactly one result after it and none is without its call", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uniqueArray(callOrText, { selector: (item) => ("id" in item ? item.id : {}), maxLength: 4 }), {
          maxLength: 4,
        }),
        fc.nat(40),
        (answers, cut) => {
          const seen = new Set<string>();
          const records: JournalRecord[] = [...started()];
          for (const answer of answers) {
            const items = answer.filter((item) => item.type !== "call" || (!seen.has(item.id) && seen.add(item.id)));
            for (const [at, item] of items.entries())
              records.push(added(item, at === items.length - 1 ? "stop" : undefined));
            for (const item of items) if (item.type === "call") records.push({ type: "call.started", id: item.id });
            for (const item of items.toReversed()) if (item.type === "call") records.push(ended(item.id));
            records.push({ type: "request.sent" });
          }
          const { items } = rebuildHistory(records.slice(0, cut));
          const calls = items.flatMap((item) => (item.type === "call" ? [item.id] : []));
          const results = items.flatMap((item) => (item.type === "result" ? [item.callId] : []));
          expect(results).toEqual(calls);
          for (const id of calls)
            expect(items.findIndex((item) => item.type === "result" && item.callId === id)).toBeGreaterThan(
              items.findIndex((item) => item.type === "call" && item.id === id),
            );
        },
      ),
    );
  });

  test("results that a shortened history holds are not put in again, and keep the name the model used", () => {
    const result = { type: "result", callId: "a", kind: "function", name: "x", content: [], ok: true } as const;
    const compacted = { type: "history.compacted", items: [said("user", "go"), call("a"), result] };
    const { items, callIds } = rebuildHistory([
      ...started(),
      compacted,
      added(call("b", "alias"), "tool_calls"),
      ended("b"),
    ]);
    expect(items.map((item) => [item.type, item.type === "result" ? item.callId : ""])).toEqual([
      ["message", ""],
      ["call", ""],
      ["result", "a"],
      ["call", ""],
      ["result", "b"],
    ]);
    expect(items.at(-1)).toMatchObject({ name: "alias" });
    expect(callIds).toEqual(["b"]);
  });

  test("a call that was cut off is told once, however often the session is opened after it", () => {
    const records = [...started(), added(call("a"), "tool_calls"), { type: "call.started", id: "a" }];
    expect(rebuildHistory(records).interrupted).toEqual(["a"]);
    expect(rebuildHistory([...records, { type: "session.started" }]).interrupted).toEqual([]);
  });
});

describe("a recorded turn", () => {
  const records: readonly JournalRecord[] = [
    { type: "session.started" },
    added(said("assistant", "before any turn")),
    { type: "turn.started", prompt: "one" },
    added(said("user", "one")),
    { type: "request.sent" },
    added({ type: "reasoning", text: "hm" } as unknown as Item),
    added(said("assistant", "I look")),
    added(call("a"), "tool_calls"),
    ended("a"),
    { type: "request.sent" },
    added(said("assistant", "done")),
    { type: "warning", item: said("assistant", "no item") },
    { type: "turn.started", prompt: "two" },
    { type: "request.sent" },
  ];

  test("is its prompt and what the model said to each request, and nothing of anybody else", () => {
    const turns = readTurns(records);
    expect(turns.map(({ prompt, answers }) => [prompt, answers.map((items) => items.map(({ type }) => type))])).toEqual(
      [
        ["one", [["reasoning", "message", "call"], ["message"]]],
        ["two", [[]]],
      ],
    );
  });

  test("is given again, one answer a request, and then nothing", async () => {
    const model = createRecordedModel(readTurns(records)[0]!, "recorded");
    expect(model.name).toBe("recorded");
    const ask = () =>
      collect(model.ask({ model: "m", input: [], tools: [] }, AbortSignal.timeout(5_000)) as AsyncIterable<ModelEvent>);
    expect(await ask()).toMatchObject({
      finish: "tool_calls",
      outcome: "ok",
      items: [{}, {}, { type: "call", id: "a" }],
    });
    expect(await ask()).toMatchObject({ finish: "stop", items: [{ type: "message" }] });
    expect(await ask()).toMatchObject({ outcome: "ok", items: [] });
    const stopped = collect(model.ask({ model: "m", input: [], tools: [] }, AbortSignal.abort(new Error("stop"))));
    await expect(stopped).rejects.toThrow("stop");
  });
});
