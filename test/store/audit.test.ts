import { spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { createAudit, verifyAudit } from "../../src/store/audit.ts";

const base = mkdtempSync(join(tmpdir(), "callgate-audit-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(base, "a-")), "audit.jsonl");
  const audit = createAudit({ path, now: () => 1 });
  for (let n = 0; n < 5; n++) audit.append({ call: `c${n}`, decision: "allow" });
});

const lines = () => readFileSync(path, "utf8").trimEnd().split("\n");
const rewrite = (next: readonly string[]) => writeFileSync(path, `${next.join("\n")}\n`);

test("an untouched log verifies, and goes on in another process's hands", () => {
  createAudit({ path }).append({ call: "later" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 6 });
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
  createAudit({ path }).append({ call: "later" });
  createAudit({ path }).append({ call: "and later" });
  expect(verifyAudit(path)).toMatchObject({
    ok: false,
    problem: { kind: "cut", line: 4, what: "it says that 2 entries before it were cut off" },
  });
});

test("a log that was emptied, or exchanged for another, is found out", () => {
  writeFileSync(path, "");
  expect(verifyAudit(path)).toMatchObject({ ok: false, entries: 0, problem: { kind: "cut", line: 1 } });
  const other = join(base, "other.jsonl");
  const audit = createAudit({ path: other });
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
  createAudit({ path }).append({ call: "after" });
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
  createAudit({ path }).append({ call: "later" });
  writeFileSync(`${path}.head`, before);
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 6 });
  createAudit({ path }).append({ call: "and later" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 7 });
});

test("an entry cannot say its own number, and a log of an older version goes on", () => {
  createAudit({ path }).append({ n: 99, at: 99 });
  expect(JSON.parse((JSON.parse(lines()[5]!) as { entry: string }).entry)).toMatchObject({ n: 6 });
  rmSync(`${path}.head`);
  createAudit({ path }).append({ call: "on" });
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 7 });
});

test("a line longer than what is read at once is found from the end", () => {
  const audit = createAudit({ path });
  audit.append({ text: "x".repeat(300_000) });
  createAudit({ path }).append({ call: "next" });
  appendFileSync(path, "half");
  createAudit({ path }).append({ call: "after" });
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
    `import { createAudit } from "./audit.mjs"; const audit = createAudit({ path: process.argv[2] }); for (let n = 0; n < 40; n++) audit.append({ n });`,
  );
  const run = () =>
    new Promise<number | null>((resolve) =>
      spawn(process.execPath, [worker, path], { stdio: "inherit" }).on("close", resolve),
    );
  expect(await Promise.all([run(), run()])).toEqual([0, 0]);
  expect(verifyAudit(path)).toMatchObject({ ok: true, entries: 85 });
});
