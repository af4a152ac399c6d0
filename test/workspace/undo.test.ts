import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { createUndoLog, undoFile, reverseTurn, type UndoLog } from "../../src/workspace/undo.ts";
import { filesIn, newWorkspace } from "../tools/workspace.ts";

let ws: string;
let out: string;
let log: UndoLog;
beforeEach(() => {
  ws = newWorkspace();
  out = newWorkspace();
  log = createUndoLog(join(out, "state/undo.jsonl"));
  writeFileSync(join(ws, "a"), "old\n", { mode: 0o755 });
  writeFileSync(join(ws, "b"), "b\n");
});

async function turn(): Promise<void> {
  const files = filesIn(ws, { onChange: log.record });
  await files.write("a", "first\n");
  await files.write("a", "second\n");
  await files.write("d/new", "new\n", { parents: true });
  await files.remove("b");
  log.close("turn 1", 1);
}

test("a turn is taken back: changed files restored, new ones removed, removed ones back", async () => {
  await turn();
  const record = log.all().at(-1);
  expect(record).toMatchObject({ turn: "turn 1", files: [{}, {}, {}] });
  await reverseTurn(record!, filesIn(ws));
  expect(readFileSync(join(ws, "a"), "utf8")).toBe("old\n");
  expect(statSync(join(ws, "a")).mode & 0o777).toBe(0o755);
  expect(readFileSync(join(ws, "b"), "utf8")).toBe("b\n");
  expect(existsSync(join(ws, "d/new"))).toBe(false);
});

test("one file that changed since stops all of it, with the reason", async () => {
  await turn();
  writeFileSync(join(ws, "d/new"), "edited by a person\n");
  await expect(reverseTurn(log.all().at(-1)!, filesIn(ws))).rejects.toMatchObject({
    code: "stale",
    message: expect.stringContaining("d/new has changed since"),
  });
  expect(readFileSync(join(ws, "a"), "utf8")).toBe("second\n");
  expect(existsSync(join(ws, "b"))).toBe(false);
});

test("what was taken back is done again, modes included, and can be taken back once more", async () => {
  await turn();
  const before = log.all()[0]!;
  const undone = await reverseTurn(before, filesIn(ws), { now: 7 });
  log.replace(before, undone.inverse);
  expect(log.all()).toMatchObject([{ turn: "turn 1", at: 1, undoneAt: 7 }]);
  writeFileSync(join(ws, "b"), "mine\n");
  await expect(reverseTurn(log.all()[0]!, filesIn(ws))).rejects.toMatchObject({
    message: expect.stringMatching(/^It cannot be done again: .*b has changed since\.$/),
    data: { conflicts: [join(ws, "b")] },
  });
  writeFileSync(join(ws, "b"), "b\n");
  const redone = await reverseTurn(log.all()[0]!, filesIn(ws));
  expect(redone.inverse).toEqual(before);
  expect([readFileSync(join(ws, "a"), "utf8"), readFileSync(join(ws, "d/new"), "utf8")]).toEqual(["second\n", "new\n"]);
  expect(existsSync(join(ws, "b"))).toBe(false);
  expect(statSync(join(ws, "a")).mode & 0o777).toBe(0o755);
});

test("nothing is restored through a link or a hard link put there since", async () => {
  await turn();
  writeFileSync(join(out, "target.txt"), "second\n");
  unlinkSync(join(ws, "a"));
  symlinkSync(join(out, "target.txt"), join(ws, "a"));
  await expect(reverseTurn(log.all().at(-1)!, filesIn(ws))).rejects.toMatchObject({ code: "stale" });
  unlinkSync(join(ws, "a"));
  linkSync(join(out, "target.txt"), join(ws, "a"));
  await reverseTurn(log.all().at(-1)!, filesIn(ws));
  expect(readFileSync(join(out, "target.txt"), "utf8")).toBe("second\n");
  expect(readFileSync(join(ws, "a"), "utf8")).toBe("old\n");
});

test("turns are kept over processes, the last first, and a turn without changes leaves no trace", async () => {
  await turn();
  log.close("turn 2", 2);
  const again = createUndoLog(join(out, "state/undo.jsonl"));
  expect(again.all().at(-1)?.turn).toBe("turn 1");
  const files = filesIn(ws, { onChange: again.record });
  await files.write("c", "c");
  again.close("turn 3", 3);
  expect(again.all().at(-1)?.turn).toBe("turn 3");
});

test("only so many turns are kept, in a file that is the user's alone", async () => {
  mkdirSync(join(out, "many"));
  const many = createUndoLog(join(out, "many/undo.jsonl"), { records: 50, bytes: 100_000 });
  const write = (turn: number, before = Buffer.from("x")) => {
    many.record({ path: join(ws, "a"), before, after: Buffer.from("y"), mode: 0o644 });
    return many.close(`turn ${turn}`, turn);
  };
  const said = Array.from({ length: 60 }, (_, turn) => write(turn));
  expect(said.map((words) => words !== undefined)).toEqual(said.map((_, turn) => turn >= 50));
  expect(readFileSync(join(out, "many/undo.jsonl"), "utf8").trim().split("\n")).toHaveLength(50);
  expect(many.all().at(-1)?.turn).toBe("turn 59");
  expect(write(60, Buffer.alloc(80_000))).toContain("cannot be taken back");
  expect(write(61, Buffer.alloc(65_000))).toContain("the oldest change");
  expect(write(62, Buffer.alloc(65_000))).toContain("oldest changes");
  expect(many.all().map(({ turn }) => turn)).toEqual(["turn 62"]);
  expect(statSync(join(out, "many/undo.jsonl")).mode & 0o777).toBe(0o600);
});

test("a workspace has a file of its own under the state folder", () => {
  const env = { CALLGATE_HOME: "/home/x/.cg" };
  expect(undoFile("/a", env)).toMatch(/^\/home\/x\/\.cg\/undo\/[0-9a-f]{32}\.jsonl$/);
  expect(undoFile("/a", env)).not.toBe(undoFile("/b", env));
});

test("a line that a killed process has only begun costs nothing of what is written after it, or was before", async () => {
  const file = join(out, "state/undo.jsonl");
  await turn();
  appendFileSync(file, '{"turn":"turn 2","at":2,"files":[{"path":"/x"}');
  expect(log.all().map((record) => record.turn)).toEqual(["turn 1"]);
  await filesIn(ws, { onChange: log.record }).write("a", "third\n");
  log.close("turn 3", 3);
  expect(log.all().map((record) => record.turn)).toEqual(["turn 1", "turn 3"]);
  // Earlier versions appended to such a line.
  appendFileSync(file, '{"turn":"turn 4","files":[{"turn":"turn 5","at":5,"files":[]}\n');
  expect(log.all().map((record) => record.turn)).toEqual(["turn 1", "turn 3"]);
});

test("a record that was dropped while it was taken back is kept as its inverse, and no other one is lost", () => {
  const record = { turn: "gone", at: 1, files: [] };
  log.add({ turn: "other", at: 2, files: [] });
  log.replace(record, { ...record, undoneAt: 3 });
  expect(log.all().map(({ turn: name }) => name)).toEqual(["other", "gone"]);
});
