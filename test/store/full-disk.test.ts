/**
 * A disk that is full: what was acknowledged is there, what was refused is not, and the file goes on once there is
 * room again. The limit on the size of a file cuts a write in the middle, as a full disk does.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { openAudit, verifyAudit } from "../../src/store/audit.ts";
import { createFileStore } from "../../src/store/file-store.ts";
import { openJournal, readJournal } from "../../src/store/journal.ts";
import { bundleStore, runBeside } from "./run.ts";

let modules: string;
beforeAll(async () => {
  modules = await bundleStore();
});
const newFolder = () => mkdtempSync(join(tmpdir(), "callgate-full-"));

/** Tries the same again and again in a process whose files may hold so much, and says which tries went well. */
const tries = (begin: string, attempt: string) => `${begin}
for (let n = 0; n < 40; n++) {
  try {
    ${attempt}
    console.log(n);
  } catch (error) {
    console.log(n, error.code);
  }
}`;

/** What such a process said: the tries that went well, and how the others failed. */
function outcome(lines: readonly string[]) {
  const pairs = lines.map((line) => line.split(" "));
  return {
    done: pairs.filter(([, code]) => code === undefined).map(([n]) => Number(n)),
    failed: pairs.flatMap(([, code]) => code ?? []),
  };
}

describe("a journal", () => {
  const source = tries(
    `import { openJournal } from "./journal.mjs"; const journal = openJournal(process.argv[1], () => 7);`,
    `journal.append({ type: "x", value: n, text: "x".repeat(n % 3 === 0 ? 100 : 400) });`,
  );

  test.each([2, 3, 5, 8])("of %i blocks keeps what it took, and no part of what it refused", async (maxBlocks) => {
    const path = join(newFolder(), "s.jsonl");
    const { lines, stderr } = await runBeside(modules, source, [path], { maxBlocks });
    expect(stderr).toBe("");
    const { done, failed } = outcome(lines);
    expect(failed.length).toBeGreaterThan(0);
    expect(new Set(failed)).toEqual(new Set(["EFBIG"]));
    expect(readJournal(path)).toMatchObject({ problems: [], records: done.map((value, n) => ({ value, n })) });
    expect(readJournal(path).goodBytes).toBe(statSync(path).size);
  });

  test("still takes what fits after something larger was refused", async () => {
    const path = join(newFolder(), "s.jsonl");
    const { lines } = await runBeside(modules, source, [path], { maxBlocks: 2 });
    const { done } = outcome(lines);
    expect(done.at(-1)! - done[0]!).toBeGreaterThan(done.length - 1);
  });

  test("goes on in a process that has room, as if nothing had happened", async () => {
    const path = join(newFolder(), "s.jsonl");
    const { done } = outcome((await runBeside(modules, source, [path], { maxBlocks: 3 })).lines);
    const journal = openJournal(path, () => 8);
    expect(journal.length).toBe(done.length);
    journal.append({ type: "after" });
    journal.close();
    expect(readJournal(path)).toMatchObject({ problems: [] });
    expect(readJournal(path).records.at(-1)).toMatchObject({ type: "after", n: done.length, at: 8 });
  });

  test("takes several records or none of them, also where one is longer than what is written at once", async () => {
    const path = join(newFolder(), "s.jsonl");
    const several = tries(
      `import { openJournal } from "./journal.mjs"; const journal = openJournal(process.argv[1]);`,
      `journal.append({ type: "first", value: n }, { type: "long", text: "ü".repeat(100_000), list: [n, "y".repeat(90_000)] }, { type: "last", value: n });`,
    );
    const { lines } = await runBeside(modules, several, [path], { maxBlocks: 1_500 });
    const { done, failed } = outcome(lines);
    expect([done, failed.length]).toEqual([[0, 1], 38]);
    const { records, problems } = readJournal(path);
    expect(problems).toEqual([]);
    expect(records.map(({ type }) => type)).toEqual(["first", "long", "last", "first", "long", "last"]);
  });
});

describe("an audit log", () => {
  const source = tries(
    `import { openAudit } from "./audit.mjs"; const audit = openAudit({ path: process.argv[1], now: () => 7 });`,
    `audit.append({ call: n, text: "x".repeat(n % 3 === 0 ? 30 : 300) });`,
  );
  const callsOf = (path: string) =>
    readFileSync(path, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse((JSON.parse(line) as { entry: string }).entry) as { call: unknown }).call);

  test.each([2, 3, 4, 7])("of %i blocks is whole, and has what it took", async (maxBlocks) => {
    const path = join(newFolder(), "audit.jsonl");
    const { lines, stderr } = await runBeside(modules, source, [path], { maxBlocks });
    expect(stderr).toBe("");
    const { done, failed } = outcome(lines);
    expect(failed.length).toBeGreaterThan(0);
    expect(verifyAudit(path)).toMatchObject({ ok: true, entries: done.length });
    expect(verifyAudit(path).tornBytes).toBeUndefined();
    expect(callsOf(path)).toEqual(done);
  });

  test("goes on once there is room, and accuses nobody", async () => {
    const path = join(newFolder(), "audit.jsonl");
    const { done } = outcome((await runBeside(modules, source, [path], { maxBlocks: 3 })).lines);
    openAudit({ path }).append({ call: "after" });
    expect(verifyAudit(path)).toMatchObject({ ok: true, entries: done.length + 1 });
    expect(callsOf(path)).toEqual([...done, "after"]);
  });
});

describe("a store in a folder", () => {
  const begin = `
    import { createFileStore } from "./file-store.mjs";
    const store = createFileStore({ folder: process.argv[1] });
    const session = { tenant: "t", title: "x", model: "m", cwd: "/", settings: {} };
    let head = 0;
    const large = (n) => "x".repeat(n % 3 === 0 ? 20 : 350);`;
  const reopen = async (folder: string, work: (store: ReturnType<typeof createFileStore>) => Promise<void>) => {
    const store = createFileStore({ folder });
    await work(store);
    await store.close();
  };

  test("keeps the mail that it took, also what came after mail that it had to refuse", async () => {
    const folder = newFolder();
    const source = tries(
      `${begin} await store.create({ ...session, id: "s" });`,
      `await store.post("s", { kind: "message", body: { n, text: large(n) } });`,
    );
    const { done, failed } = outcome((await runBeside(modules, source, [folder], { maxBlocks: 3 })).lines);
    expect(failed.length).toBeGreaterThan(0);
    expect(done.length).toBeGreaterThan(2);
    await reopen(folder, async (store) => {
      const mail = await store.mail("s");
      expect(mail.map(({ body }) => body["n"])).toEqual(done);
      expect(mail.map(({ id }) => id)).toEqual(done.map((_, index) => index + 1));
    });
  });

  test("appends all of the records or none, and shows nobody a record that it has not", async () => {
    const folder = newFolder();
    const source = `${tries(
      `${begin} await store.create({ ...session, id: "s" });`,
      `await store.append("s", head, [{ type: "a", n1: n }, { type: "b", text: large(n) }, { type: "c", mail: n }]); head += 3;`,
    )}
    const shown = await store.read("s", -1);
    console.log("shown", shown.length);`;
    const { lines } = await runBeside(modules, source, [folder], { maxBlocks: 6 });
    const { done } = outcome(lines.slice(0, -1));
    expect(done.length).toBeGreaterThan(1);
    expect(lines.at(-1)).toBe(`shown ${3 * done.length}`);
    await reopen(folder, async (store) => {
      const records = await store.read("s", -1);
      expect(records.map(({ type }) => type)).toEqual(done.flatMap(() => ["a", "b", "c"]));
      expect(records.flatMap(({ n1 }) => n1 ?? [])).toEqual(done);
    });
  });

  test("appends nothing if the session's state cannot be written with it", async () => {
    const folder = newFolder();
    const store = createFileStore({ folder });
    const given = { id: "s", tenant: "t", title: "x", model: "m", cwd: "/", settings: {} };
    await store.create(given);
    await store.update("s", { takings: 2 });
    const blocked = join(folder, "serve", "tenants", "t", "s.json.new");
    mkdirSync(blocked);
    const progress = { type: "item", item: { type: "message" } };
    await expect(store.append("s", 0, [progress])).rejects.toThrow("EISDIR");
    expect(await store.read("s", -1)).toEqual([]);
    rmSync(blocked, { recursive: true });
    await store.append("s", 0, [progress]);
    expect([(await store.read("s", -1)).length, (await store.get("s"))?.takings]).toEqual([1, 0]);
    await store.close();
  });

  test("has no session that it could not write down, and a change that failed has not happened", async () => {
    const folder = newFolder();
    const source = `${begin}
      const fits = await store.create({ ...session, id: "fits" }, "k1");
      const long = { ...session, id: "long", title: "x".repeat(5_000) };
      console.log(await store.create(long, "k2").then(() => "made", (error) => error.code));
      console.log((await store.get("long")) === undefined);
      console.log((await store.create({ ...session, id: "short" }, "k2")).isNew);
      console.log(await store.update("fits", { title: "y".repeat(5_000) }).then(() => "changed", (error) => error.code));
      console.log((await store.get("fits")).title);`;
    const { lines, stderr } = await runBeside(modules, source, [folder], { maxBlocks: 4 });
    expect(stderr).toBe("");
    expect(lines).toEqual(["EFBIG", "true", "true", "EFBIG", "x"]);
    await reopen(folder, async (store) => {
      const { sessions } = await store.list({ tenant: "t", limit: 9 });
      expect(sessions.map(({ id, title }) => [id, title]).toSorted()).toEqual([
        ["fits", "x"],
        ["short", "x"],
      ]);
    });
  });
});

describe("a journal that cannot be opened", () => {
  test("leaves no lock behind, for this process or another", () => {
    const path = join(newFolder(), "s.jsonl");
    mkdirSync(path);
    expect(() => openJournal(path)).toThrow("EISDIR");
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  test("is refused where its folder cannot be made", () => {
    const file = join(newFolder(), "file");
    writeFileSync(file, "");
    expect(() => openJournal(join(file, "s.jsonl"))).toThrow(/ENOTDIR|EEXIST/);
  });
});
