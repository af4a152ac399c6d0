import { appendFileSync, mkdtempSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createFileStore } from "../../src/store/file-store.ts";
import { openJournal, readJournal } from "../../src/store/journal.ts";
import { KeyReused } from "../../src/store/session-store.ts";
import { sessionPath } from "../../src/store/sessions.ts";
import { bundleStore, runBeside } from "./run.ts";
import { sessionStoreLaws } from "./session-store.ts";

const newFolder = () => mkdtempSync(join(tmpdir(), "callgate-file-store-"));

sessionStoreLaws("a folder", async () => createFileStore({ folder: newFolder(), ownTenant: "main" }));

test("what was kept is there after a restart: sessions, records, mail and what of it was taken", async () => {
  const folder = newFolder();
  const first = createFileStore({ folder });
  const { session } = await first.create(
    { id: "20261116-1", tenant: "t", title: "x", model: "m", cwd: "/", settings: {} },
    "k",
  );
  const { mail } = await first.post(session.id, { kind: "message", body: { content: "one" } });
  await first.post(session.id, { kind: "message", body: { content: "two" } });
  await first.append(session.id, 0, [{ type: "turn.started", mail: mail.id }]);
  await first.update(session.id, { status: "waiting" });
  await first.close();
  appendFileSync(join(folder, "serve", "tenants", "t", `${session.id}.mail.jsonl`), '{"id":3,"kind":"mess');
  const second = createFileStore({ folder });
  expect(await second.get(session.id)).toMatchObject({ status: "waiting", title: "x" });
  expect(await second.read(session.id, -1)).toHaveLength(1);
  expect((await second.mail(session.id)).map(({ body }) => body["content"])).toEqual(["two"]);
  await second.post(session.id, { kind: "message", body: { content: "three" } });
  await second.close();
  const third = createFileStore({ folder });
  expect((await third.mail(session.id)).map(({ body }) => body["content"])).toEqual(["two", "three"]);
  await third.close();
});

const given = (id: string, tenant = "t") => ({ id, tenant, title: id, model: "m", cwd: "/", settings: {} });
const open = (folder: string, more: object = {}) => {
  const store = createFileStore({ folder, ...more });
  onTestFinished(() => store.close());
  return store;
};
const statePath = (folder: string, tenant: string, id: string) =>
  join(folder, "serve", "tenants", tenant, `${id}.json`);

test("a folder has one store, in this process and in all", async () => {
  const folder = newFolder();
  const first = createFileStore({ folder });
  expect(() => createFileStore({ folder })).toThrow(`in use by process ${process.pid}`);
  await first.close();
  open(folder);
});

test("a key and what it was asked with hold after a restart, for sessions and mail", async () => {
  const folder = newFolder();
  const first = createFileStore({ folder });
  await first.create(given("a"), "k", "request");
  await first.post("a", { kind: "message", body: {}, key: "k", request: "request" });
  await first.close();
  const second = open(folder);
  expect(await second.create(given("b"), "k", "request")).toMatchObject({ isNew: false, session: { id: "a" } });
  await expect(second.create(given("b"), "k", "another")).rejects.toThrow(KeyReused);
  expect((await second.post("a", { kind: "message", body: {}, key: "k", request: "request" })).isNew).toBe(false);
  await expect(second.post("a", { kind: "message", body: {}, key: "k", request: "another" })).rejects.toThrow(
    KeyReused,
  );
});

test("a state that a kill left half written, and files of others, hide no session", async () => {
  const folder = newFolder();
  const first = createFileStore({ folder });
  for (const id of ["a", "b"]) await first.create(given(id));
  await first.close();
  writeFileSync(`${statePath(folder, "t", "c")}.new`, '{"session":{"id":"c"');
  writeFileSync(statePath(folder, "t", "d"), "not a state");
  writeFileSync(statePath(folder, "t", "e"), '{"session":5}');
  const second = open(folder);
  expect((await second.list({ tenant: "t", limit: 9 })).sessions.map(({ id }) => id).toSorted()).toEqual(["a", "b"]);
});

test.each(["", "..", ".", "...", "a/b", "a%2Fb", "ünï", " "])(
  "the tenant %j has a folder of its own below the others",
  async (tenant) => {
    const folder = newFolder();
    const first = createFileStore({ folder });
    await first.create(given("a", tenant));
    await first.append("a", 0, [{ type: "x" }]);
    await first.close();
    const names = readdirSync(join(folder, "serve", "tenants"));
    expect(names).toHaveLength(1);
    expect(readdirSync(join(folder, "serve", "tenants", names[0]!)).toSorted()).toEqual(["a.json", "sessions"]);
    const second = open(folder);
    expect(await second.get("a")).toMatchObject({ tenant });
    expect(await second.read("a", -1)).toHaveLength(1);
  },
);

test("a follower gets every record, however far behind it is of a session that goes on", async () => {
  const store = open(newFolder());
  await store.create(given("a"));
  const release = await store.take("a");
  for (let head = 0; head < 5_000; head += 250)
    await store.append(
      "a",
      head,
      Array.from({ length: 250 }, (_, n) => ({ type: "x", value: head + n })),
    );
  const numbers = async (after: number, limit?: number) =>
    (await store.read("a", after, limit)).map((record) => [record.n, record["value"]]);
  const expected = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => [from + n, from + n]);
  for (const after of [-1, 0, 2_498, 3_000, 3_749, 3_999, 4_000, 4_998, 4_999, 6_000]) {
    expect(await numbers(after)).toEqual(expected(after + 1, Math.max(5_000, after + 1)));
    expect(await numbers(after, 7)).toEqual(expected(after + 1, Math.max(Math.min(5_000, after + 8), after + 1)));
  }
  await release?.();
  expect(await numbers(4_990)).toEqual(expected(4_991, 5_000));
});

test("sessions of the folder's own tenant are ordinary journals; what was recorded beside them can be read", async () => {
  const folder = newFolder();
  const recorded = openJournal(sessionPath(folder, "20260101-000000-aaaaaa"), () => 5);
  recorded.append(
    { type: "session.started", session_id: "20260101-000000-aaaaaa", cwd: "/w" },
    { type: "turn.started", turn: 1, prompt: "mend it" },
  );
  recorded.close();
  const store = open(folder, { ownTenant: "main" });
  await store.create(given("20260102-000000-bbbbbb", "main"));
  await store.append("20260102-000000-bbbbbb", 0, [{ type: "x" }]);
  expect(readJournal(sessionPath(folder, "20260102-000000-bbbbbb")).records).toMatchObject([{ type: "x" }]);
  const { sessions } = await store.list({ tenant: "main", limit: 9 });
  expect(sessions.map(({ id, status }) => [id, status]).toSorted()).toEqual([
    ["20260101-000000-aaaaaa", "ended"],
    ["20260102-000000-bbbbbb", "idle"],
  ]);
  expect(await store.get("20260101-000000-aaaaaa")).toMatchObject({ title: "mend it", status: "ended" });
  expect(await store.read("20260101-000000-aaaaaa", 0)).toMatchObject([{ prompt: "mend it" }]);
  expect(await store.counts("main")).toEqual({ idle: 1 });
  // It can be read and nothing else: nobody runs it here.
  expect(await store.take("20260101-000000-aaaaaa")).toBeUndefined();
  await expect(store.append("20260101-000000-aaaaaa", 2, [{ type: "x" }])).rejects.toThrow("there is no session");
  await expect(store.remove("20260101-000000-aaaaaa")).rejects.toThrow("there is no session");
  expect((await store.list({ tenant: "another", limit: 9 })).sessions).toEqual([]);
  expect(await store.forTenant("another").read("20260101-000000-aaaaaa", -1)).toEqual([]);
});

test("times are the clock's, and one that is set back puts nothing out of order", async () => {
  let now = 1_000;
  const store = open(newFolder(), { now: () => now });
  await store.create(given("a"));
  await store.append("a", 0, [{ type: "x" }]);
  now = 400;
  await store.append("a", 1, [{ type: "y" }]);
  await store.create(given("b"));
  const { mail } = await store.post("a", { kind: "message", body: {} });
  expect((await store.read("a", -1)).map(({ n, at }) => [n, at])).toEqual([
    [0, 1_000],
    [1, 400],
  ]);
  expect(mail.at).toBe(400);
  expect(await store.get("a")).toMatchObject({ startedAt: 1_000, updatedAt: 1_000 });
  expect((await store.list({ tenant: "t", limit: 9 })).sessions.map(({ id }) => id)).toEqual(["a", "b"]);
});

test("nothing of a session is readable for others, and all of it goes when it is removed", async () => {
  const folder = newFolder();
  const store = open(folder);
  await store.create(given("a"));
  await store.post("a", { kind: "message", body: { secret: "x" } });
  await store.append("a", 0, [{ type: "x" }]);
  const files = () =>
    readdirSync(join(folder, "serve"), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files().length).toBeGreaterThan(3);
  for (const { parentPath, name } of files()) expect(statSync(join(parentPath, name)).mode & 0o077, name).toBe(0);
  await store.remove("a");
  expect(files().map(({ name }) => name)).toEqual(["sessions.lock"]);
});

test("a process that is killed while it writes leaves what it acknowledged, and the next one goes on", async () => {
  const modules = await bundleStore();
  const folder = newFolder();
  const source = `
    import { createFileStore } from "./file-store.mjs";
    const store = createFileStore({ folder: process.argv[1] });
    await store.create({ id: "s", tenant: "t", title: "x", model: "m", cwd: "/", settings: {} }, "key");
    for (let n = 0; ; n++) {
      await store.append("s", 2 * n, [{ type: "a", n1: n }, { type: "b", text: "y".repeat(3_000) }]);
      const { mail } = await store.post("s", { kind: "message", body: { n } });
      process.stdout.write(mail.id + "\\n");
      if (n === 40) process.kill(process.pid, "SIGKILL");
    }`;
  const { lines, signal } = await runBeside(modules, source.replaceAll("\\\\", "\\"), [folder]);
  expect(signal).toBe("SIGKILL");
  const store = open(folder);
  const records = await store.read("s", -1);
  expect(records.length).toBeGreaterThanOrEqual(2 * lines.length);
  expect((await store.mail("s")).length).toBeGreaterThanOrEqual(lines.length);
  expect((await store.create(given("again"), "key")).isNew).toBe(false);
  await store.append("s", records.length, [{ type: "after" }]);
  expect((await store.read("s", records.length - 1)).map(({ type }) => type)).toEqual(["after"]);
});
