import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { formatJournal, gatherRecords, openJournal, readJournal } from "../../src/store/journal.ts";

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

test("any records come back as they were, however many are written at once and in how many openings", () => {
  const record = fc.record({ type: fc.string(), value: fc.jsonValue() });
  fc.assert(
    fc.property(fc.array(fc.array(record, { maxLength: 4 }), { maxLength: 4 }), (openings) => {
      const path = fresh();
      for (const records of openings) {
        const journal = openJournal(path, () => 7);
        journal.append(...records);
        journal.close();
      }
      const expected = openings.flat().map((one, n) => ({ ...(JSON.parse(JSON.stringify(one)) as object), n, at: 7 }));
      if (openings.length === 0) return;
      expect(readJournal(path)).toMatchObject({ records: expected, problems: [] });
    }),
    { numRuns: 50 },
  );
});

test("a record far longer than what is written at once is one line with one checksum", () => {
  const path = fresh();
  const journal = openJournal(path);
  const text = "grüße ".repeat(50_000);
  journal.append({ type: "x", text, list: [text, "end"] }, { type: "y" });
  expect(journal.length).toBe(2);
  journal.close();
  expect(readFileSync(path, "utf8").split("\n")).toHaveLength(3);
  expect(readJournal(path)).toMatchObject({
    records: [
      { text, list: [text, "end"] },
      { type: "y", n: 1 },
    ],
    problems: [],
  });
});

test("records written down as text are what the journal would have written", () => {
  const path = filled(3);
  expect(formatJournal(readJournal(path).records)).toBe(readFileSync(path, "utf8"));
});

test("whichever byte of a line is changed, that line and what follows are not believed", () => {
  const whole = readFileSync(filled(4));
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const path = fresh();
      const edited = Buffer.from(whole);
      edited[at] = whole[at]! ^ change;
      writeFileSync(path, edited);
      const line = whole.subarray(0, at).filter((byte) => byte === 0x0a).length + 1;
      const { records, problems } = readJournal(path);
      expect(records).toHaveLength(line - 1);
      expect(problems).toMatchObject([{ line }]);
    }),
    { numRuns: 150 },
  );
});

test("a journal that is refused is left as it was and can be opened once it is mended", () => {
  const path = filled(3);
  const good = readFileSync(path, "utf8");
  const bad = good.replace("grüße 0", "grüße 9");
  writeFileSync(path, bad);
  expect(() => openJournal(path)).toThrow(/line 1/);
  expect(readFileSync(path, "utf8")).toBe(bad);
  expect(existsSync(`${path}.lock`)).toBe(false);
  writeFileSync(path, good);
  openJournal(path).close();
});

test("only its owner reads a journal, and what it promised is on the disk when it says so", async () => {
  const path = fresh();
  const journal = openJournal(path);
  journal.append({ type: "x" });
  await journal.sync();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  journal.close();
});

test("records that are gathered are written when asked, and otherwise before the event loop goes on", async () => {
  const path = fresh();
  const journal = gatherRecords(openJournal(path, () => 1));
  const written = () => readJournal(path).records.length;
  journal.append({ type: "a" });
  journal.append({ type: "b" }, { type: "c" });
  expect([journal.length, written()]).toEqual([3, 0]);
  await journal.commit();
  expect(written()).toBe(3);
  journal.append({ type: "d" });
  await new Promise((resolve) => setImmediate(resolve));
  expect(written()).toBe(4);
  journal.append({ type: "e" });
  journal.close();
  expect(readJournal(path)).toMatchObject({ problems: [], records: { length: 5 } });
});

test.skipIf(!existsSync("/dev/full"))(
  "a disk that is full while nobody waits is told to whoever writes next",
  async () => {
    const path = fresh();
    symlinkSync("/dev/full", path);
    const journal = gatherRecords(openJournal(path, () => 1));
    journal.append({ type: "a" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(() => journal.append({ type: "b" })).toThrow(/ENOSPC/);
    journal.append({ type: "c" });
    await expect(journal.commit()).rejects.toThrow(/ENOSPC/);
  },
);
