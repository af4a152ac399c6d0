/** One process at a time changes a login, however long the person takes. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createLoginFile } from "../../src/mcp/auth/file.ts";

const staleMs = 400;

test("a lock whose holder lives is waited for, also when it is older than one of a dead process may be", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "callgate-login-"));
  const open = () => createLoginFile(stateDir, "s", "http://127.0.0.1/", undefined, staleMs);
  const log: string[] = [];
  const hold = (name: string, ms: number) =>
    open().locked(async () => {
      log.push(`${name} begins`);
      await sleep(ms);
      log.push(`${name} ends`);
    });
  const first = hold("first", 3 * staleMs);
  await sleep(20);
  await Promise.all([first, hold("second", 100), hold("third", 100)]);
  expect(log.slice(0, 2)).toEqual(["first begins", "first ends"]);
  expect(log.map((line) => line.split(" ")[1])).toEqual(["begins", "ends", "begins", "ends", "begins", "ends"]);
});
