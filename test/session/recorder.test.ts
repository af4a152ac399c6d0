import { expect, test } from "vitest";
import { createSessionRecorder } from "../../src/session/recorder.ts";
import type { SessionEvent } from "../../src/session/index.ts";
import type { JournalRecord } from "../../src/store/index.ts";

function recorded(events: readonly (SessionEvent | { readonly waitMs: number })[]): readonly JournalRecord[] {
  const records: JournalRecord[] = [];
  let now = 0;
  const journal = {
    path: "",
    append: (record: JournalRecord) => void records.push(record),
    async sync() {},
    close() {},
  };
  const recorder = createSessionRecorder(journal, { now: () => now });
  for (const event of events) {
    if ("waitMs" in event) now += event.waitMs;
    else recorder.write(event);
  }
  recorder.flush();
  return records;
}

const delta = (words: string): SessionEvent => ({ type: "item.delta", index: 0, field: "text", delta: words });
const item = { type: "message", role: "assistant", content: [{ type: "text", text: "one two" }] } as const;
const ended = {
  type: "turn.ended",
  turn: 1,
  reason: "done",
  text: "one two",
  usage: { input: 1, output: 1 },
  requests: 1,
  calls: 0,
  refused: 0,
  durationMs: 1,
} as const;

test("a finished answer is in the journal once", () => {
  const records = recorded([
    delta("one "),
    delta("two"),
    { type: "item.done", index: 0, item },
    { type: "item.added", item },
    ended,
  ]);
  expect(JSON.stringify(records).match(/one two/g)).toHaveLength(1);
  expect(records.map(({ type }) => type)).toEqual(["item.added", "turn.ended"]);
});

test("of an answer that is being given, what is older than a second is in the journal", () => {
  const records = recorded([delta("one "), { waitMs: 1_001 }, delta("two"), { type: "warning", message: "cut" }]);
  expect(records.map((record) => record["delta"] ?? record.type)).toEqual(["one ", "two", "warning"]);
});
