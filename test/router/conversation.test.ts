/** One engine, many conversations: what one was granted, read, started or kept is nothing to another. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import {
  createEngine,
  defineTool,
  freeform,
  type Approver,
  type CallEvent,
  type EngineOptions,
} from "../../src/index.ts";
import type { Asked } from "../../src/spec/call.ts";
import { builtins } from "../../src/tools/index.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

function makeEngine(options: EngineOptions = {}) {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-talk-"));
  const engine = createEngine({ workspace, tools: builtins, approval: "never", sandbox: "full-access", ...options });
  cleanups.push(() => engine.close());
  return { engine, workspace };
}

const { signal } = new AbortController();
const asked = (name: string, input: object, id = "call_1"): Asked => ({
  id,
  name,
  kind: "function",
  arguments: JSON.stringify(input),
  askedAt: 0,
});

function answering(answer: "once" | "session") {
  const questions: string[] = [];
  const approver: Approver = {
    async ask({ call }) {
      questions.push(call.tool);
      return { answer };
    },
  };
  return { questions, approver };
}

const risky = defineTool({
  name: "risky",
  description: "Changes something somewhere.",
  input: { type: "object", properties: {} },
  access: { write: ["/somewhere/else"] },
  run: () => "done",
});

test("a yes 'for this session' holds in the conversation it was given in, and in no other", async () => {
  const first = answering("session");
  const second = answering("session");
  const { engine } = makeEngine({ tools: [risky], approval: "on-request", sandbox: "workspace-write" });
  const one = engine.conversation({ id: "one", approver: first.approver });
  const two = engine.conversation({ id: "two", approver: second.approver });
  expect(await one.call("risky")).toMatchObject({ ok: true, ruling: { by: "person" } });
  expect(await one.call("risky")).toMatchObject({ ok: true, ruling: { by: "memory" } });
  expect(await two.call("risky")).toMatchObject({ ok: true, ruling: { by: "person" } });
  expect([first.questions, second.questions]).toEqual([["risky"], ["risky"]]);
  // The engine's own conversation has nobody to ask.
  expect(await engine.call("risky")).toMatchObject({ ok: false, code: "needs_approval" });
});

test("an 'always' is a rule, and rules are the engine's: it holds in every conversation", async () => {
  const saved: unknown[] = [];
  const always: Approver = { ask: async () => ({ answer: "always" }) };
  const { engine } = makeEngine({
    tools: [risky],
    approval: "on-request",
    sandbox: "workspace-write",
    gate: { always: { file: "rules.toml", save: async (rule) => void saved.push(rule) } },
  });
  const later = engine.conversation({ id: "later" });
  expect(await later.call("risky")).toMatchObject({ code: "needs_approval" });
  expect(await engine.conversation({ approver: always }).call("risky")).toMatchObject({ ok: true });
  expect(saved).toHaveLength(1);
  expect(await later.call("risky")).toMatchObject({ ok: true, ruling: { by: "rule" } });
});

test("another conversation's terminals are neither seen nor reached, and end with their own", async () => {
  const { engine } = makeEngine();
  const one = engine.conversation({ id: "one" });
  const two = engine.conversation({ id: "two" });
  const opened = await one.call("exec_command", { cmd: "cat", tty: true, yield_time_ms: 250 });
  const id = Number(/session (?:ID )?(\d+)/i.exec(opened.text)?.[1]);
  expect(id).toBeGreaterThan(0);
  expect(one.openTerminals()).toHaveLength(1);
  expect(two.openTerminals()).toEqual([]);
  const reached = await two.call("write_stdin", { session_id: id, chars: "hello\n" });
  expect(reached.ok).toBe(false);
  const guessed = await two.call("write_stdin", { session_id: 1 });
  expect(guessed.text).not.toContain(String(id));
  expect((await one.call("write_stdin", { session_id: id, chars: "hello\n" })).text).toContain("hello");
  await two.close();
  expect(one.openTerminals()).toHaveLength(1);
  await one.close();
  expect(one.openTerminals()).toEqual([]);
  await expect(one.call("exec_command", { cmd: "true" })).rejects.toThrow("closed");
});

test("a tool is told which terminals its conversation left running, and under which grant", async () => {
  const seen: unknown[] = [];
  const look = defineTool({
    name: "look",
    description: "Looks.",
    input: { type: "object", properties: {} },
    access(_input, { terminals }) {
      seen.push(terminals.map(({ argv, tty, running, grant }) => [argv.at(-1), tty, running, grant.confined]));
      return {};
    },
    run: () => "looked",
  });
  const { engine } = makeEngine({ tools: [...builtins, look] });
  const one = engine.conversation();
  await one.call("exec_command", { cmd: "cat", tty: true, yield_time_ms: 250 });
  await one.call("look");
  await engine.conversation().call("look");
  expect(seen).toEqual([[["cat", true, true, false]], []]);
});

test("a file that changes after its call was allowed, with nobody asked, is not written over", async () => {
  const { engine, workspace } = makeEngine();
  const file = join(workspace, "a.txt");
  writeFileSync(file, "one\ntwo\n");
  const talk = engine.conversation();
  await talk.call("read_file", { file_path: file });
  talk.on(({ type }) => type === "call.permitted" && writeFileSync(file, "one\nby a person\n"));
  const write = { path: file, content: "all new" };
  expect(await talk.call("internal_file_write", write)).toMatchObject({ ok: false, code: "stale" });
  // A patch is made on what is there when it runs, and the person's line stays.
  const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** End Patch";
  expect(await talk.call("apply_patch", patch)).toMatchObject({ ok: true });
  expect(readFileSync(file, "utf8")).toBe("ONE\nby a person\n");
});

test("what one conversation has read is not what another has seen", async () => {
  const { engine, workspace } = makeEngine();
  const file = join(workspace, "a.txt");
  writeFileSync(file, "one\ntwo\n");
  const one = engine.conversation();
  const two = engine.conversation();
  await one.call("read_file", { file_path: file });
  writeFileSync(file, "one\nchanged by somebody\n");
  await two.call("read_file", { file_path: file });
  const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** End Patch";
  // The second has seen the file as it is; the first has not, whatever the second did.
  expect(await two.call("apply_patch", patch)).toMatchObject({ ok: true });
  const write = { path: file, content: "all new" };
  expect(await one.call("internal_file_write", write)).toMatchObject({ ok: false, code: "stale" });
  expect(readFileSync(file, "utf8")).toBe("ONE\nchanged by somebody\n");
});

test("kept outputs are each conversation's own, and an id used twice overwrites none", async () => {
  const long = defineTool({
    name: "long",
    description: "Long.",
    input: { type: "object", properties: { letter: { type: "string" } } } as const,
    run: ({ letter }) => `${letter}\n`.repeat(30_000),
  });
  const { engine } = makeEngine({ tools: [...builtins, long], sandbox: "workspace-write" });
  const one = engine.conversation({ id: "one" });
  const two = engine.conversation({ id: "../two" });
  const files = [];
  for (const [talk, letter] of [
    [one, "a"],
    [one, "b"],
    [two, "c"],
  ] as const)
    files.push((await talk.run(asked("long", { letter }), signal)).cut?.file ?? "");
  expect(new Set(files).size).toBe(3);
  expect(files.map((file) => readFileSync(file, "utf8")[0])).toEqual(["a", "b", "c"]);
  for (const file of files) expect(dirname(dirname(file))).toBe(dirname(engine.spillDir));
  expect(await engine.call("read_file", { file_path: files[0]! })).toMatchObject({ ok: false });
  expect(await one.call("read_file", { file_path: files[0]! })).toMatchObject({ ok: true });
  // Nobody is asked here: what is not the conversation's own is not read.
  expect(await two.call("read_file", { file_path: files[0]! })).toMatchObject({ ok: false });
});

test("ctx.session and call ids are a conversation's own; the engine hears all of them, and whose they were", async () => {
  const count = defineTool({
    name: "count",
    description: "Counts.",
    input: { type: "object", properties: {} },
    run(_input, ctx) {
      const next = Number(ctx.session.get("n") ?? 0) + 1;
      ctx.session.set("n", next);
      return String(next);
    },
  });
  const { engine } = makeEngine({ tools: [count] });
  const one = engine.conversation({ id: "one" });
  const two = engine.conversation({ id: "two" });
  const heard: string[] = [];
  const own: string[] = [];
  engine.on((event, conversation) => event.type === "call.ended" && heard.push(`${conversation} ${event.call.id}`));
  one.on((event) => event.type === "call.ended" && own.push(event.call.id));
  expect((await one.call("count")).text).toBe("1");
  expect((await one.call("count")).text).toBe("2");
  expect((await two.call("count")).text).toBe("1");
  expect(heard).toEqual(["one call_1", "one call_2", "two call_1"]);
  expect(own).toEqual(["call_1", "call_2"]);
});

test("two calls with one id at once stay two calls; one after the other may share it", async () => {
  const slow = defineTool({
    name: "slow",
    description: "Slow.",
    input: { type: "object", properties: { say: { type: "string" } } } as const,
    parallel: true,
    async run({ say = "" }, ctx) {
      ctx.progress(say);
      await new Promise((resolve) => setTimeout(resolve, 20));
      return say;
    },
  });
  const { engine } = makeEngine({ tools: [slow] });
  const events: Record<string, CallEvent[]> = { a: [], b: [] };
  const run = (say: string) =>
    engine.run(asked("slow", { say }), signal, { onEvent: (event) => events[say]?.push(event) });
  const both = await Promise.all([run("a"), run("b")]);
  expect(both.map(({ id }) => id)).toEqual(["call_1", "call_1~2"]);
  for (const say of ["a", "b"])
    expect(events[say]!.filter(({ type }) => type === "call.progress")).toMatchObject([{ progress: say }]);
  expect((await run("c")).id).toBe("call_1");
});

test("approval mode and sandbox of a living engine change for the next call, and one conversation may differ", async () => {
  const { engine } = makeEngine({ tools: [risky], approval: "disabled", sandbox: "workspace-write" });
  const own = engine.conversation({ approval: "never" });
  const shared = engine.conversation();
  expect(await shared.call("risky")).toMatchObject({ code: "denied" });
  engine.setPolicy({ sandbox: "full-access", approval: "on-request" });
  for (const talk of [engine, shared, own]) expect(await talk.call("risky")).toMatchObject({ ok: true });
  expect(engine.situation().sandbox).toBe("full-access");
  shared.setPolicy({ approval: "disabled" });
  expect(await shared.call("risky")).toMatchObject({ code: "denied" });
  expect(await engine.call("risky")).toMatchObject({ ok: true });
});

test("a call tells which files it made, changed and removed, with what they held", async () => {
  const { engine, workspace } = makeEngine();
  writeFileSync(join(workspace, "old.txt"), "old\n");
  writeFileSync(join(workspace, "gone.txt"), "gone\n");
  const events: CallEvent[] = [];
  const patch =
    "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Update File: old.txt\n@@\n-old\n+older\n*** Delete File: gone.txt\n*** End Patch";
  const ended = await engine.run({ ...asked("apply_patch", {}), kind: "custom", arguments: patch }, signal, {
    onEvent: (event) => events.push(event),
  });
  expect(ended.ok).toBe(true);
  const changes = events.flatMap((event) => (event.type === "file.changed" ? [event] : []));
  expect(changes.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
    { type: "file.changed", id: "call_1", path: join(workspace, "gone.txt"), change: "removed", before: "gone\n" },
    { type: "file.changed", id: "call_1", path: join(workspace, "new.txt"), change: "created", after: "new\n" },
    {
      type: "file.changed",
      id: "call_1",
      path: join(workspace, "old.txt"),
      change: "changed",
      before: "old\n",
      after: "older\n",
    },
  ]);
});

test("a changed file is told as what can be read there: half a character, a mark, no text", async () => {
  const { engine, workspace } = makeEngine();
  writeFileSync(join(workspace, "half.txt"), "x\n");
  writeFileSync(join(workspace, "mark.txt"), "\ufeffx\n");
  writeFileSync(join(workspace, "zero.txt"), "\0\nx\n");
  writeFileSync(join(workspace, "latin.txt"), Buffer.from("h\xe9\nx\n", "latin1"));
  const events: CallEvent[] = [];
  const names = ["half", "mark", "zero", "latin"];
  const lines = names.map((name) => `*** Update File: ${name}.txt\n@@\n-x\n+y${name === "half" ? "\ud800" : ""}\n`);
  const patch = `*** Begin Patch\n${lines.join("")}*** End Patch`;
  await engine.run({ ...asked("apply_patch", {}), kind: "custom", arguments: patch }, signal, {
    onEvent: (event) => events.push(event),
  });
  const told = events.flatMap((event) => (event.type === "file.changed" ? [[event.before, event.after]] : []));
  expect(told).toEqual([
    ["x\n", "y\ufffd\n"],
    ["\ufeffx\n", "\ufeffy\n"],
    [undefined, undefined],
    [undefined, undefined],
  ]);
});

test("the text of a result is at hand, and is not written down twice", async () => {
  const { engine } = makeEngine({ tools: [risky] });
  const result = await engine.call("risky");
  expect(result.text).toBe("done");
  expect(JSON.parse(JSON.stringify(result))).not.toHaveProperty("text");
});

test("a freeform tool takes its text, and the very JSON it is advertised with", async () => {
  const sql = defineTool({
    name: "sql",
    description: "Runs a query.",
    input: freeform(),
    run: (query) => `ran ${String(query)}`,
  });
  const { engine } = makeEngine({ tools: [sql] });
  expect((await engine.call("sql", "select 1")).text).toBe("ran select 1");
  expect((await engine.call("sql", '{"input":"select 1"}')).text).toBe("ran select 1");
  expect((await engine.call("sql", { input: "select 1" })).text).toBe("ran select 1");
  // Any other JSON is text like any text.
  expect((await engine.call("sql", '{"query":"x"}')).text).toBe('ran {"query":"x"}');
});

test("an engine that is closed leaves nothing of any conversation running", async () => {
  const { engine, workspace } = makeEngine();
  const cmd = "echo $$ > pid; exec sleep 600";
  const opened = await engine.conversation().call("exec_command", { cmd, tty: false, yield_time_ms: 250 });
  expect(opened.text).toContain("session");
  await vi.waitFor(() => expect(existsSync(join(workspace, "pid"))).toBe(true), { timeout: 30_000 });
  const pid = Number(readFileSync(join(workspace, "pid"), "utf8"));
  expect(() => process.kill(pid, 0)).not.toThrow();
  await engine.close();
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow(), { timeout: 30_000 });
});

test("a decision without a run: nothing runs, is asked or counted; a yes to its hash lets exactly that call run later", async () => {
  const ran: unknown[] = [];
  const hooked: string[] = [];
  const change = defineTool({
    name: "change",
    description: "Changes a file.",
    input: { type: "object", properties: { path: { type: "string" } }, required: ["path"] } as const,
    access: ({ path }) => ({ write: [path] }),
    run: ({ path }) => void ran.push(path),
  });
  const outside = mkdtempSync(join(tmpdir(), "callgate-outside-"));
  const file = join(outside, "a.txt");
  writeFileSync(file, "one");
  const options: EngineOptions = {
    tools: [change],
    approval: "on-request",
    sandbox: "workspace-write",
    gate: { hooks: [{ before: async ({ tool }) => void hooked.push(tool) }] },
  };
  const { engine, workspace } = makeEngine(options);
  const call = asked("change", { path: file });
  const decided = await engine.decide(call);
  expect(decided).toMatchObject({ decision: "ask", request: { call: { tool: "change", input: { path: file } } } });
  expect(await engine.decide(asked("change", { path: "in-here.txt" }))).toMatchObject({ decision: "allow" });
  expect(await engine.decide(asked("nothing", {}))).toMatchObject({
    decision: "deny",
    error: { code: "unknown_tool" },
  });
  expect([ran, hooked, engine.metrics.snapshot()]).toEqual([[], [], {}]);

  // Another process, with the same folder: the yes arrives there.
  const later = createEngine({ workspace, ...options });
  cleanups.push(() => later.close());
  const approved = JSON.parse(JSON.stringify(decided.request)).hash as string;
  const run = (one: Asked) => later.run(one, signal, { approved });
  expect(await run(asked("change", { path: `${file}x` }))).toMatchObject({ code: "needs_approval" });
  expect(await run(call)).toMatchObject({ ok: true, ruling: { by: "person" } });
  writeFileSync(file, "two");
  expect(await run(call)).toMatchObject({ code: "needs_approval" });
  writeFileSync(file, "one");
  expect(await run(call)).toMatchObject({ ok: true });
  expect(ran).toEqual([file, file]);
});

test("a call inside a call goes down the whole line, with its parent's id, in events and records", async () => {
  const order: string[] = [];
  const inner = defineTool({
    name: "inner",
    description: "Inner.",
    input: { type: "object", properties: { n: { type: "number" } } } as const,
    async run({ n = 0 }) {
      order.push(`start ${n}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
      order.push(`end ${n}`);
      return String(n);
    },
  });
  const outer = defineTool({
    name: "outer",
    description: "Outer.",
    input: { type: "object", properties: {} },
    parallel: true,
    async run(_input, ctx) {
      const both = await Promise.all([ctx.call("inner", { n: 1 }), ctx.call("inner", { n: 2 })]);
      const wrong = await ctx.call("inner", { n: "x" });
      const denied = await ctx.call("risky");
      return [...both.map(({ text }) => text), wrong.code ?? "", denied.code ?? ""].join(" ");
    },
  });
  const { engine } = makeEngine({ tools: [inner, outer, risky], sandbox: "workspace-write" });
  const events: string[] = [];
  const records: string[] = [];
  const lanes = engine.lanes({
    signal,
    recorder: {
      started: async ({ id, parent }) => void records.push(`${id} of ${parent ?? "nobody"}`),
      async decided() {},
      async ended() {},
    },
  });
  engine.on((event) => event.type === "call.ended" && events.push(event.call.id));
  // Two parents that run beside each other, whose calls each have to run alone: neither waits for ever.
  const [first, second] = await Promise.all([lanes.add(asked("outer", {}, "a")), lanes.add(asked("outer", {}, "b"))]);
  const told = { content: [{ type: "text", text: "1 2 invalid_input denied" }] };
  expect([first, second]).toMatchObject([told, told]);
  for (let at = 0; at < order.length; at += 2) expect(order[at + 1]).toBe(order[at]!.replace("start", "end"));
  expect(events).toContain("a.4");
  expect(records).toContain("a.1 of a");
  expect(records).toContain("b.2 of b");
  expect(engine.metrics.snapshot()).toMatchObject({ inner: { calls: 6 }, outer: { calls: 2 }, risky: { calls: 2 } });
});

test("a tool that calls itself is stopped, and a call inside a stopped call is stopped with it", async () => {
  const again = defineTool({
    name: "again",
    description: "Again.",
    input: { type: "object", properties: {} },
    run: async (_input, ctx) => (await ctx.call("again")).text,
  });
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    input: { type: "object", properties: {} },
    run: (_input, ctx) =>
      new Promise<string>((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason))),
  });
  const parent = defineTool({
    name: "parent",
    description: "Parent.",
    input: { type: "object", properties: {} },
    run: async (_input, ctx) => (await ctx.call("wait")).text,
  });
  const { engine } = makeEngine({ tools: [again, wait, parent] });
  expect((await engine.call("again")).text).toContain("nested more than 16 deep");
  const codes: string[] = [];
  engine.on((event) => event.type === "call.ended" && codes.push(`${event.call.tool} ${event.call.code}`));
  const stop = new AbortController();
  const running = engine.call("parent", {}, stop.signal);
  setTimeout(() => stop.abort(), 30);
  expect(await running).toMatchObject({ ok: false, code: "aborted" });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(codes.toSorted()).toEqual(["parent aborted", "wait aborted"]);
});

test("commands at once are limited, and a conversation that wants many leaves the next place to another", async () => {
  const queued: (() => void)[] = [];
  const isQueued = () => new Promise<void>((resolve) => queued.push(resolve));
  const sh = defineTool({
    name: "sh",
    description: "Runs a line.",
    input: { type: "object", properties: { line: { type: "string" } }, required: ["line"] },
    parallel: true,
    async run({ line }, ctx) {
      const running = ctx.exec.run({ argv: ["sh", "-c", line] });
      queued.shift()?.();
      return (await running).output.head;
    },
  });
  const { engine, workspace } = makeEngine({ maxCommands: 2, approval: "auto", tools: [sh] });
  const [greedy, modest] = [engine.conversation({ id: "greedy" }), engine.conversation({ id: "modest" })];
  const until = (file: string) => `while [ ! -e ${file} ]; do sleep 0.05; done`;
  await engine.call("sh", { line: "true" });
  const start = async (conversation: typeof greedy, line: string) => {
    const isThere = isQueued();
    const call = conversation.call("sh", { line });
    await isThere;
    return { call };
  };
  const first = await start(greedy, until("go1"));
  const more = [await start(greedy, until("go2")), await start(greedy, `touch third; ${until("go2")}`)];
  const other = await start(modest, "if [ -e third ]; then echo late; else echo in time; fi");
  writeFileSync(join(workspace, "go1"), "");
  expect((await other.call).text.trim()).toBe("in time");
  writeFileSync(join(workspace, "go2"), "");
  const ends = await Promise.all([first, ...more].map(({ call }) => call));
  expect(ends.map(({ ok }) => ok)).toEqual([true, true, true]);
});

test("until the host is ready a call waits if its tool may change something, by what the tool says of itself", async () => {
  const tool = (name: string, more: object) =>
    defineTool({ name, description: name, input: { type: "object" }, parallel: true, run: () => name, ...more });
  const { engine } = makeEngine({
    approval: "auto",
    tools: [
      tool("looks", { mutates: false, access: () => ({ read: ["a"] }) }),
      tool("says-nothing", {}),
      tool("changes", { mutates: true }),
      tool("may-change", { mutates: () => false }),
      tool("touches", { access: () => ({}) }),
    ],
  });
  let open = () => {};
  const ready = new Promise<void>((resolve) => (open = resolve));
  const waits: string[] = [];
  engine.on((event) => {
    if (event.type === "call.waiting") waits.push(`${event.tool} ${event.state}`);
  });
  const lanes = engine.lanes({ signal, ready });
  const names = ["looks", "says-nothing", "changes", "may-change", "touches"];
  const running = names.map((name) => lanes.add(asked(name, {})));
  expect((await Promise.all(running.slice(0, 2))).map(({ ok }) => ok)).toEqual([true, true]);
  const waiting = ["changes", "may-change", "touches"];
  expect(waits).toEqual(waiting.map((name) => `${name} waiting`));
  open();
  expect((await Promise.all(running)).map(({ ok }) => ok)).toEqual(names.map(() => true));
  expect(waits).toEqual([...waiting.map((name) => `${name} waiting`), ...waiting.map((name) => `${name} released`)]);
});
