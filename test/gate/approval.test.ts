/** A yes: what it is bound to, how long it lasts, whom it was given to, and what comes of no answer at all. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { callHash, memoryKeys } from "../../src/gate/agree.ts";
import { createRuleBook, type Rule } from "../../src/gate/rules.ts";
import type { Access, Denial } from "../../src/spec/access.ts";
import { Refusal, Waiting, type Checked } from "../../src/spec/call.ts";
import type { CallEvent, Decided, Gate } from "../../src/spec/stages.ts";
import { answering, codeOf, createCalls, permit } from "./calls.ts";
import { createWorkspace } from "./workspace.ts";

const workspace = createWorkspace();
afterAll(() => workspace.remove());
const { checked, run, gate } = createCalls(workspace);
const { signal } = new AbortController();
const settings = { approval: "unless-trusted", sandbox: "workspace-write" } as const;

async function refusalOf(promise: Promise<unknown>): Promise<Refusal> {
  const thrown: unknown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof Refusal)) throw new Error(`expected a refusal, got ${String(thrown)}`);
  return thrown;
}

describe("an answer that was given before the call came", () => {
  const hashOf = async (one: Gate, call: Checked) => {
    const { request } = await one.decide(call);
    if (request === undefined) throw new Error("nothing would be asked");
    return request.hash;
  };

  test("is valid for the question it was given to, and is a person's", async () => {
    const one = gate({ settings });
    const call = checked(run("npm test"));
    const permitted = await permit(one.pass(call, signal, { approved: await hashOf(one, call) }));
    expect(permitted.ruling).toMatchObject({ by: "person", decision: "allow" });
    expect(permitted.ruling.reason).toContain("approved before it was run");
  });

  test("is not remembered: the same call asks again", async () => {
    const one = gate({ settings });
    const call = checked(run("npm test"));
    await one.pass(call, signal, { approved: await hashOf(one, call) });
    expect(await codeOf(one.pass(call, signal))).toBe("needs_approval");
  });

  test.each<[string, (call: Checked) => Checked]>([
    ["another command", (call) => ({ ...call, access: run("npm run other") })],
    ["another input", (call) => ({ ...call, input: { all: true } })],
    ["another tool", (call) => ({ ...call, tool: { ...call.tool, name: "exec" } })],
    ["another folder", (call) => ({ ...call, access: { commands: [{ shell: "npm test", cwd: workspace.out }] } })],
    ["another file besides", (call) => ({ ...call, access: { ...call.access, write: ["x.txt"] } })],
    ["a host besides", (call) => ({ ...call, access: { ...call.access, network: ["a.org"] } })],
    ["a step outside", (call) => ({ ...call, access: { ...call.access, escalation: {} } })],
  ])("is none to %s", async (_what, change) => {
    const one = gate({ settings });
    const call = checked(run("npm test"));
    const approved = await hashOf(one, call);
    expect(await codeOf(one.pass(change(call), signal, { approved }))).toBe("needs_approval");
  });

  test("is none once a file that the command runs has changed", async () => {
    const one = gate({ settings });
    const script = join(workspace.ws, "later.sh");
    writeFileSync(script, "echo one\n", { mode: 0o755 });
    const call = checked(run("./later.sh"));
    const approved = await hashOf(one, call);
    writeFileSync(script, "echo two\n");
    expect(await codeOf(one.pass(call, signal, { approved }))).toBe("needs_approval");
    writeFileSync(script, "echo one\n");
    expect((await permit(one.pass(call, signal, { approved }))).ruling.by).toBe("person");
  });

  test("does not weigh against a rule that denies it meanwhile", async () => {
    const book = createRuleBook([]);
    const one = gate({ settings, book });
    const call = checked(run("npm test"));
    const approved = await hashOf(one, call);
    book.add({ command: "npm", decision: "deny" });
    expect(await codeOf(one.pass(call, signal, { approved }))).toBe("denied");
  });

  test("is told to the one who was refused: the hash of the question comes with needs_approval", async () => {
    const one = gate({ settings });
    const call = checked(run("npm test"));
    const { data } = await refusalOf(one.pass(call, signal));
    expect(data).toEqual({ hash: await hashOf(one, call) });
  });
});

describe("an answer that will come later", () => {
  test("puts the call aside, and nothing is answered", async () => {
    const events: CallEvent[] = [];
    const one = gate({ settings, approver: answering("later").approver, emit: (event) => void events.push(event) });
    const call = checked(run("npm test"));
    await expect(one.pass(call, signal)).rejects.toSatisfy(Waiting.is);
    expect(events.map(({ type }) => type)).toEqual(["approval.asked"]);
  });

  test("cannot be waited for by a call that another call is waiting for", async () => {
    const events: CallEvent[] = [];
    const one = gate({ settings, approver: answering("later").approver, emit: (event) => void events.push(event) });
    const call = checked(run("npm test"), { parent: "call_0" });
    expect(await codeOf(one.pass(call, signal))).toBe("needs_approval");
    expect(events.at(-1)).toEqual({ type: "approval.answered", id: call.id, answer: undefined });
  });

  test("does not keep a call that has run already: it ends with the output it had", async () => {
    const events: CallEvent[] = [];
    const { approver } = answering("later");
    const one = gate({ approver, emit: (event) => void events.push(event) });
    const permitted = await permit(one.pass(checked(run("npm test")), signal));
    const denied: Denial = { what: "write", target: "/data/x", reason: "read-only" };
    expect(await one.widen(permitted, denied, signal)).toBeUndefined();
    expect(events.at(-1)).toEqual({ type: "approval.answered", id: permitted.id, answer: undefined });
  });
});

test("a yes that comes after the turn was stopped is none, and leaves nothing behind", async () => {
  const stop = new AbortController();
  const { asked, approver } = answering({ answer: "session" });
  const ask = async (...given: Parameters<typeof approver.ask>) => {
    if (asked.length === 0) stop.abort();
    return approver.ask(...given);
  };
  const one = gate({ settings, approver: { ask } });
  expect(await codeOf(one.pass(checked(run("npm test")), stop.signal))).toBe("aborted");
  await one.pass(checked(run("npm test")), signal);
  expect(asked).toHaveLength(2);
});

test("'direct' is an answer about a held run; before a run it is none", async () => {
  const one = gate({ settings, approver: answering({ answer: "direct" }).approver });
  expect(await codeOf(one.pass(checked(run("npm test")), signal))).toBe("needs_approval");
});

test("a fault of the approver is no answer of anybody's: the call does not run", async () => {
  const one = gate({ settings, approver: { ask: () => Promise.reject(new Error("the terminal is gone")) } });
  await expect(one.pass(checked(run("npm test")), signal)).rejects.toThrow("the terminal is gone");
});

test("a message of a million characters is cut before the model is told it", async () => {
  const { approver } = answering({ answer: "no", message: "x".repeat(1_000_000) });
  const { message } = await refusalOf(gate({ settings, approver }).pass(checked(run("npm test")), signal));
  expect(message).toHaveLength("The user said no: ".length + 4_000);
});

describe("what a decision without a run says", () => {
  const decide = (access: Access, options: Parameters<typeof gate>[0] = {}): Promise<Decided> =>
    gate(options).decide(checked(access));

  test("allow, with who says so", async () => {
    expect(await decide(run("ls"))).toEqual({
      decision: "allow",
      reason: "ls only looks",
      ruling: { decision: "allow", reason: "ls only looks", by: "policy", commands: [["ls"]] },
    });
  });

  test("deny, with what the model would be told, and by which rule", async () => {
    const decided = await decide(run("npm test"), { rules: [{ id: "mine", command: "npm", decision: "deny" }] });
    expect(decided).toMatchObject({ decision: "deny", ruling: { by: "rule", rule: "mine" } });
    expect(decided.error).toMatchObject({ code: "denied", message: `Not permitted: ${decided.reason}` });
    expect(decided.error?.hint).toContain("A rule of the user forbids it");
    const never = await decide(run("rm -rf src"), { settings: { approval: "never" } });
    expect(never.error?.hint).toContain("Nobody is asked in this approval mode");
    const off = await decide(run("ls"), { settings: { approval: "disabled" } });
    expect(off.error?.hint).toContain("No tool can be called in this session");
  });

  test("ask, with the whole question, and nobody is asked", async () => {
    const { asked, approver } = answering({ answer: "once" });
    const { decision, request } = await decide(run("npm test"), { settings, approver });
    expect(decision).toBe("ask");
    expect(request).toMatchObject({ commands: [["npm", "test"]], reason: expect.any(String), call: { tool: "shell" } });
    expect(asked).toEqual([]);
  });

  test("what was agreed to for the session is allowed by memory, and only in that gate", async () => {
    const { approver } = answering({ answer: "session" });
    const one = gate({ settings, approver });
    await one.pass(checked(run("npm test")), signal);
    expect(await one.decide(checked(run("npm test")))).toMatchObject({ decision: "allow", ruling: { by: "memory" } });
    expect(await gate({ settings, approver }).decide(checked(run("npm test")))).toMatchObject({ decision: "ask" });
  });

  test("nothing is recorded, told or remembered by it", async () => {
    const seen: unknown[] = [];
    const one = gate({
      settings,
      record: (entry) => void seen.push(entry),
      emit: (event) => void seen.push(event),
      memory: { has: () => false, add: (key) => void seen.push(key) },
      hooks: [{ before: (call) => void seen.push(call) }],
    });
    for (const line of ["ls", "npm test", "rm -rf src"]) await one.decide(checked(run(line)));
    expect(seen).toEqual([]);
  });
});

describe("a wider grant after a refusal", () => {
  const denials: readonly (readonly [Denial, string])[] = [
    [
      { what: "write", target: "/data/x", reason: "read-only" },
      "The sandbox stopped it: read-only. Run it again, and let it write /data/x?",
    ],
    [
      { what: "network", reason: "no network", inferred: true },
      "The sandbox may have stopped it: no network. Run it again, with the whole network?",
    ],
    [
      { what: "network", target: "a.test", reason: "not allowed" },
      "The sandbox stopped it: not allowed. Run it again, and let it reach a.test?",
    ],
    [
      { what: "read", target: "/k", reason: "hidden" },
      "The sandbox stopped it: hidden. Run it again, and let it read /k?",
    ],
    [
      { what: "command", reason: "a system call" },
      "The sandbox stopped it: a system call. Run it again, outside the sandbox?",
    ],
    [
      { what: "time", reason: "60 s" },
      "It ran out of time: 60 s. Run it again, from the start, with ten times as long?",
    ],
  ];
  test.each(denials)("%j: the person is told what happened", async (denied, reason) => {
    const { asked, approver } = answering({ answer: "once" });
    const one = gate({ approver });
    await one.widen(await permit(one.pass(checked(run("npm test")), signal)), denied, signal);
    expect(asked.map((request) => request.reason)).toEqual([reason]);
    expect(asked[0]).not.toHaveProperty("always");
  });

  test("what a rule denies is not asked about again", async () => {
    const { asked, approver } = answering({ answer: "once" });
    const one = gate({ approver });
    const permitted = await permit(one.pass(checked(run("npm test")), signal));
    const denied: Denial = { what: "command", target: "rm", reason: "denied", rule: "deny command rm" };
    expect(await one.widen(permitted, denied, signal)).toBeUndefined();
    expect(asked).toEqual([]);
  });

  test("nobody answers: it ends as needs_approval, and the yes to the first run is none to the second", async () => {
    const { asked, approver } = answering({ answer: "session" }, undefined);
    const one = gate({ settings, approver });
    const permitted = await permit(one.pass(checked(run("npm test")), signal));
    const denied: Denial = { what: "write", target: "/data/x", reason: "read-only" };
    expect(await codeOf(one.widen(permitted, denied, signal))).toBe("needs_approval");
    expect(asked).toHaveLength(2);
  });

  test("'on-failure' asks too, 'auto' and 'disabled' ask nobody", async () => {
    const denied: Denial = { what: "write", target: "/data/x", reason: "read-only" };
    const widened = async (approval: "on-failure" | "auto" | "disabled") => {
      const { asked, approver } = answering({ answer: "once" });
      const call = await permit(gate().pass(checked(run("npm test")), signal));
      const wider = await gate({ approver, settings: { approval, sandbox: "workspace-write" } }).widen(
        call,
        denied,
        signal,
      );
      return [wider?.grant.write.includes("/data/x") ?? false, asked.length];
    };
    expect(await widened("on-failure")).toEqual([true, 1]);
    expect(await widened("auto")).toEqual([false, 0]);
    expect(await widened("disabled")).toEqual([false, 0]);
  });
});

describe("one conversation's yes", () => {
  test("is nothing to another one, though they share rules; an 'always' is for all of them", async () => {
    const saved: Rule[] = [];
    const book = createRuleBook([]);
    const always = { file: "/rules.toml", save: async (rule: Rule) => void saved.push(rule) };
    const talk = (...answers: Parameters<typeof answering>) => {
      const { asked, approver } = answering(...answers);
      return { asked, gate: gate({ settings, book, always, approver, memory: new Set<string>() }) };
    };
    const first = talk({ answer: "session" }, { answer: "always" });
    const second = talk({ answer: "no" });
    await first.gate.pass(checked(run("npm test")), signal);
    expect(await codeOf(second.gate.pass(checked(run("npm test")), signal))).toBe("rejected");
    await first.gate.pass(checked(run("npm run build")), signal);
    expect((await permit(second.gate.pass(checked(run("npm run build")), signal))).ruling.by).toBe("rule");
    expect([first.asked.length, second.asked.length, saved.length]).toEqual([2, 1, 1]);
  });

  test("is still known when the conversation is taken up again, by the keys that were told", async () => {
    const keys: string[] = [];
    const emit = (event: CallEvent) => {
      if (event.type === "approval.remembered") keys.push(...event.keys);
    };
    await gate({ settings, emit, approver: answering({ answer: "session" }).approver }).pass(
      checked(run("npm test")),
      signal,
    );
    expect(keys).toHaveLength(1);
    const resumed = gate({ settings, memory: new Set(keys) });
    expect((await permit(resumed.pass(checked(run("npm test")), signal))).ruling.by).toBe("memory");
    expect(await codeOf(resumed.pass(checked(run("npm run build")), signal))).toBe("needs_approval");
  });

  test("counts for fewer things than were agreed to, and not for one more", async () => {
    const { asked, approver } = answering({ answer: "session" }, { answer: "no" });
    const one = gate({ settings, approver });
    const write = (...paths: readonly string[]) => one.pass(checked({ write: paths }), signal);
    await write("a.txt", "b.txt", "c.txt");
    for (const some of [["a.txt"], ["c.txt", "a.txt"], ["b.txt"]])
      expect((await permit(write(...some))).ruling.by, some.join()).toBe("memory");
    expect(await codeOf(write("a.txt", "d.txt"))).toBe("rejected");
    expect(asked).toHaveLength(2);
  });

  test("ends when the grant would be another: with more open, the same command asks again", async () => {
    const memory = new Set<string>();
    const yes = answering({ answer: "session" });
    await gate({ settings, memory, approver: yes.approver }).pass(checked(run("npm test")), signal);
    const asks = (options: Parameters<typeof gate>[0]) =>
      codeOf(gate({ settings, memory, ...options }).pass(checked(run("npm test")), signal));
    expect(await asks({ network: "on" })).toBe("needs_approval");
    expect(await asks({ extraWritableRoots: [workspace.out] })).toBe("needs_approval");
    expect(await asks({ mask: [] })).toBe("needs_approval");
    expect(await asks({ settings: { approval: "unless-trusted", sandbox: "full-access" } })).toBe("needs_approval");
  });
});

describe("the files that a yes is bound to", () => {
  const asksAgain = async (line: string, change: () => void) => {
    const { asked, approver } = answering({ answer: "session" });
    const one = gate({ settings, approver });
    await one.pass(checked(run(line)), signal);
    await one.pass(checked(run(line)), signal);
    expect(asked).toHaveLength(1);
    change();
    await one.pass(checked(run(line)), signal);
    return asked.length === 2;
  };
  const put = (name: string, text: string) => writeFileSync(join(workspace.ws, name), text);

  test("a program's own file counts also behind more words than are looked at one by one", async () => {
    put("Makefile", "x:\n");
    const words = Array.from({ length: 450 }, (_, at) => `w${at}`).join(" ");
    expect(await asksAgain(`echo ${words}; make x`, () => put("Makefile", "x: y\n"))).toBe(true);
    rmSync(join(workspace.ws, "Makefile"));
  });

  test("a file that is too large to be read counts by its size and its time", async () => {
    const large = join(workspace.ws, "large.bin");
    put("large.bin", "");
    truncateSync(large, 32_000_001);
    const time = new Date(1_700_000_000_000);
    utimesSync(large, time, time);
    expect(await asksAgain("./large.bin", () => utimesSync(large, time, new Date(1_700_000_001_000)))).toBe(true);
    expect(await asksAgain("./large.bin", () => truncateSync(large, 32_000_002))).toBe(true);
    rmSync(large);
  });

  test("a file elsewhere is not looked at", async () => {
    const path = join(workspace.out, "elsewhere.sh");
    writeFileSync(path, "one");
    expect(await asksAgain(`npm test ${path}`, () => writeFileSync(path, "two"))).toBe(false);
  });

  test("a folder that is gone, or cannot be named, is no file", async () => {
    const { approver } = answering({ answer: "once" });
    const one = gate({ settings, approver });
    const call = checked({ commands: [{ shell: "npm test", cwd: "a\0b" }] });
    expect((await permit(one.pass(call, signal))).ruling.by).toBe("person");
  });
});

describe("the hash of a call", () => {
  const policy = workspace.policy();
  const grant = gate().baseGrant();
  const hash = (call: Checked) => callHash(call, grant, policy);
  const value = fc.jsonValue({ maxDepth: 2 });

  test("is the same whatever the order of keys, and another for every other input", () => {
    const pairs = fc.uniqueArray(fc.tuple(fc.string({ maxLength: 4 }), value), { selector: ([key]) => key });
    fc.assert(
      fc.property(pairs, pairs, (one, other) => {
        const call = checked({});
        const of = (list: readonly (readonly [string, unknown])[]) =>
          hash({ ...call, input: Object.fromEntries(list) as Checked["input"] });
        expect(of(one.toReversed())).toBe(of(one));
        const sorted = (list: typeof one) => JSON.stringify(list.toSorted(([a], [b]) => (a < b ? -1 : 1)));
        // JSON knows no -0 and sorts the keys of inner objects by their order of arrival.
        fc.pre(sorted(one).replaceAll("-0", "0") !== sorted(other).replaceAll("-0", "0"));
        fc.pre(!/[{]/.test(sorted(one)) && !/[{]/.test(sorted(other)));
        expect(of(one)).not.toBe(of(other));
      }),
      { numRuns: 150 },
    );
  });

  test("does not depend on the call's id or when it was asked, so that it holds in another process", () => {
    const call = checked(run("npm test"));
    expect(hash({ ...call, id: "other", askedAt: 99, arguments: '{"x":1}' })).toBe(hash(call));
  });

  test("covers what is at a path: nothing, a file with its content, a folder, a link's target, something else", () => {
    const folder = mkdtempSync(join(workspace.ws, "hash-"));
    const path = join(folder, "thing");
    const call = checked({ write: [path] });
    const seen = [hash(call)];
    const look = (make: () => void) => {
      rmSync(path, { recursive: true, force: true });
      make();
      seen.push(hash(call));
    };
    look(() => writeFileSync(path, "one"));
    look(() => writeFileSync(path, "two"));
    look(() => mkdirSync(path));
    look(() => symlinkSync(join(workspace.ws, "README.md"), path));
    look(() => symlinkSync("/dev/null", path));
    expect(new Set(seen).size).toBe(seen.length);
    look(() => writeFileSync(path, "one"));
    expect(seen.at(-1)).toBe(seen[1]);
  });

  test("covers a file that is only read by its place and kind, not by its content", () => {
    const path = join(workspace.ws, "read.txt");
    const call = checked({ read: ["read.txt"] });
    writeFileSync(path, "one");
    const before = hash(call);
    writeFileSync(path, "two");
    expect(hash(call)).toBe(before);
    rmSync(path);
    expect(hash(call)).not.toBe(before);
    symlinkSync(join(workspace.ws, "README.md"), path);
    expect(hash(call)).not.toBe(before);
    rmSync(path);
  });

  test.each<[string, (path: string) => Access]>([
    ["a script that is run", (path) => run(path)],
    ["a file that is changed", (path) => ({ write: [path] })],
  ])("where nobody was asked, what %s holds is left out; where it leads and what is there is not", (_what, access) => {
    const path = join(workspace.ws, "plain.sh");
    const call = checked(access(path));
    const both = () => [hash(call), callHash(call, grant, policy, { content: false })];
    writeFileSync(path, "one", { mode: 0o755 });
    const [asked, unasked] = both();
    writeFileSync(path, "two");
    expect(both()[0]).not.toBe(asked);
    expect(both()[1]).toBe(unasked);
    rmSync(path);
    if (call.access.write === undefined) return;
    expect(both()[1]).not.toBe(unasked);
    symlinkSync(join(workspace.ws, "README.md"), path);
    expect(both()[1]).not.toBe(unasked);
    rmSync(path);
  });

  test("covers the grant: every part of it that is wider or narrower gives another hash", () => {
    const call = checked(run("npm test"));
    const hashes = [
      grant,
      { ...grant, network: "on" },
      { ...grant, network: ["a.org"] },
      { ...grant, write: [] },
      { ...grant, mask: [] },
      { ...grant, protect: [] },
      { ...grant, confined: false },
      { ...grant, patience: 10 },
      { ...grant, policy: "full-access" },
    ].map((one) => callHash(call, one as typeof grant, policy));
    expect(new Set(hashes).size).toBe(hashes.length);
  });
});

describe("the keys of what was agreed to", () => {
  const policy = workspace.policy();
  const grant = gate().baseGrant();
  const keys = (call: Checked) => memoryKeys(call, grant, policy);

  test("one for each thing: commands, files read and written, hosts, servers", () => {
    const access: Access = {
      ...run("npm test"),
      read: ["a", "b"],
      write: ["c"],
      network: ["a.org"],
      servers: [{ server: "s", name: "t" }],
    };
    const made = keys(checked(access));
    expect(new Set(made).size).toBe(6);
    expect(made).toHaveLength(6);
  });

  test("a command that cannot be understood counts letter by letter", () => {
    const of = (shell: string) => keys(checked(run(shell)));
    expect(of("npm  test")).toEqual(of("npm test"));
    expect(of('eval  "$X"')).not.toEqual(of('eval "$X"'));
  });

  test("a command of words and a line of the same words are one thing", () => {
    const line = keys(checked({ commands: [{ shell: "npm test", cwd: workspace.ws }] }));
    const words = keys(checked({ commands: [{ argv: ["npm", "test"], cwd: workspace.ws }] }));
    expect(words).toEqual(line);
    const odd = (argv: readonly string[]) => keys(checked({ commands: [{ argv, cwd: workspace.ws }] }));
    expect(odd(["bash", "-c", "$X a"])).not.toEqual(odd(["bash", "-c", "$X b"]));
  });

  test("a tool whose schema cannot be written as JSON, or that describes itself by a function, still has one", () => {
    const loop: Record<string, unknown> = { type: "object" };
    loop["self"] = loop;
    const call = checked({}, { mutates: true });
    const odd = { ...call, tool: { ...call.tool, input: loop, description: () => "words" } } as unknown as Checked;
    expect(keys(odd)).toHaveLength(1);
    expect(keys({ ...odd, tool: { ...odd.tool, name: "other" } })).not.toEqual(keys(odd));
    const bare = { ...call, tool: { ...call.tool, input: undefined } } as unknown as Checked;
    expect(keys(bare)).not.toEqual(keys(call));
  });

  test("a path is one thing under each of its names", () => {
    symlinkSync(join(workspace.ws, "src"), join(workspace.ws, "alias"));
    const write = (path: string) => keys(checked({ write: [path] }));
    expect(write("alias/a.txt")).toEqual(write("src/a.txt"));
    expect(write("./src/../src/a.txt")).toEqual(write(join(workspace.ws, "src/a.txt")));
    expect(write("src/b.txt")).not.toEqual(write("src/a.txt"));
    rmSync(join(workspace.ws, "alias"));
  });
});
