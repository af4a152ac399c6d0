/** Which calls run with their writes held back, and who keeps what they did: rules, memory, hooks, a person. No run here. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readExample } from "../../src/gate/effect-rules.ts";
import { createGate, type GateOptions, type GateRecord } from "../../src/gate/gate.ts";
import { checkEffects } from "../../src/gate/held.ts";
import type { Rule } from "../../src/gate/rules.ts";
import type { Access } from "../../src/spec/access.ts";
import type { Checked, Permitted, Ran } from "../../src/spec/call.ts";
import type { Effects } from "../../src/spec/effects.ts";
import type { ApprovalAnswer, ApprovalRequest, CallEvent, Gate } from "../../src/spec/stages.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());
const { signal } = new AbortController();

const line = (shell: string): Access => ({ commands: [{ shell, cwd: workspace.ws }] });
const keepDist: Rule = { effects: { only: ["dist/**"] }, decision: "allow" };
const keepTracked: Rule = { effects: { removes: "tracked" }, decision: "deny" };

function checked(access: Access, more: Partial<Checked> = {}, parallel = false): Checked {
  return {
    id: "call_1",
    name: "shell",
    kind: "function",
    arguments: "{}",
    askedAt: 0,
    input: {},
    access,
    mutates: true,
    notes: [],
    tool: { name: "shell", description: "", input: { type: "object" }, parallel, run: () => undefined },
    ...more,
  };
}

/** A gate that may hold, and what it asked, told and wrote down. */
function holding(options: Partial<GateOptions> = {}, ...answers: (ApprovalAnswer | "later" | undefined)[]) {
  const asked: ApprovalRequest[] = [];
  const events: CallEvent[] = [];
  const records: GateRecord[] = [];
  const approver = {
    ask: async (request: ApprovalRequest) => {
      asked.push(request);
      return answers.shift();
    },
  };
  const gate = createGate({
    settings: { approval: "on-request", sandbox: "workspace-write" },
    workspace: workspace.ws,
    confinement: { name: "test", available: true },
    home: workspace.home,
    held: "asked",
    whyNotHeld: async () => undefined,
    emit: (event) => void events.push(event),
    record: async (record) => void records.push(record),
    ...(answers.length === 0 ? {} : { approver }),
    ...options,
  });
  return { gate, asked, events, records };
}

async function pass(gate: Gate, call: Checked): Promise<Permitted> {
  const passed = await gate.pass(call, signal);
  if ("rewritten" in passed) throw new Error("nobody rewrites here");
  return passed;
}

const writesOf = (gate: Gate, call: Checked) =>
  pass(gate, call).then(
    ({ grant }) => grant.writes ?? "direct",
    (error: { code?: string }) => error.code,
  );

describe("which calls are held", () => {
  const held = (access: Access, more: Partial<Checked> = {}, parallel = false) =>
    writesOf(holding({}, { answer: "no" }).gate, checked(access, more, parallel));

  test("one command that would be asked about, and that ends with its call", async () => {
    expect(await held(line("rm -rf src"))).toBe("held");
    expect(await held(line("ls"))).toBe("direct");
  });

  test.each<[string, Access, Partial<Checked>?, boolean?]>([
    ["two commands", { commands: [{ shell: "rm -rf src" }, { shell: "ls" }] }],
    ["a quotation", line("rm -rf src"), { markerless: true }],
    ["one of a tool that runs beside others", line("rm -rf src"), {}, true],
    ["one that stays", { commands: [{ shell: "rm -rf src", stays: true }] }],
    ["one that is typed", { commands: [{ shell: "rm -rf src\n", typed: ["bash"] }] }],
    ["one outside the sandbox", { ...line("rm -rf src"), escalation: {} }],
    ["one that names a host", { ...line("rm -rf src"), network: ["a.org"] }],
    ["one that uses a server", { ...line("rm -rf src"), servers: [{ server: "s", name: "t" }] }],
    ["one that talks to others", line("git push --force")],
    ["danger aimed elsewhere", line("rm -rf /elsewhere")],
    ["danger aimed here and elsewhere", line("rm -rf src /elsewhere")],
    ["danger aimed elsewhere beside what is none", line("ls && rm -rf /elsewhere")],
  ])("%s is asked about before", async (_what, access, more, parallel) => {
    expect(await held(access, more, parallel)).toBe("rejected");
  });

  test("where it cannot be held, the question comes before, and why is in the log", async () => {
    const { gate, events } = holding({ whyNotHeld: async () => "the folder is of another kind" }, { answer: "no" });
    expect(await writesOf(gate, checked(line("rm -rf src")))).toBe("rejected");
    expect(events).toContainEqual(
      expect.objectContaining({ type: "call.log", message: "it is not held, because the folder is of another kind" }),
    );
    const unknown = holding({ whyNotHeld: undefined as never }, { answer: "no" });
    expect(await writesOf(unknown.gate, checked(line("rm -rf src")))).toBe("rejected");
  });

  test("without anybody to ask it runs held only where a rule can keep what it does", async () => {
    const alone = (rules: readonly Rule[]) => writesOf(holding({ rules }).gate, checked(line("rm -rf src")));
    expect(await alone([])).toBe("needs_approval");
    expect(await alone([keepTracked])).toBe("needs_approval");
    expect(await alone([keepDist])).toBe("held");
  });

  test("under 'never' too, but not what a rule denies by name", async () => {
    const settings = { approval: "never", sandbox: "workspace-write" } as const;
    const never = (rules: readonly Rule[]) => writesOf(holding({ rules, settings }).gate, checked(line("rm -rf src")));
    expect(await never([])).toBe("denied");
    expect(await never([keepDist])).toBe("held");
    expect(await never([keepDist, { command: "rm", decision: "deny" }])).toBe("denied");
  });

  test("what was agreed to for the session runs directly", async () => {
    const first = holding({ held: "off" as never, memory: undefined as never }, { answer: "session" });
    const call = checked(line("rm -rf src"));
    expect(await writesOf(first.gate, call)).toBe("direct");
    expect(await writesOf(first.gate, call)).toBe("direct");
    expect(first.asked).toHaveLength(1);
  });

  test("with undo for all, whatever needs no question is held too, where it can be", async () => {
    const all = (access: Access, options: Partial<GateOptions> = {}) =>
      writesOf(holding({ undo: "all", ...options }).gate, checked(access));
    expect(await all(line("npm test"))).toBe("undoable");
    expect(await all({ commands: [{ shell: "npm test", stays: true }] })).toBe("direct");
    expect(await all(line("npm test"), { whyNotHeld: async () => "no" })).toBe("direct");
    const open = { approval: "on-request", sandbox: "full-access" } as const;
    expect(await all(line("npm test"), { settings: open })).toBe("direct");
  });
});

describe("what becomes of what it did", () => {
  async function ranIn(gate: Gate, writes: "held" | "undoable" = "held"): Promise<Ran> {
    const call = checked(line("npm run build"));
    const { decision: _decision, ...rest } = await gate.decide(call, undefined);
    const ruling = { decision: "allow", reason: rest.reason, by: "policy", commands: [["npm"]] } as const;
    const grant = { ...gate.baseGrant(), writes };
    return { ...call, grant, ruling, startedAt: 0, output: "" };
  }
  const effectsOf = (example: string, direct?: string): Effects => ({
    run: "run_1",
    list: example === "" ? [] : readExample(example),
    lines: [],
    diff: "the diff",
    ...(direct === undefined ? {} : { direct }),
  });
  const judge = async (
    { gate }: { readonly gate: Gate },
    effects: Effects,
    writes: "held" | "undoable" = "held",
    stop = signal,
  ) => gate.judge(await ranIn(gate, writes), effects, stop);
  const never = { approval: "never", sandbox: "workspace-write" } as const;

  test("nothing changed: nothing is asked, and it counts as allowed", async () => {
    const one = holding({}, { answer: "no" });
    expect(await judge(one, effectsOf(""))).toMatchObject({ choice: "none", ruling: { decision: "allow" } });
    expect(one.asked).toEqual([]);
  });

  test("a rule keeps or drops it, and the record says so", async () => {
    const rules = [keepDist, keepTracked];
    const kept = holding({ rules }, { answer: "no" });
    expect(await judge(kept, effectsOf("+ dist/a"))).toMatchObject({ choice: "all", ruling: { by: "rule" } });
    expect(kept.records).toMatchObject([{ outcome: "kept", ruling: { decision: "allow" } }]);
    const dropped = holding({ rules }, { answer: "once" });
    expect(await judge(dropped, effectsOf("- README.md"))).toMatchObject({
      choice: "none",
      ruling: { decision: "deny", by: "rule" },
      error: { code: "denied" },
    });
    expect(dropped.records).toMatchObject([{ outcome: "dropped" }]);
    expect([kept.asked, dropped.asked]).toEqual([[], []]);
  });

  test("a hook can drop it, and sees the list", async () => {
    const seen: unknown[] = [];
    const hook = { before: async (call: { effects?: unknown }) => (seen.push(call.effects), { block: "not that" }) };
    const one = holding({ hooks: [hook], rules: [keepDist] });
    expect(await judge(one, effectsOf("+ dist/a"))).toMatchObject({ choice: "none", ruling: { by: "hook" } });
    expect(seen).toEqual([readExample("+ dist/a")]);
  });

  test("undoable: kept at once unless a rule speaks against it", async () => {
    const one = holding({ rules: [keepTracked] }, { answer: "no" });
    expect(await judge(one, effectsOf("+ x"), "undoable")).toMatchObject({ choice: "all", ruling: { by: "policy" } });
    expect(await judge(one, effectsOf("- README.md"), "undoable")).toMatchObject({ choice: "none" });
    expect(one.asked).toEqual([]);
    expect(await judge(one, effectsOf("~ .git/config"), "undoable")).toMatchObject({ error: { code: "rejected" } });
    expect(one.asked).toHaveLength(1);
  });

  test("where nobody is asked or there, nothing is kept, and the model is told which", async () => {
    expect(await judge(holding({ settings: never }), effectsOf("+ x"))).toMatchObject({ error: { code: "denied" } });
    expect(await judge(holding(), effectsOf("+ x"))).toMatchObject({ error: { code: "needs_approval" } });
    expect(await judge(holding({}, "later"), effectsOf("+ x"))).toMatchObject({ error: { code: "needs_approval" } });
  });

  test("a person sees the list, the diff and the rule that 'always' would write", async () => {
    const saved: Rule[] = [];
    const always = { file: "rules.toml", save: async (rule: Rule) => void saved.push(rule) };
    const one = holding({ always }, { answer: "always" });
    expect(await judge(one, effectsOf("+ dist/a"))).toMatchObject({ choice: "all", ruling: { by: "person" } });
    expect(one.asked[0]).toMatchObject({
      diff: "the diff",
      effects: { run: "run_1" },
      always: {
        file: "rules.toml",
        rule: expect.stringContaining("dist/**"),
        alsoAllows: expect.stringContaining("dist"),
      },
    });
    expect(saved).toEqual([keepDist]);
    expect(one.events.map(({ type }) => type)).toEqual(["approval.asked", "approval.answered", "approval.remembered"]);
    expect(await judge(one, effectsOf("~ dist/b"))).toMatchObject({ choice: "all", ruling: { by: "rule" } });
    const without = holding({}, { answer: "once" });
    await judge(without, effectsOf("+ dist/a"));
    expect(without.asked[0]).not.toHaveProperty("always");
  });

  test("a yes for the session is for the same folders; a yes for once is for once; a part is a part", async () => {
    const one = holding({}, { answer: "session" }, { answer: "no" }, { answer: "once", keep: ["dist/a"] });
    await judge(one, effectsOf("+ dist/a"));
    expect(await judge(one, effectsOf("+ dist/b"))).toMatchObject({
      choice: "all",
      ruling: { by: "memory", decision: "allow" },
    });
    expect(await judge(one, effectsOf("+ out/b"))).toMatchObject({ choice: "none", error: { code: "rejected" } });
    expect(await judge(one, effectsOf("+ out/b"))).toMatchObject({ choice: { paths: ["dist/a"] } });
    expect(one.asked).toHaveLength(3);
    // Nothing at the top of the workspace is remembered.
    const top = holding({}, { answer: "session" }, { answer: "no" });
    await judge(top, effectsOf("+ x"));
    expect(await judge(top, effectsOf("+ x"))).toMatchObject({ choice: "none" });
  });

  test("a yes for once or the session writes no rule; 'always' at the top of the workspace writes none either", async () => {
    const saved: Rule[] = [];
    const always = { file: "rules.toml", save: async (rule: Rule) => void saved.push(rule) };
    for (const answer of ["once", "session"] as const)
      await judge(holding({ always }, { answer }), effectsOf("+ dist/a"));
    const top = holding({ always }, { answer: "always" });
    expect(await judge(top, effectsOf("+ x"))).toMatchObject({ choice: "all" });
    expect(top.asked[0]).not.toHaveProperty("always");
    expect(saved).toEqual([]);
    expect(top.events.map(({ type }) => type)).toEqual(["approval.asked", "approval.answered"]);
  });

  test("a rule that cannot be written down keeps nothing", async () => {
    const always = { file: "rules.toml", save: () => Promise.reject(new Error("disk full")) };
    const one = holding({ always }, { answer: "always" });
    await expect(judge(one, effectsOf("+ dist/a"))).rejects.toThrow("disk full");
    expect(one.records).toEqual([]);
  });

  test("what was agreed to before it ran is not held: the yes was to the run", async () => {
    const memory = new Set<string>();
    await writesOf(holding({ held: "off", memory }, { answer: "session" }).gate, checked(line("rm -rf src")));
    const again = holding({ memory }, { answer: "no" });
    expect(await writesOf(again.gate, checked(line("rm -rf src")))).toBe("direct");
    expect(await writesOf(again.gate, checked(line("rm -rf README.md")))).toBe("held");
    expect(again.asked).toEqual([]);
  });

  test("without a diff the question has none, and a hook that fails drops it", async () => {
    const one = holding({}, { answer: "once" });
    const { diff: _diff, ...bare } = effectsOf("+ dist/a");
    await judge(one, bare);
    expect(one.asked[0]).not.toHaveProperty("diff");
    const failing = holding({ rules: [keepDist], hooks: [{ before: () => Promise.reject(new Error("down")) }] });
    expect(await judge(failing, effectsOf("+ dist/a"))).toMatchObject({
      choice: "none",
      ruling: { by: "hook", decision: "deny" },
      error: { code: "denied" },
    });
  });

  test("no and stop are told with the person's words, and stop ends the turn", async () => {
    const one = holding({}, { answer: "no", message: "not now" }, { answer: "stop" });
    const no = await judge(one, effectsOf("+ x"));
    expect(no.error?.message).toContain("The user said no: not now");
    expect(no.error?.data).toBeUndefined();
    const stop = await judge(one, effectsOf("+ x"));
    expect(stop).toMatchObject({ error: { data: { stopTurn: true } }, ruling: { reason: "the person said stop" } });
  });

  test("an interruption while the person reads ends it", async () => {
    const stop = new AbortController();
    const one = holding({ approver: { ask: async () => (stop.abort(), { answer: "once" as const }) } });
    await expect(judge(one, effectsOf("+ x"), "held", stop.signal)).rejects.toMatchObject({ code: "aborted" });
  });

  test("directly: offered where it failed because it was held, and only then", async () => {
    const why = "files cannot be moved over folders";
    const offered = holding({}, { answer: "direct" }, { answer: "direct" });
    expect(await judge(offered, effectsOf("", why))).toMatchObject({
      choice: "none",
      direct: { grant: { confined: true }, ruling: { by: "person" } },
    });
    const not = await judge(offered, effectsOf("+ x"));
    expect(not).toMatchObject({ choice: "none", ruling: { decision: "deny" } });
    expect(not.direct).toBeUndefined();
    const alone = await judge(holding({ settings: never }), effectsOf("+ x", why));
    expect(alone.error?.message).toContain(`It failed, because ${why}.`);
    expect(await judge(holding(), effectsOf("", why))).toMatchObject({ ruling: { reason: "it changed nothing" } });
  });

  test("directly: what was to be undoable runs again without a question, unless it may use the network", async () => {
    const one = holding({}, { answer: "no" });
    expect(await judge(one, effectsOf("", "why"), "undoable")).toMatchObject({
      choice: "none",
      direct: { ruling: { by: "policy", decision: "allow" } },
    });
    expect(one.asked).toEqual([]);
    const online = holding({ network: "on" }, { answer: "no" });
    expect((await judge(online, effectsOf("+ x", "why"), "undoable")).direct).toBeUndefined();
  });

  test("directly: a script that was changed while the person read does not run", async () => {
    writeFileSync(join(workspace.ws, "package.json"), '{"scripts":{"build":"true"}}\n');
    const approver = {
      async ask() {
        writeFileSync(join(workspace.ws, "package.json"), '{"scripts":{"build":"evil"}}\n');
        return { answer: "direct" as const };
      },
    };
    const judged = await judge(holding({ approver }), effectsOf("+ x", "why"));
    expect(judged).toMatchObject({ choice: "none", error: { code: "rejected" } });
    expect(judged.direct).toBeUndefined();
  });

  test("what rules alone would say", () => {
    const scene = { workspace: "/ws", protect: [], isTracked: () => false };
    const say = (example: string) => checkEffects(example === "" ? [] : readExample(example), [keepDist], scene);
    expect(say("")).toMatchObject({ decision: "allow", by: "policy" });
    expect(say("+ dist/a")).toMatchObject({ decision: "allow", by: "rule", rule: expect.any(String) });
    expect(say("+ x")).toEqual({ decision: "ask", by: "policy", reason: "no rule speaks of what it did" });
    expect(say("~ .git/config")).toMatchObject({ decision: "ask", by: "policy" });
    const undoable = (example: string) => checkEffects(readExample(example), [keepDist], scene, "undoable");
    expect(undoable("+ x")).toMatchObject({ decision: "allow", by: "policy" });
    expect(undoable("~ .git/config")).toMatchObject({ decision: "ask" });
  });
});
