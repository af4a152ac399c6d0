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

test("a log cut short verifies but ends with another hash", () => {
  const { head } = verifyAudit(path);
  rewrite(lines().slice(0, 3));
  const cut = verifyAudit(path);
  expect(cut.ok).toBe(true);
  expect(cut.head).not.toBe(head);
});

test("a torn last line is left as evidence and named", () => {
  appendFileSync(path, '{"hash":"ab');
  createAudit({ path }).append({ call: "after" });
  expect(verifyAudit(path)).toMatchObject({ ok: false, entries: 5, problem: { line: 6 } });
  expect(lines()).toHaveLength(7);
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
