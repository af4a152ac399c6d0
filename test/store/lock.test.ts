import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openJournal, readJournal } from "../../src/store/index.ts";
import { lockFile } from "../../src/store/lock.ts";

const newPath = () => join(mkdtempSync(join(tmpdir(), "callgate-lock-")), "s.jsonl");

test("a journal that another living process writes is not opened; it is named", async () => {
  const path = newPath();
  const other = spawn("sleep", ["30"]);
  await once(other, "spawn");
  lockFile(path, other.pid!);
  expect(() => openJournal(path)).toThrow(`in use by process ${other.pid}`);
  other.kill("SIGKILL");
  await once(other, "exit");
  const journal = openJournal(path); // its process is gone, and with it the lock
  journal.append({ type: "warning", message: "x" });
  journal.close();
  expect(readJournal(path).records).toHaveLength(1);
});

test("closing gives it back, and leaves no file behind", () => {
  const path = newPath();
  openJournal(path).close();
  expect(existsSync(`${path}.lock`)).toBe(false);
});

test("a number that was used again is not taken for the process that had it", () => {
  const path = newPath();
  writeFileSync(`${path}.lock`, `${process.ppid} 1`);
  openJournal(path).close();
  expect(existsSync(`${path}.lock`)).toBe(false);
});

test.each(["", "rubbish", "0", "999999999"])("a lock that names nobody (%j) holds nobody up", (text) => {
  const path = newPath();
  writeFileSync(`${path}.lock`, text);
  const unlock = lockFile(path);
  expect(readFileSync(`${path}.lock`, "utf8")).toContain(String(process.pid));
  unlock();
});
