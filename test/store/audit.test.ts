import { spawn } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { openAudit, verifyAudit } from "../../src/store/audit.ts";
import { bundleStore, runBeside } from "./run.ts";

const base = mkdtempSync(join(tmpdir(), "callgate-audit-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(base, "a-")), "audit.jsonl");
  const audit = openAudit({ path, now: () => 1 });
  for (let n = 0; n < 5; n++) audit.append({ call: `c${n}`, decision: "allow" });
});

const lines = () => readFileSync(path, "utf8").trimEnd().split("\n");
const rewrite = (next: readonly string[]) => writeFileSync(path, `${next.join("\n")}\n`);

test("an untouched log verifies, and goes on in another process's hands", () => {
  openAudit({ path }).append({ call: "later" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 6 });
});

test("entries that are written together are a chain like those written one by one", () => {
  openAudit({ path }).append({ call: "x" }, { call: "y" }, { call: "z" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 8 });
  truncateSync(path, statSync(path).size - lines().at(-1)!.length - 1);
  expect(verifyAudit(path)).toMatchObject({ ok: false, entries: 7, problem: { kind: "cut" } });
});

test.each([
  ["a changed entry", (all: string[]) => all.with(2, all[2]!.replace("allow", "alloW")), 3],
  ["a removed entry", (all: string[]) => all.toSpliced(1, 1), 2],
  ["swapped entries", (all: string[]) => [all[0]!, all[2]!, all[1]!, all[3]!, all[4]!], 2],
  ["a repeated entry", (all: string[]) => [all[0]!, all[0]!, ...all.slice(1)], 2],
  ["a removed beginning", (all: string[]) => all.slice(1), 1],
  ["something else", (all: string[]) => [...all, "not a line"], 6],
])("%s shows, with its line", (_what, change, line) => {
  rewrite(change(lines()));
  expect(verifyAudit(path)).toMatchObject({ ok: false, problem: { line } });
});

test("an entry with a right hash but a changed body shows", () => {
  const all = lines();
  const value = JSON.parse(all[4]!) as { entry: string };
  rewrite(all.with(4, JSON.stringify({ ...value, entry: value.entry.replace("c4", "c5") })));
  expect(verifyAudit(path)).toMatchObject({ ok: false, problem: { line: 5 } });
});

test("a log whose end was cut off is found out by its head, and by a hash noted elsewhere", () => {
  const { head } = verifyAudit(path);
  rewrite(lines().slice(0, 3));
  expect(verifyAudit(path)).toMatchObject({
    ok: false,
    entries: 3,
    problem: { kind: "cut", line: 4, what: "the end was cut off: 5 entries were written, and 3 are here" },
  });
  rmSync(`${path}.head`);
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 3 });
  expect(verifyAudit(path, { head })).toMatchObject({ ok: false, problem: { kind: "cut" } });
});

test("an end that was cut off stays found out when the log goes on", () => {
  rewrite(lines().slice(0, 3));
  openAudit({ path }).append({ call: "later" });
  openAudit({ path }).append({ call: "and later" });
  expect(verifyAudit(path)).toMatchObject({
    ok: false,
    problem: { kind: "cut", line: 4, what: "it says that 2 entries before it were cut off" },
  });
});

test("a log that was emptied, or exchanged for another, is found out", () => {
  writeFileSync(path, "");
  expect(verifyAudit(path)).toMatchObject({ ok: false, entries: 0, problem: { kind: "cut", line: 1 } });
  const other = join(base, "other.jsonl");
  const audit = openAudit({ path: other });
  for (let n = 0; n < 7; n++) audit.append({ n });
  writeFileSync(path, readFileSync(other));
  expect(verifyAudit(path)).toMatchObject({
    ok: false,
    problem: { kind: "cut", what: expect.stringContaining("another log") },
  });
});

test("a torn last line is named, cut off by the next entry, and said there", () => {
  appendFileSync(path, '{"hash":"ab');
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 5, tornBytes: 11 });
  openAudit({ path }).append({ call: "after" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 6 });
  expect(lines()).toHaveLength(6);
  expect(JSON.parse((JSON.parse(lines()[5]!) as { entry: string }).entry)).toMatchObject({
    n: 6,
    torn: 11,
    call: "after",
  });
});

test("a head that lags behind, as after a kill between the two writes, is no loss", () => {
  const before = readFileSync(`${path}.head`);
  openAudit({ path }).append({ call: "later" });
  writeFileSync(`${path}.head`, before);
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 6 });
  openAudit({ path }).append({ call: "and later" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 7 });
});

test("an entry cannot say its own number, and a log of an older version goes on", () => {
  openAudit({ path }).append({ n: 99, at: 99 });
  expect(JSON.parse((JSON.parse(lines()[5]!) as { entry: string }).entry)).toMatchObject({ n: 6 });
  rmSync(`${path}.head`);
  openAudit({ path }).append({ call: "on" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 7 });
});

test("a line longer than what is read at once is found from the end", () => {
  const audit = openAudit({ path });
  audit.append({ text: "x".repeat(300_000) });
  openAudit({ path }).append({ call: "next" });
  appendFileSync(path, "half");
  openAudit({ path }).append({ call: "after" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 8 });
});

test("two processes writing at once keep one chain", async () => {
  const worker = join(base, "worker.mjs");
  const source = readFileSync(new URL("../../src/store/audit.ts", import.meta.url), "utf8");
  expect(source).toContain("withLock");
  const { rolldown } = await import("rolldown");
  const bundle = await rolldown({
    input: new URL("../../src/store/audit.ts", import.meta.url).pathname,
    platform: "node",
    external: [/^node:/],
  });
  await bundle.write({ file: join(base, "audit.mjs"), format: "esm" });
  writeFileSync(
    worker,
    `import { openAudit } from "./audit.mjs"; const audit = openAudit({ path: process.argv[2] }); for (let n = 0; n < 40; n++) audit.append({ n });`,
  );
  const run = () =>
    new Promise<number | null>((resolve) =>
      spawn(process.execPath, [worker, path], { stdio: "inherit" }).on("close", resolve),
    );
  expect(await Promise.all([run(), run()])).toEqual([0, 0]);
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 85 });
});

test("whichever byte of the log is changed, it shows, at its line or before the next", () => {
  const whole = readFileSync(path);
  fc.assert(
    fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const edited = Buffer.from(whole);
      edited[at] = whole[at]! ^ change;
      writeFileSync(path, edited);
      const report = verifyAudit(path);
      const line = whole.subarray(0, at).filter((byte) => byte === 0x0a).length + 1;

      expect([report.ok, report.entries]).toEqual([false, line - 1]);
    }),
    { numRuns: 150 },
  );
});

test("wherever the log is cut off, what is left verifies to there, and the next entry says what was lost", () => {
  const whole = readFileSync(path);
  const size = whole.length;
  fc.assert(
    fc.property(fc.nat(size - 1), (at) => {
      writeFileSync(path, whole);
      rmSync(`${path}.head`);
      const head = `${"5".padStart(15)} ${verifyAudit(path).head}\n`;
      writeFileSync(`${path}.head`, head);
      truncateSync(path, at);
      const left = whole.subarray(0, at);
      const entries = left.filter((byte) => byte === 0x0a).length;
      const torn = at - (left.lastIndexOf(0x0a) + 1);
      const report = verifyAudit(path);
      expect(report).toMatchObject({ ok: false, entries, problem: { kind: "cut", line: entries + 1 } });
      expect(report.tornBytes ?? 0).toBe(torn);
      openAudit({ path }).append({ call: "after" });
      const last = JSON.parse((JSON.parse(lines().at(-1)!) as { entry: string }).entry) as Record<string, unknown>;
      expect(last).toMatchObject({ call: "after", n: entries + 1, missing: 5 - entries });
      expect(last["torn"] ?? 0).toBe(torn);
      expect(verifyAudit(path)).toMatchObject({ ok: false, entries, problem: { kind: "cut" } });
    }),
    { numRuns: 60 },
  );
});

test.each([
  ["long ago", 1],
  ["by a clock that was set back since", Date.now() / 1_000 + 3_600],
])("a lock that a killed process left, %s, is taken over, and none is left behind", (_when, seconds) => {
  writeFileSync(`${path}.lock`, "");
  utimesSync(`${path}.lock`, seconds, seconds);
  openAudit({ path }).append({ call: "later" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 6 });
  expect(existsSync(`${path}.lock`)).toBe(false);
});

test("an entry that cannot be written down is told, and the next one is written", () => {
  const audit = openAudit({ path });
  const round: Record<string, unknown> = {};
  round["round"] = round;
  expect(() => audit.append(round)).toThrow(TypeError);
  expect(existsSync(`${path}.lock`)).toBe(false);
  audit.append({ call: "later" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 6 });
});

test("an entry whose head cannot be written is refused, and is not in the log", () => {
  const headPath = join(base, "made-later", "audit.head");
  const audit = openAudit({ path, headPath });
  expect(() => audit.append({ call: "refused" })).toThrow("ENOENT");
  expect(lines()).toHaveLength(5);
  mkdirSync(join(base, "made-later"));
  audit.append({ call: "later" });
  expect(lines()).toHaveLength(6);
  expect(verifyAudit(path, { headPath })).toMatchObject({ ok: true, entries: 6 });
});

describe("several processes", () => {
  /** Each writes into the same logs in the same order. Looking at a lock, or at the log that one has, takes a while. */
  const source = `
    import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    const [folder, count, each, me] = process.argv.slice(1);
    for (const name of ["statSync", "lstatSync", "fstatSync"]) {
      const look = fs[name];
      fs[name] = (path, ...how) => {
        const seen = look(path, ...how);
        if (name === "fstatSync" || String(path).endsWith(".lock")) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3);
        return seen;
      };
    }
    syncBuiltinESMExports();
    const { openAudit } = await import("./audit.mjs");
    fs.writeFileSync(folder + "/here-" + me, "");
    while (![0, 1, 2].every((n) => fs.existsSync(folder + "/here-" + n)));
    for (let n = 0; n < Number(count); n++) {
      const audit = openAudit({ path: folder + "/" + n });
      for (let entry = 0; entry < Number(each); entry++) audit.append({ me, entry });
    }`;
  const writeTogether = async (folder: string, count: number, each: number) => {
    const modules = await bundleStore();
    const writers = ["0", "1", "2"].map((me) => runBeside(modules, source, [folder, `${count}`, `${each}`, me]));
    expect((await Promise.all(writers)).map(({ stderr }) => stderr)).toEqual(["", "", ""]);
    for (let n = 0; n < count; n++)
      expect(verifyAudit(join(folder, `${n}`))).toMatchObject({ ok: true, entries: 3 * each });
  };

  test("keep one chain when they take over the lock of one that was killed", async () => {
    const folder = mkdtempSync(join(base, "a-"));
    for (let n = 0; n < 30; n++) {
      writeFileSync(join(folder, `${n}`), "");
      linkSync(join(folder, `${n}`), join(folder, `${n}.lock`));
    }
    await sleep(1_100); // so long that it belongs to nobody
    await writeTogether(folder, 30, 1);
    expect(readdirSync(folder).filter((name) => name.includes("lock"))).toEqual([]);
  });

  test("keep one chain in a log that is a link", async () => {
    const folder = mkdtempSync(join(base, "a-"));
    for (let n = 0; n < 30; n++) {
      writeFileSync(join(folder, `real-${n}`), "");
      symlinkSync(`real-${n}`, join(folder, `${n}`));
    }
    await sleep(1_100); // the last entry is older than a lock may be
    await writeTogether(folder, 30, 2);
    expect(lstatSync(join(folder, "0")).isSymbolicLink()).toBe(true);
  });
});

test("only its owner reads the log and its head; the head may lie elsewhere", () => {
  for (const file of [path, `${path}.head`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  const other = join(mkdtempSync(join(base, "a-")), "deep", "audit.jsonl");
  const headPath = join(base, "elsewhere.head");
  const audit = openAudit({ path: other, headPath });
  audit.append({ call: "a" });
  audit.append({ call: "b" });
  expect(existsSync(`${other}.head`)).toBe(false);
  writeFileSync(other, `${readFileSync(other, "utf8").split("\n")[0]}\n`);
  expect(verifyAudit(other)).toMatchObject({ ok: true, entries: 1 });
  expect(verifyAudit(other, { headPath })).toMatchObject({ ok: false, problem: { kind: "cut" } });
});

test("an option that nobody knows is refused with the nearest one", () => {
  expect(() => openAudit({ path, headpath: "x" } as never)).toThrow(/headPath/);
  expect(() => verifyAudit(path, { heads: "x" } as never)).toThrow(/head/);
});
