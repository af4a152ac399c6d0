import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openJournal, readJournal } from "../../src/store/index.ts";
import { lockFile } from "../../src/store/lock.ts";
import { bundleStore, runBeside } from "./run.ts";

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

describe("several processes at once", () => {
  /** Each goes through the same locks in the same order, and says which ones it got. */
  const source = `
    import { existsSync, writeFileSync } from "node:fs";
    import { lockFile } from "./lock.mjs";
    const [folder, count, me] = process.argv.slice(1);
    writeFileSync(folder + "/here-" + me, "");
    while (![0, 1, 2, 3].every((n) => existsSync(folder + "/here-" + n)));
    for (let n = 0; n < Number(count); n++) {
      try {
        lockFile(folder + "/s" + n);
        console.log(n);
      } catch (error) {
        if (!/in use by process \\d+$/.test(error.message)) throw error;
      }
    }
    writeFileSync(folder + "/done-" + me, "");
    while (![0, 1, 2, 3].every((n) => existsSync(folder + "/done-" + n)));`;
  const race = async (folder: string, count: number) => {
    const modules = await bundleStore();
    const ran = await Promise.all([0, 1, 2, 3].map((me) => runBeside(modules, source, [folder, `${count}`, `${me}`])));
    expect(ran.map(({ stderr }) => stderr)).toEqual(["", "", "", ""]);
    return ran
      .flatMap(({ lines }) => lines)
      .map(Number)
      .toSorted((a, b) => a - b);
  };
  const count = 150;
  const everyOne = Array.from({ length: count }, (_, n) => n);

  test("exactly one of them gets a lock that nobody had", async () => {
    expect(await race(mkdtempSync(join(tmpdir(), "callgate-lock-")), count)).toEqual(everyOne);
  });

  test("exactly one of them takes over the lock of a process that is gone", async () => {
    const folder = mkdtempSync(join(tmpdir(), "callgate-lock-"));
    for (const n of everyOne) writeFileSync(join(folder, `s${n}.lock`), n % 2 === 0 ? "999999999 1" : "");
    expect(await race(folder, count)).toEqual(everyOne);
    expect(readdirSync(folder).filter((name) => !/^s\d+\.lock$|^(here|done)-\d$/.test(name))).toEqual([]);
  });
});

test("a journal that this process writes is not opened a second time, and closing it once is enough", () => {
  const path = newPath();
  const first = openJournal(path);
  first.append({ type: "a" });
  expect(() => openJournal(path)).toThrow(`in use by process ${process.pid}`);
  first.append({ type: "b" });
  first.close();
  const second = openJournal(path);
  first.close();
  expect(() => openJournal(path)).toThrow("in use");
  expect(() => first.append({ type: "c" })).toThrow("closed");
  second.append({ type: "c" });
  second.close();
  expect(readJournal(path)).toMatchObject({ problems: [], records: [{ type: "a" }, { type: "b" }, { type: "c" }] });
});

test("a lock for which there is no room leaves nothing behind", async () => {
  const folder = mkdtempSync(join(tmpdir(), "callgate-lock-"));
  const source = `
    import { lockFile } from "./lock.mjs";
    try {
      lockFile(process.argv[1] + "/s");
    } catch (error) {
      console.log(error.code);
    }`;
  const { lines } = await runBeside(await bundleStore(), source, [folder], { maxBlocks: 0 });
  expect(lines).toEqual(["EFBIG"]);
  expect(readdirSync(folder)).toEqual([]);
});
