/** The sessions that lie on disk: which there are, in which order, and which one a person means. */
import { appendFileSync, mkdirSync, mkdtempSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openJournal, type JournalRecord } from "../../src/store/journal.ts";
import { createSessionId, findSession, listSessions, findRecorded, sessionPath } from "../../src/store/sessions.ts";

const newState = () => mkdtempSync(join(tmpdir(), "callgate-sessions-"));

function add(state: string, id: string, changedAt: number, ...records: readonly JournalRecord[]): string {
  const path = sessionPath(state, id);
  const journal = openJournal(path, () => 1_000);
  journal.append({ type: "session.started", session_id: id, cwd: "/w" }, ...records);
  journal.close();
  utimesSync(path, changedAt, changedAt);
  return path;
}
const ids = (found: ReturnType<typeof findSession>) => (Array.isArray(found) ? found.map(({ id }) => id) : found);

test("ids sort as their times do, and lie in the folder of their month", () => {
  const time = fc.date({ min: new Date("2000-01-01"), max: new Date("2099-01-01"), noInvalidDate: true });
  fc.assert(
    fc.property(time, time, fc.double({ min: 0, max: 0.999, noNaN: true }), (a, b, chance) => {
      const [first, second] = [createSessionId(a, () => chance), createSessionId(b, () => 1 - chance - 0.001)];
      expect(first).toMatch(/^\d{8}-\d{6}-[0-9a-f]{6}$/);
      expect(first.slice(0, 15).replaceAll("-", "")).toBe(a.toISOString().slice(0, 19).replaceAll(/[-:T]/g, ""));
      if (Math.floor(a.getTime() / 1000) < Math.floor(b.getTime() / 1000)) expect(first < second).toBe(true);
    }),
  );
  expect(sessionPath("/s", "20261115-215501-3f9a1c")).toBe("/s/sessions/202611/20261115-215501-3f9a1c.jsonl");
});

test("the one that changed last comes first, whatever month it began in; of two at once the later id", () => {
  const state = newState();
  expect(listSessions(state)).toEqual([]);
  add(state, "20260101-000000-aaaaaa", 300);
  add(state, "20260201-000000-bbbbbb", 100);
  add(state, "20260201-000001-cccccc", 200);
  add(state, "20260201-000002-dddddd", 200);
  expect(listSessions(state).map(({ id }) => id.slice(-6))).toEqual(["aaaaaa", "dddddd", "cccccc", "bbbbbb"]);
  expect(listSessions(state)[0]).toMatchObject({
    cwd: "/w",
    startedAt: new Date(1_000).toISOString(),
    updatedAt: new Date(300_000).toISOString(),
  });
});

test.each([
  ["<session>\nwrite a test\n</session>", "write a test"],
  ["\n  mend it \nsoon", "mend it"],
  ["a <b> c", "a <b> c"],
  ["<only>\n<tags>", "<only>"],
])("a session is named by its first line that is more than a tag: %j", (prompt, title) => {
  const state = newState();
  add(state, "20260101-000000-aaaaaa", 300, { type: "turn.started", turn: 1, prompt });
  expect(listSessions(state)[0]?.title).toBe(title);
});

test("a session is found by its id, by a beginning that only one has, and as the last", () => {
  const state = newState();
  expect(findSession(state, "last")).toEqual([]);
  add(state, "20260101-000000-aaaaaa", 1);
  add(state, "20260101-000000-aaaaaa2", 2);
  add(state, "20260201-000000-bbbbbb", 3);
  expect(findSession(state, "last")).toMatchObject({ id: "20260201-000000-bbbbbb" });
  expect(findSession(state, "202602")).toMatchObject({ id: "20260201-000000-bbbbbb" });
  expect(findSession(state, "20260101-000000-aaaaaa")).toMatchObject({ id: "20260101-000000-aaaaaa" });
  expect(ids(findSession(state, "202601"))).toEqual(["20260101-000000-aaaaaa2", "20260101-000000-aaaaaa"]);
  expect(findSession(state, "2027")).toEqual([]);
});

test("the title is the first line of what was asked, and no longer than a list can show", () => {
  const state = newState();
  add(state, "20260101-000000-aaaaaa", 1, { type: "turn.started", prompt: "\n  mend it\nplease" });
  add(state, "20260101-000000-bbbbbb", 2, { type: "turn.started", prompt: "x".repeat(81) });
  add(state, "20260101-000000-cccccc", 3, { type: "turn.started", prompt: "y".repeat(80) });
  add(state, "20260101-000000-dddddd", 4);
  const titles = listSessions(state).map(({ title }) => title);
  expect(titles).toEqual(["", "y".repeat(80), `${"x".repeat(79)}…`, "mend it"]);
});

test("of another agent's conversation the title is what its user said last before the first request", () => {
  const state = newState();
  const path = sessionPath(state, "20260101-000000-aaaaaa");
  const said = (role: string, ...texts: readonly string[]) => ({
    type: "item",
    item: { type: "message", role, content: texts.map((text) => ({ type: "text", text })) },
  });
  const journal = openJournal(path);
  journal.append(
    { type: "session.started", session_id: "20260101-000000-aaaaaa", cwd: "/w", client: "claude-code" },
    said("user", "a note of the agent's"),
    said("user", "another note", "what was asked"),
    said("assistant", "an answer"),
    { type: "request.sent" },
    said("user", "later words"),
  );
  journal.close();
  expect(listSessions(state)).toMatchObject([{ title: "what was asked", client: "claude-code" }]);
});

test("a torn line, a file that is no session and one that lies beside the months hide nothing else", () => {
  const state = newState();
  appendFileSync(add(state, "20260101-000000-aaaaaa", 1), '{"type":"turn.sta');
  const folder = dirname(sessionPath(state, "20260101-000000-bbbbbb"));
  writeFileSync(join(folder, "20260101-000000-bbbbbb.jsonl"), "no journal\n");
  writeFileSync(join(folder, "notes.txt"), '{"type":"session.started"}');
  writeFileSync(join(state, "sessions", "stray"), "");
  mkdirSync(join(state, "sessions", "202603"));
  expect(listSessions(state).map(({ id }) => id)).toEqual(["20260101-000000-aaaaaa"]);
});

test("a recorded session is shown to a tenant by its whole id, and never by a path", () => {
  const state = newState();
  add(state, "20260101-000000-aaaaaa", 1, { type: "turn.started", prompt: "mend it" });
  expect(findRecorded(state, "t", "20260101-000000-aaaaaa")).toMatchObject({
    tenant: "t",
    title: "mend it",
    status: "ended",
    settings: { recorded: "session" },
  });
  expect(findRecorded(state, undefined, "20260101-000000-aaaaaa")).toBeUndefined();
  for (const id of ["20260101", "../202601/20260101-000000-aaaaaa", "", "20260101-000000-aaaaaa/."])
    expect(findRecorded(state, "t", id)).toBeUndefined();
});
