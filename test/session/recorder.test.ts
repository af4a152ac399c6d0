import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSessionRecorder } from "../../src/session/recorder.ts";
import type { SessionEvent } from "../../src/session/index.ts";
import type { Ended, Permitted } from "../../src/spec/call.ts";
import type { JournalRecord } from "../../src/store/index.ts";
import { Unavailable } from "../../src/store/session-store.ts";

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

test("any pieces of answers and outputs are in the journal whole and in order, and with fewer records", () => {
  const piece = fc.oneof(
    fc.record({ index: fc.nat(1), delta: fc.string({ unit: "binary", minLength: 1 }) }),
    fc.record({ stream: fc.constantFrom("stdout", "stderr"), text: fc.string({ minLength: 1 }) }),
    fc.record({ waitMs: fc.constantFrom(1, 1_001) }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const events = pieces.map((one): SessionEvent | { readonly waitMs: number } => {
        if ("waitMs" in one) return one;
        if ("delta" in one) return { type: "item.delta", field: "text", ...one };
        return { type: "exec.output", id: "c", stream: one.stream as "stdout", text: one.text };
      });
      const textOf = (all: readonly object[]) =>
        all.map((one) => ("delta" in one ? one.delta : "text" in one ? one.text : ""));
      const records = recorded(events);
      expect(textOf(records).join("")).toBe(textOf(events).join(""));
      const apart = records.map((record) => `${record.type} ${String(record["index"])} ${String(record["stream"])}`);
      const gaps = events.filter((event) => "waitMs" in event && event.waitMs > 1_000).length;
      const changes = apart.filter((key, at) => key === apart[at - 1]).length;
      expect(changes).toBeLessThanOrEqual(gaps);
    }),
  );
});

test("of a command that prints without end, the journal holds the beginning and what was left out", () => {
  const output = (text: string, more: object = {}): SessionEvent => ({
    type: "exec.output",
    id: "c",
    stream: "stdout",
    text,
    ...more,
  });
  const lines = Array.from({ length: 300 }, () => output("x".repeat(1_000)));
  const records = recorded([
    ...lines,
    output("", { omittedBytes: 99 }),
    { ...output("of another"), id: "d" } as SessionEvent,
  ]);
  const chars = records.map((record) => String(record["text"]).length).reduce((a, b) => a + b, 0);
  expect(chars).toBeGreaterThan(64_000);
  expect(chars).toBeLessThan(68_000);
  expect(records.map((record) => record["omittedBytes"] ?? record["id"])).toEqual(["c", 99, "d"]);
});

test("a diff that was shown is in the journal only where questions are answered from it; file contents never", () => {
  const request = { hash: "h", diff: "- secret", reason: "r" } as never;
  const asked: SessionEvent = { type: "approval.asked", id: "c", request };
  const write = (keepDiffs: boolean) => {
    const records: JournalRecord[] = [];
    const recorder = createSessionRecorder(
      { append: (record) => void records.push(record), close() {} },
      { keepDiffs },
    );
    recorder.write(asked);
    recorder.write({ type: "file.changed", id: "c", path: "/f", before: "secret", after: "x" } as never);
    return JSON.stringify(records);
  };
  expect(write(false)).not.toContain("secret");
  expect(write(true)).toContain("- secret");
  expect(write(true)).not.toContain("/f");
});

describe("a call", () => {
  const permitted = (more: object = {}) =>
    ({
      id: "c",
      tool: { name: "shell" },
      input: {},
      ruling: { decision: "allow" },
      mutates: true,
      grant: { policy: "workspace-write", confined: true, write: ["/w"], network: "off" },
      ...more,
    }) as unknown as Permitted;
  const over = (more: object = {}) =>
    ({ id: "c", name: "shell", kind: "function", arguments: "{}", ok: true, content: [], ...more }) as unknown as Ended;
  const open = (options: Parameters<typeof createSessionRecorder>[1] = {}) => {
    const did: string[] = [];
    const records: JournalRecord[] = [];
    const journal = {
      append(record: JournalRecord) {
        records.push(record);
        did.push(record.type);
      },
      async commit() {
        did.push("commit");
      },
      async sync() {
        did.push("sync");
      },
      close() {},
    };
    return { did, records, recorder: createSessionRecorder(journal, options) };
  };

  test("is on the disk before it changes anything; one that only reads is written, and waits for no disk", async () => {
    const changing = open();
    changing.recorder.write(delta("words before it"));
    await changing.recorder.started(permitted());
    expect(changing.did).toEqual(["item.delta", "call.started", "commit", "sync"]);
    const reading = open();
    await reading.recorder.started(permitted({ mutates: false }));
    expect(reading.did).toEqual(["call.started", "commit"]);
  });

  test("names what it may have done only where somebody keeps the folder, and the folder's state with its end", async () => {
    const plain = open();
    await plain.recorder.started(permitted({ parent: "p" }));
    expect(plain.records[0]).toMatchObject({ parent: "p", mutates: true, policy: "workspace-write", confined: true });
    expect(plain.records[0]).not.toHaveProperty("write");
    let kept = 0;
    const keepFolder = async () => `state ${++kept}`;
    const keeping = open({ keepFolder });
    await keeping.recorder.started(permitted());
    expect(keeping.records[0]).toMatchObject({ write: ["/w"], network: "off" });
    await keeping.recorder.ended(over());
    expect(keeping.records[1]).toMatchObject({ workspace: "state 1" });
    await keeping.recorder.started(permitted({ mutates: false }));
    await keeping.recorder.ended(over());
    expect(keeping.records[2]).not.toHaveProperty("write");
    expect(keeping.records[3]).not.toHaveProperty("workspace");
    expect(kept).toBe(1);
  });

  test("what it read and left running is recorded with its end, and what has not changed is not", async () => {
    let files: (readonly [string, string])[] = [["/f", "v1"]];
    let running = ["sleep 9"];
    const remembered = { takeFilesRead: () => files.splice(0), openTerminals: () => running };
    const { recorder, records } = open({ remembered });
    await recorder.ended(over());
    await recorder.ended(over());
    running = [];
    files = [["/g", "v2"]];
    await recorder.ended(over());
    expect(records.map(({ files: read, terminals }) => [read, terminals])).toEqual([
      [[["/f", "v1"]], ["sleep 9"]],
      [undefined, undefined],
      [[["/g", "v2"]], []],
    ]);
  });

  test("its arguments are told once: by its item, or with its end where it is nobody's item and never began", async () => {
    const { recorder, records } = open();
    await recorder.ended(over({ input: {}, grant: {} }));
    await recorder.ended(over({ parent: "p", input: {}, grant: {} }));
    await recorder.ended(over({ parent: "p" }));
    const told = records.map(({ call }) =>
      Object.keys(call as object).filter((key) => /arguments|input|grant/.test(key)),
    );
    expect(told).toEqual([[], [], ["arguments"]]);
  });
});

describe("a journal that takes no more", () => {
  const refusing = (after: number, how: "throws" | "rejects") => {
    const taken: string[] = [];
    let left = after;
    return {
      taken,
      append(record: JournalRecord): void | Promise<void> {
        if (left-- > 0) return void taken.push(record.type);
        const error = new Error("the disk is full");
        if (how === "throws") throw error;
        return Promise.reject(error);
      },
      close() {},
    };
  };
  const note = (message: string): SessionEvent => ({ type: "warning", message });

  test.each(["throws", "rejects"] as const)(
    "because it %s gets nothing more, and says why from then on",
    async (how) => {
      const journal = refusing(1, how);
      const recorder = createSessionRecorder(journal);
      recorder.write(note("one"));
      await recorder.commit();
      expect(recorder.failure).toBeUndefined();
      if (how === "throws") expect(() => recorder.write(note("two"))).toThrow("the disk is full");
      else recorder.write(note("two"));
      await expect(recorder.commit()).rejects.toThrow("the disk is full");
      expect(recorder.failure?.message).toBe("the disk is full");
      recorder.write(note("three")); // would be in the wrong place
      await expect(recorder.commit()).rejects.toThrow("the disk is full");
      expect(journal.taken).toEqual(["warning"]);
    },
  );

  test("because its commit fails says so, also with what is no error", async () => {
    const journal = { append() {}, commit: () => Promise.reject(new Error("gone")), close() {} };
    const recorder = createSessionRecorder(journal);
    await expect(recorder.commit()).rejects.toThrow("gone");
    const strange = createSessionRecorder({ ...journal, commit: () => Promise.reject("words") });
    await expect(strange.commit()).rejects.toThrow("words");
  });

  test("a store that is away while the folder is kept fails the recorder; another fault of it is only told", async () => {
    const ended = { id: "c", name: "x", kind: "function", arguments: "", ok: true, content: [] } as unknown as Ended;
    const begin = async (error: Error) => {
      const recorder = createSessionRecorder({ append() {}, close() {} }, { keepFolder: () => Promise.reject(error) });
      await recorder.started({ id: "c", tool: { name: "x" }, mutates: true, grant: {} } as unknown as Permitted);
      await expect(recorder.ended(ended)).rejects.toThrow(error.message);
      return recorder.failure;
    };
    const away = new Unavailable(new Error("away"));
    expect(await begin(away)).toBe(away);
    expect(await begin(new Error("a bug"))).toBeUndefined();
  });
});
