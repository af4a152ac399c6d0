import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openCallFolder } from "../../src/store/index.ts";

const newFolder = () => mkdtempSync(join(tmpdir(), "callgate-calls-"));

test("a call that several requests write at once is there as one of them wrote it, and nothing else is left", async () => {
  const folder = newFolder();
  const calls = openCallFolder(folder);
  const questions = Array.from({ length: 30 }, (_, n) => String(n).repeat(5_000 * (1 + (n % 3))));
  await Promise.all(questions.map((question) => calls.set("key", { question })));
  expect(questions).toContain((await calls.get("key"))?.question);
  expect(readdirSync(folder)).toHaveLength(1);
});

test("a folder that could not be made is made once it can be", async () => {
  const folder = join(newFolder(), "calls");
  writeFileSync(folder, "in the way");
  const calls = openCallFolder(folder);
  await expect(calls.set("key", { question: "q" })).rejects.toThrow("EEXIST");
  rmSync(folder);
  await calls.set("key", { question: "q" });
  expect(await calls.get("key")).toEqual({ question: "q" });
});

test("a call that cannot be written leaves nothing behind", async () => {
  const folder = newFolder();
  const calls = openCallFolder(folder);
  const round: Record<string, unknown> = {};
  round["round"] = round;
  await expect(calls.set("key", { question: round as never })).rejects.toThrow(TypeError);
  expect([await calls.get("key"), readdirSync(folder)]).toEqual([undefined, []]);
});

test("one of many claims a call, also across stores of one folder", async () => {
  const folder = newFolder();
  const stores = [openCallFolder(folder), openCallFolder(folder)];
  const claims = await Promise.all(Array.from({ length: 20 }, (_, n) => stores[n % 2]!.claim("key")));
  expect(claims.filter(Boolean)).toHaveLength(1);
});
