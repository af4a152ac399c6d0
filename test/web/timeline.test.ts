import { expect, test } from "vitest";
import { createTimeline } from "../../web/timeline.ts";

const record = (n: number, type: string, fields: Record<string, unknown> = {}) => ({
  n,
  at: 1000 + n,
  type,
  ...fields,
});
const message = (text: string) => ({ type: "message", role: "assistant", content: [{ type: "text", text }] });

test("records become what a person reads, in order, and a repeated record changes nothing", () => {
  const timeline = createTimeline();
  const records = [
    record(0, "session.started", { model: "m" }),
    record(1, "turn.started", { turn: 1, prompt: "hi" }),
    record(2, "item.added", { item: { ...message("hello"), role: "user" } }),
    record(3, "item.added", {
      item: {
        type: "call",
        kind: "function",
        id: "c1",
        name: "shell_command",
        arguments: '{"command":"ls"}',
        complete: true,
      },
    }),
    record(4, "call.started", {
      id: "c1",
      tool: "shell_command",
      input: { command: "ls" },
      ruling: { decision: "allow", by: "policy", reason: "it only reads" },
    }),
    record(5, "call.ended", {
      call: { id: "c1", name: "shell_command", ok: true, content: [{ type: "text", text: "a.txt" }], durationMs: 12 },
    }),
    record(6, "item.added", { item: message("There is one file.") }),
    record(7, "turn.ended", { turn: 1, reason: "done" }),
  ];
  for (const each of [...records, ...records]) timeline.add(each);
  expect(timeline.entries).toMatchObject([
    { kind: "message", role: "user", text: "hello" },
    { kind: "call", tool: "shell_command", state: "ok", output: "a.txt", durationMs: 12 },
    { kind: "message", role: "assistant", text: "There is one file." },
  ]);
  expect([timeline.last, timeline.running, timeline.model]).toEqual([7, false, "m"]);
});

test("live text is there at once and is replaced by its record", () => {
  const timeline = createTimeline();
  timeline.add(record(0, "turn.started"));
  timeline.live({ type: "item.delta", index: 0, field: "text", delta: "Half a" });
  timeline.live({ type: "item.delta", index: 0, field: "text", delta: " sentence" });
  expect(timeline.entries).toMatchObject([{ text: "Half a sentence", live: true }]);
  timeline.add(record(1, "item.added", { item: message("Half a sentence, now whole.") }));
  expect(timeline.entries).toMatchObject([{ text: "Half a sentence, now whole.", live: false }]);
});

test("a question about running it again that nobody could be waited for leaves the call as it was", () => {
  const ask = (hash: string, more = {}) => ({
    id: "c1",
    request: { call: { id: "c1", tool: "shell_command", input: {} }, reason: hash, commands: [], hash, ...more },
  });
  const play = (more?: object) => {
    const timeline = createTimeline();
    timeline.add(record(0, "approval.asked", ask("first")));
    timeline.add(record(1, "approval.answered", { id: "c1", answer: { answer: "once" } }));
    timeline.add(record(2, "call.started", { id: "c1", tool: "shell_command", input: {} }));
    timeline.add(record(3, "approval.asked", ask("again", more)));
    return timeline;
  };
  const left = play();
  left.add(record(4, "approval.answered", { id: "c1" }));
  expect(left.entries).toMatchObject([{ state: "running", answer: "yes, once", approval: { hash: "first" } }]);
  const answered = play();
  answered.add(record(4, "approval.answered", { id: "c1", answer: { answer: "no" } }));
  expect(answered.entries).toMatchObject([{ answer: "no", approval: { hash: "again" } }]);
  // What a held run did is dropped then, and that is told.
  const held = play({ effects: {} });
  held.add(record(4, "approval.answered", { id: "c1" }));
  expect(held.entries).toMatchObject([{ answer: "nobody could be asked", approval: { hash: "again" } }]);
});

test("a question waits at its call until it is answered, and live output is bounded", () => {
  const timeline = createTimeline();
  const request = {
    call: { id: "c1", tool: "shell_command", input: { command: "rm x" } },
    reason: "it removes",
    commands: [["rm", "x"]],
    hash: "h",
  };
  timeline.add(record(0, "approval.asked", { id: "c1", request }));
  expect(timeline.entries).toMatchObject([{ kind: "call", state: "waiting", approval: { hash: "h" } }]);
  timeline.add(record(1, "approval.answered", { id: "c1", answer: { answer: "once" } }));
  timeline.add(record(2, "call.started", { id: "c1", tool: "shell_command", input: {} }));
  for (let at = 0; at < 50; at++)
    timeline.live({ type: "exec.output", id: "c1", stream: "stdout", text: "x".repeat(10_000) });
  const [entry] = timeline.entries;
  expect(entry).toMatchObject({ state: "running", answer: "yes, once" });
  expect(entry?.kind === "call" && entry.output.length).toBeLessThanOrEqual(200_000);
});
