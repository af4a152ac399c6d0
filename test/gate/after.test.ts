/** Hooks where the gate calls them: what the model is told, what is recorded, and what happens to a rewritten call. */
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { GateRecord } from "../../src/gate/gate.ts";
import type { Hook, HookCall, HookResult } from "../../src/gate/hooks.ts";
import type { Checked, Ended } from "../../src/spec/call.ts";
import type { CallEvent } from "../../src/spec/stages.ts";
import { answering, codeOf, createCalls, permit } from "./calls.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());
const { checked, run, gate } = createCalls(workspace);
const { signal } = new AbortController();

const ended: Ended = {
  id: "call_9",
  name: "shell",
  tool: "shell",
  kind: "function",
  arguments: "{}",
  askedAt: 0,
  ok: true,
  content: [{ type: "text", text: "the key is 42" }],
  structured: { key: 42 },
  exitCode: 0,
  cut: { bytes: 9_000, file: "/outputs/call_9.txt" },
  notes: ["cut"],
  endedAt: 1,
  durationMs: 1,
};

/** A gate with these hooks, and what it told and wrote down. */
function hooked(...hooks: readonly Hook[]) {
  const events: CallEvent[] = [];
  const records: GateRecord[] = [];
  const made = gate({ hooks, emit: (event) => void events.push(event), record: (entry) => void records.push(entry) });
  return { events, records, gate: made };
}

describe("a result that a hook withholds", () => {
  const blocking: Hook = { after: () => ({ block: "a key is in it" }) };

  test("reaches the model as an error that says so, without words, structure, exit code or file", async () => {
    const told = await hooked(blocking).gate.after(ended, signal);
    expect(told).toMatchObject({ ok: false, code: "withheld", id: "call_9" });
    expect(told.content).toEqual([
      {
        type: "text",
        text: "Error: The call ran, and its result is withheld: a key is in it\nTell the user; running it again will not help.",
      },
    ]);
    expect(told).not.toHaveProperty("structured");
    expect(told).not.toHaveProperty("exitCode");
    expect(told.cut).toEqual({ bytes: 9_000 });
    expect(JSON.stringify(told)).not.toMatch(/42|call_9\.txt/);
  });

  test("is an event for the operator and an entry of the record", async () => {
    const { gate: one, events, records } = hooked(blocking);
    await one.after(ended, signal);
    expect(events).toEqual([
      { type: "call.log", id: "call_9", level: "error", message: "the result was withheld: a key is in it" },
    ]);
    expect(records).toEqual([
      {
        call: "call_9",
        tool: "shell",
        ruling: { decision: "deny", by: "hook", reason: "the result was withheld: a key is in it" },
        outcome: "withheld",
      },
    ]);
  });

  test("keeps the notes it had, and has one more; a result without notes gets its first", async () => {
    const { gate: one } = hooked(blocking);
    expect((await one.after(ended, signal)).notes).toEqual(["cut", "result withheld: a key is in it"]);
    const { notes: _notes, cut: _cut, ...plain } = ended;
    const told = await one.after(plain, signal);
    expect(told.notes).toEqual(["result withheld: a key is in it"]);
    expect(told).not.toHaveProperty("cut");
  });

  test("is withheld whichever way the hook fails", async () => {
    const after: readonly NonNullable<Hook["after"]>[] = [
      () => {
        throw new Error("broken");
      },
      () => Promise.reject(new Error("broken")),
      () => ({ contents: "x" }) as never,
      () => ({ content: [{ type: "no such part" }] }) as never,
      () => ({ structured: 1 }) as never,
      () => "fine" as never,
      () => null as never,
      () => 0 as never,
    ];
    for (const [index, hook] of after.entries()) {
      const told = await hooked({ after: hook }).gate.after(ended, signal);
      expect([index, told.code]).toEqual([index, "withheld"]);
    }
  });

  test("nobody hears of it before it is written down", async () => {
    const one = gate({ hooks: [blocking], record: () => Promise.reject(new Error("disk full")) });
    await expect(one.after(ended, signal)).rejects.toThrow("disk full");
  });
});

describe("a result that a hook changes", () => {
  test("loses its structure and the file with the whole output, and keeps the rest", async () => {
    const { gate: one, events, records } = hooked({ after: () => ({ content: "[cut]" }) });
    const told = await one.after(ended, signal);
    const { structured: _structured, ...rest } = ended;
    expect(told).toEqual({ ...rest, content: [{ type: "text", text: "[cut]" }], cut: { bytes: 9_000 } });
    expect([events, records]).toEqual([[], []]);
  });

  test("has the structure that the hook gave it", async () => {
    const { gate: one } = hooked({ after: () => ({ content: "[cut]", structured: { key: "[cut]" } }) });
    expect((await one.after(ended, signal)).structured).toEqual({ key: "[cut]" });
  });

  test("is the same value where no hook has anything to say: nothing, an empty answer, another tool", async () => {
    for (const hook of [
      { after: () => undefined },
      { after: () => ({}) as never },
      { tool: "read_*", after: () => ({ content: "x" }) },
      { before: () => undefined },
      { watches: true, after: () => ({ content: "x" }) },
    ] satisfies Hook[])
      expect(await hooked(hook).gate.after(ended, signal)).toBe(ended);
    expect(await gate().after(ended, signal)).toBe(ended);
  });

  test("is none of a hook's business if no tool was found", async () => {
    const { tool: _tool, ...unbound } = ended;
    expect(await hooked({ after: () => ({ content: "x" }) }).gate.after(unbound, signal)).toBe(unbound);
  });

  test("a hook sees the call as it was: its input, its words, its structure", async () => {
    const seen: HookResult[] = [];
    const { gate: one } = hooked({ after: (result) => void seen.push(result) });
    await one.after({ ...ended, input: { command: "ls" } }, signal);
    const { structured: _structured, ...bare } = ended;
    await one.after(bare, signal);
    const { id, tool, ok, content, structured } = ended;
    expect(seen).toEqual([
      { id, tool, ok, content, structured, input: { command: "ls" } },
      { id, tool, ok, content, input: null },
    ]);
  });
});

test("a hook that only watches may fail: that is a warning, and the call goes on", async () => {
  const broken = () => Promise.reject(new Error("down"));
  const watcher: Hook = { name: "log", watches: true, before: broken, after: broken };
  const { gate: one, events } = hooked(watcher);
  const call = checked(run("ls"));
  await permit(one.pass(call, signal));
  expect(await one.after(ended, signal)).toBe(ended);
  const message = "the hook log failed: down (it only watches)";
  expect(events).toEqual([
    { type: "call.log", id: call.id, level: "warn", message },
    { type: "call.log", id: "call_9", level: "warn", message },
  ]);
});

describe("a call that a hook blocks", () => {
  test("is refused by the hook, recorded, and no person is asked about it", async () => {
    const { asked, approver } = answering({ answer: "once" });
    const records: GateRecord[] = [];
    const one = gate({
      approver,
      settings: { approval: "unless-trusted" },
      hooks: [{ before: () => ({ block: "not on Fridays" }) }],
      record: (entry) => void records.push(entry),
    });
    expect(await codeOf(one.pass(checked(run("npm test")), signal))).toBe("denied");
    expect(asked).toEqual([]);
    expect(records).toMatchObject([
      { outcome: "refused", ruling: { by: "hook", decision: "deny", reason: "not on Fridays" } },
    ]);
    expect(records[0]).not.toHaveProperty("grant");
  });

  test("is blocked under every mode and whatever a rule allows", async () => {
    for (const approval of ["never", "on-request", "on-failure", "unless-trusted", "auto"] as const) {
      const one = gate({
        settings: { approval },
        rules: [{ tool: "shell", decision: "allow" }],
        hooks: [{ before: () => ({ block: "no" }) }],
      });
      expect(await codeOf(one.pass(checked(run("ls")), signal)), approval).toBe("denied");
    }
  });

  test("hooks are asked in their order, and the first that has something to say is the last that is asked", async () => {
    const asked: string[] = [];
    const hook = (name: string, answer?: ReturnType<NonNullable<Hook["before"]>>): Hook => ({
      before: () => (asked.push(name), answer),
    });
    const blocked = hooked(hook("one"), hook("two", { block: "two says no" }), hook("three", { input: {} }));
    await expect(blocked.gate.pass(checked(run("ls")), signal)).rejects.toThrow("two says no");
    expect(asked.splice(0)).toEqual(["one", "two"]);
    const rewritten = hooked(hook("one"), hook("two", { input: { x: 1 } }), hook("three", { block: "no" }));
    expect(await rewritten.gate.pass(checked(run("ls")), signal)).toHaveProperty("rewritten");
    expect(asked).toEqual(["one", "two"]);
  });
});

describe("a call that a hook rewrites", () => {
  const rewrittenBy = async (input: Checked["input"], more: Partial<Checked> = {}) => {
    const call = { ...checked(run("ls")), ...more };
    return { call, passed: await hooked({ before: () => ({ input }) }).gate.pass(call, signal) };
  };

  test("goes back to the start with its id, its name and its time, and nothing that was found out about it", async () => {
    const { call, passed } = await rewrittenBy({ command: "ls -la" });
    const { id, name, kind, askedAt } = call;
    expect(passed).toEqual({ rewritten: { id, name, kind, askedAt, arguments: '{"command":"ls -la"}' } });
  });

  test("keeps its namespace, and that nothing marked it as a call", async () => {
    const { passed } = await rewrittenBy({ x: 1 }, { namespace: "mail", markerless: true });
    expect(passed).toMatchObject({ rewritten: { namespace: "mail", markerless: true } });
  });

  test("keeps the call that made it, which waits for it", async () => {
    const { passed } = await rewrittenBy({ x: 1 }, { parent: "call_7", untyped: true });
    expect(passed).toMatchObject({ rewritten: { parent: "call_7" } });
    expect(passed).not.toHaveProperty("rewritten.untyped");
  });

  test("a custom tool takes text as it is, every other one takes JSON", async () => {
    expect((await rewrittenBy("plain", { kind: "custom" })).passed).toMatchObject({
      rewritten: { arguments: "plain", kind: "custom" },
    });
    expect((await rewrittenBy("plain")).passed).toMatchObject({ rewritten: { arguments: '"plain"' } });
    expect((await rewrittenBy({ a: 1 }, { kind: "custom" })).passed).toMatchObject({
      rewritten: { arguments: '{"a":1}' },
    });
  });

  test("is not permitted, and not recorded: it is judged when it comes again", async () => {
    const { gate: one, records } = hooked({ before: () => ({ input: { x: 1 } }) });
    expect(await one.pass(checked(run("ls")), signal)).not.toHaveProperty("grant");
    expect(records).toEqual([]);
  });

  test("to what it was already, in whatever order of keys, is not rewritten: it goes on", () =>
    fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string({ maxLength: 3 }), fc.integer(), { maxKeys: 4 }), async (input) => {
        const turned = Object.fromEntries(Object.entries(input).toReversed());
        const { gate: one } = hooked({ before: () => ({ input: turned }) });
        const permitted = await permit(one.pass({ ...checked(run("ls")), input }, signal));
        expect(permitted.ruling.decision).toBe("allow");
      }),
      { numRuns: 25 },
    ));

  test("a hook is shown the call and nothing else", async () => {
    const seen: HookCall[] = [];
    const { gate: one } = hooked({ before: (call) => void seen.push(call) });
    const call = { ...checked(run("ls")), input: { command: "ls" } };
    await one.pass(call, signal);
    expect(seen).toEqual([{ id: call.id, tool: "shell", input: { command: "ls" } }]);
  });
});
