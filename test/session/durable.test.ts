/** A session outlives its process: what was asked and not started runs, what was cut off is told, answers come later. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine, defineTool, type Approver } from "../../src/index.ts";
import { createSession, rebuildHistory, type SessionEvent, type SessionOptions } from "../../src/session/index.ts";
import type { JournalRecord, StoredRecord } from "../../src/store/index.ts";
import { Unavailable } from "../../src/store/session-store.ts";
import { createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";
import fileWrite from "../../src/tools/internal/file/write.ts";
import fileRead from "../../src/tools/internal/file/read.ts";

const later: Approver = { ask: async () => "later" };

interface World {
  readonly records: StoredRecord[];
  readonly ran: string[];
  readonly keys: string[];
  open(steps: readonly ScriptedStep[], more?: Partial<SessionOptions>): ReturnType<typeof createSession>;
}

function createWorld(approver: Approver = later, workspace = mkdtempSync(join(tmpdir(), "callgate-durable-"))): World {
  const records: StoredRecord[] = [];
  const ran: string[] = [];
  const keys: string[] = [];
  const look = defineTool({
    name: "look",
    description: "Looks.",
    input: { type: "object" },
    parallel: true,
    run: (_input, ctx) => {
      ran.push(ctx.callId);
      keys.push(ctx.idempotencyKey);
      return "seen";
    },
  });
  const deploy = defineTool({
    name: "deploy",
    description: "Changes the world.",
    input: { type: "object", properties: { to: { type: "string" } } },
    mutates: true,
    access: () => ({ servers: [{ server: "production", name: "deploy" }] }),
    run: (_input, ctx) => {
      ran.push(ctx.callId);
      return "deployed";
    },
  });
  return {
    records,
    ran,
    keys,
    open: (steps, more = {}) =>
      createSession({
        id: "s1",
        engine: createEngine({
          tools: [look, deploy, fileRead, fileWrite],
          workspace,
          approval: "unless-trusted",
          sandbox: "full-access",
        }),
        model: createScriptedModel(steps),
        approver,
        journal: {
          append: (record: JournalRecord) => {
            const kept: unknown = JSON.parse(JSON.stringify({ ...record, n: records.length, at: records.length }));
            records.push(kept as StoredRecord);
          },
          close() {},
        },
        records: [...records],
        ...more,
      }),
  };
}

async function play(events: AsyncIterable<SessionEvent>): Promise<readonly SessionEvent[]> {
  const seen: SessionEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

const types = (records: readonly { readonly type: string }[]) => records.map(({ type }) => type);
const questionOf = (records: readonly StoredRecord[]) => {
  const asked = records.findLast(({ type }) => type === "approval.asked") as unknown as {
    readonly id: string;
    readonly request: { readonly hash: string };
  };
  return { id: asked.id, hash: asked.request.hash };
};

test("a question that is answered later parks the turn, and another process goes on with the answer", async () => {
  const world = createWorld();
  const first = world.open([{ calls: [{ name: "look" }, { name: "deploy", input: { to: "prod" } }] }]);
  const events = await play(first.send("deploy it"));
  expect(events.at(-1)).toMatchObject({ type: "turn.waiting", turn: 1 });
  expect(types(world.records)).not.toContain("turn.ended");
  expect(world.ran).toHaveLength(1);
  await first.close();

  const { id, hash } = questionOf(world.records);
  const second = world.open([{ text: "done" }]);
  expect(second.openTurn).toEqual({ turn: 1, waiting: [id] });
  expect(await second.answer(id, "another", { answer: "once" })).toBe("changed");
  expect(await second.answer("call_x", hash, { answer: "once" })).toBe("unknown");
  expect(await second.answer(id, hash, { answer: "once" })).toBe("taken");
  expect(await second.answer(id, hash, { answer: "no" })).toBe("unknown");
  const rest = await play(second.resume());
  expect(rest.at(-1)).toMatchObject({ type: "turn.ended", reason: "done", calls: 2, requests: 2 });
  expect(world.ran).toHaveLength(2);
  expect(types(world.records).filter((type) => type === "approval.asked")).toHaveLength(1);
  expect(types(world.records).filter((type) => type === "approval.answered")).toHaveLength(1);
  // The model is sent the same history as if nothing had happened in between.
  const results = second.history.filter((item) => item.type === "result");
  expect(results.map((item) => item.ok)).toEqual([true, true]);
  expect(rebuildHistory(world.records).items).toEqual(second.history);
  await second.close();
});

test("the same object goes on as well", async () => {
  const world = createWorld();
  const session = world.open([{ calls: [{ name: "deploy" }] }, { text: "done" }]);
  await play(session.send("go"));
  const { id, hash } = questionOf(world.records);
  await session.answer(id, hash, { answer: "no", message: "not today" });
  const rest = await play(session.resume());
  expect(rest.at(-1)).toMatchObject({ type: "turn.ended", reason: "done", refused: 1 });
  expect(JSON.stringify(session.history)).toContain("not today");
  expect(world.ran).toEqual([]);
  expect(session.openTurn).toBeUndefined();
  await expect(play(session.resume())).rejects.toThrow(/No turn is open/);
});

test("a changed call asks again instead of taking the old answer", async () => {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-durable-"));
  writeFileSync(join(workspace, "a.txt"), "one");
  const world = createWorld(later, workspace);
  const first = world.open([{ calls: [{ name: fileWrite.name, input: { path: "a.txt", content: "two" } }] }]);
  await play(first.send("go"));
  await first.close();
  const { id, hash } = questionOf(world.records);
  writeFileSync(join(workspace, "a.txt"), "somebody else's");
  const second = world.open([{ text: "done" }]);
  await second.answer(id, hash, { answer: "once" });
  expect((await play(second.resume())).at(-1)).toMatchObject({ type: "turn.waiting" });
  expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("somebody else's");
  expect(questionOf(world.records).hash).not.toBe(hash);
});

test("calls asked and not started run now; one that was cut off is told and never runs again", async () => {
  const world = createWorld({ ask: async () => ({ answer: "once" }) });
  const first = world.open([{ calls: [{ name: "look" }, { name: "deploy" }, { name: "look" }] }, { text: "done" }]);
  await play(first.send("go"));
  // As a kill leaves it, with the second call running.
  const cut = world.records.findIndex(({ type, tool }) => type === "call.started" && tool === "deploy");
  world.records.length = cut + 1;
  world.ran.length = 0;
  world.keys.length = 0;
  const started = world.records.filter(({ type }) => type === "call.started").map(({ id }) => id);
  const second = world.open([{ text: "done" }]);
  expect(second.interrupted).toHaveLength(1);
  const events = await play(second.resume());
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", reason: "done", calls: 3, requests: 2 });
  expect(world.ran).toHaveLength(1);
  expect(started).not.toContain(world.ran[0]);
  expect(world.keys).toEqual([`s1/1/${world.ran[0]}`]);
  const results = second.history.filter((item) => item.type === "result");
  expect(results.map(({ ok }) => ok)).toEqual([true, false, true]);
  expect(JSON.stringify(results[1])).toContain("was started and the session ended");
});

test("wherever the journal stops, going on runs no call twice and ends the turn", async () => {
  const whole = createWorld({ ask: async () => ({ answer: "once" }) });
  const steps: readonly ScriptedStep[] = [
    { reasoning: "Hm.", text: "First.", calls: [{ name: "look" }, { name: "deploy" }] },
    { calls: [{ name: "deploy" }] },
    { text: "done" },
  ];
  await play(whole.open(steps).send("go"));
  for (let cut = 2; cut < whole.records.length; cut++) {
    const world = createWorld({ ask: async () => ({ answer: "once" }) });
    world.records.push(...whole.records.slice(0, cut));
    const before = new Set(world.records.filter(({ type }) => type === "call.started").map(({ id }) => String(id)));
    const session = world.open(steps.slice(answered(world.records)));
    const events = session.openTurn === undefined ? [] : await play(session.resume());
    expect(events.at(-1), `cut at ${cut}`).toMatchObject({ type: "turn.ended", reason: "done" });
    expect(world.ran.filter((id) => before.has(id))).toEqual([]);
    expect(new Set(world.ran).size).toBe(world.ran.length);
    const calls = session.history.filter((item) => item.type === "call").map(({ id }) => id);
    expect(session.history.filter((item) => item.type === "result").map(({ callId }) => callId)).toEqual(calls);
    await session.close();
  }
});

/** How many answers of the model the records hold whole. */
function answered(records: readonly StoredRecord[]): number {
  return records.filter(({ type, finish }) => type === "item.added" && finish !== undefined).length;
}

test("a yes for the session, files read, limits and the plan survive the process", async () => {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-durable-"));
  writeFileSync(join(workspace, "a.txt"), "one\n");
  const asked: string[] = [];
  const approver: Approver = {
    ask: async ({ call }) => {
      asked.push(call.tool);
      return { answer: "session" };
    },
  };
  const world = createWorld(approver, workspace);
  const first = world.open([
    { calls: [{ name: "deploy" }, { name: "internal_file_read", input: { path: "a.txt" } }] },
    { text: "ok" },
  ]);
  await play(first.send("one"));
  await first.close();
  expect(asked).toEqual(["deploy"]);
  writeFileSync(join(workspace, "a.txt"), "changed behind its back\n");
  const second = world.open([
    { calls: [{ name: "deploy" }, { name: fileWrite.name, input: { path: "a.txt", content: "mine" } }] },
    { text: "ok" },
  ]);
  await play(second.send("two"));
  expect(asked.filter((tool) => tool === "deploy")).toHaveLength(1);
  const results = second.history.filter((item) => item.type === "result");
  expect(JSON.stringify(results.at(-1))).toMatch(/changed since|has changed/);
  expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("changed behind its back\n");
});

test("the limits of a turn count what earlier processes spent", async () => {
  const world = createWorld();
  const first = world.open([{ calls: [{ name: "look" }] }, { calls: [{ name: "deploy" }] }]);
  await play(first.send("go"));
  await first.close();
  const { id, hash } = questionOf(world.records);
  const second = world.open([{ calls: [{ name: "look" }] }, { text: "never reached" }], { limits: { maxRequests: 3 } });
  await second.answer(id, hash, { answer: "once" });
  expect((await play(second.resume())).at(-1)).toMatchObject({ type: "turn.ended", reason: "limit", requests: 3 });
});

test("a waiting turn can be brought to an end: its calls end as interrupted", async () => {
  const world = createWorld();
  const first = world.open([{ calls: [{ name: "deploy" }] }]);
  await play(first.send("go"));
  await first.close();
  const second = world.open([]);
  const events = await play(second.resume({ interrupt: true }));
  expect(events.at(-1)).toMatchObject({ type: "turn.ended", reason: "interrupted" });
  expect(world.ran).toEqual([]);
  expect(second.openTurn).toBeUndefined();
});

test("a journal that takes no more stops the session before the next call runs", async () => {
  const world = createWorld({ ask: async () => ({ answer: "once" }) });
  let gathered: JournalRecord[] = [];
  let commits = 0;
  const session = world.open([{ calls: [{ name: "deploy" }] }, { text: "done" }], {
    journal: {
      append: (record: JournalRecord) => void gathered.push(record),
      async commit() {
        // The request was kept; the call's start is refused: somebody else has the session.
        if (++commits > 1) throw new Error("fenced");
        gathered = [];
      },
      close() {},
    },
  });
  await expect(play(session.send("go"))).rejects.toThrow("fenced");
  expect(world.ran).toEqual([]);
  await session.close();
});

test("a store that is away when the folder is to be kept leaves the turn open, and the call is told as cut off", async () => {
  const yes: Approver = { ask: async () => ({ answer: "once" }) };
  const world = createWorld(yes);
  const keepFolder = async () => Promise.reject(new Unavailable(new Error("the database starts")));
  const first = world.open([{ calls: [{ name: "deploy", input: {} }] }], { keepFolder });
  await expect(play(first.send("go"))).rejects.toThrow("cannot be reached");
  expect(world.records.map(({ type }) => type)).not.toContain("turn.ended");
  const second = world.open([{ text: "I see." }]);
  await play(second.resume());
  expect(world.ran).toHaveLength(1);
  expect(world.records.at(-1)).toMatchObject({ type: "turn.ended", reason: "done" });
});
