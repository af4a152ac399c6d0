import { appendFileSync, mkdtempSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openJournal, readJournal } from "../../src/store/journal.ts";

const fresh = () => join(mkdtempSync(join(tmpdir(), "callgate-journal-")), "s.jsonl");
const filled = (count: number) => {
  const path = fresh();
  const journal = openJournal(path, () => 1);
  for (let i = 0; i < count; i++) journal.append({ type: "x", text: `grüße ${i}` });
  journal.close();
  return path;
};

test("what was appended is read back in order, numbered and timed", () => {
  const { records, problems } = readJournal(filled(3));
  expect(problems).toEqual([]);
  expect(records.map(({ n, at, text }) => [n, at, text])).toEqual([
    [0, 1, "grüße 0"],
    [1, 1, "grüße 1"],
    [2, 1, "grüße 2"],
  ]);
});

test("a record cannot say its own number or time", () => {
  const path = fresh();
  const journal = openJournal(path, () => 1);
  journal.append({ type: "x", n: 99, at: 99 });
  journal.close();
  expect(readJournal(path)).toMatchObject({ records: [{ type: "x", n: 0, at: 1 }], problems: [] });
});

test("a file cut at any byte keeps every whole line, and goes on from there", () => {
  const whole = readFileSync(filled(4));
  fc.assert(
    fc.property(fc.integer({ min: 0, max: whole.length }), (cut) => {
      const path = fresh();
      writeFileSync(path, whole);
      truncateSync(path, cut);
      const lines = whole.subarray(0, cut).filter((byte) => byte === 0x0a).length;
      expect(readJournal(path).records).toHaveLength(lines);
      const journal = openJournal(path);
      journal.append({ type: "after" });
      journal.close();
      const again = readJournal(path);
      expect(again.problems).toEqual([]);
      expect(again.records.at(-1)).toMatchObject({ type: "after", n: lines });
    }),
  );
});

test("an edited line is told with its number, and the journal is not appended to", () => {
  const path = filled(3);
  writeFileSync(path, readFileSync(path, "utf8").replace("grüße 1", "grüße 9"));
  expect(readJournal(path).problems).toMatchObject([{ line: 2, what: "edited" }]);
  expect(() => openJournal(path)).toThrow(/line 2/);
});

test("a line taken out is noticed at the line after it", () => {
  const path = filled(4);
  const lines = readFileSync(path, "utf8").split("\n");
  writeFileSync(path, lines.toSpliced(1, 1).join("\n"));
  expect(readJournal(path).problems).toMatchObject([{ line: 2, what: "edited" }]);
});

test("garbage after the last line is a torn end, not a loss", () => {
  const path = filled(2);
  appendFileSync(path, '{"n":2,"at":1,"ty');
  const { records, problems } = readJournal(path);
  expect(records).toHaveLength(2);
  expect(problems).toMatchObject([{ line: 3, what: "torn" }]);
});
