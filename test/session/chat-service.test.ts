import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine, defineTool, type Approver, type Json } from "../../src/index.ts";
import {
  createChatService,
  openConversationFolder,
  rebuildHistory,
  type ChatChunk,
  type ConversationStore,
} from "../../src/session/index.ts";
import type { MessageItem, Model } from "../../src/spec/model.ts";
import { readJournal } from "../../src/store/index.ts";
import { createScriptedModel, type ScriptedStep } from "../../src/testing/index.ts";
import { builtins } from "../../src/tools/index.ts";
import { answerToEvents } from "../../src/wire/answer.ts";

const add = defineTool({
  name: "add",
  description: "Adds.",
  input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  parallel: true,
  run: ({ a, b }) => String(a + b),
});
const wait = defineTool({
  name: "wait",
  description: "Waits until it is stopped.",
  input: { type: "object" },
  run: (_input, ctx) =>
    new Promise<string>((resolve) => ctx.signal.addEventListener("abort", () => resolve("stopped"))),
});

const engineOf = () => createEngine({ tools: [add, wait], approval: "never", sandbox: "full-access" });
const folder = () => mkdtempSync(join(tmpdir(), "callgate-chat-"));

async function collect(stream: AsyncIterable<ChatChunk>): Promise<readonly ChatChunk[]> {
  const chunks: ChatChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const ownWords = (text: string): MessageItem => ({
  type: "message",
  role: "assistant",
  content: [{ type: "text", text }],
});

const sum: readonly ScriptedStep[] = [
  { text: "Let me see. ", calls: [{ id: "c1", name: "add", input: { a: 2, b: 3 } }] },
  { text: "It is 5." },
];

test("a message streams words, calls and results, and ends with done", async () => {
  const chat = createChatService({ engine: engineOf(), model: createScriptedModel(sum) });
  expect(await collect(chat.handleStream("anna", "2 + 3?"))).toEqual([
    { type: "text", text: "Let me see. " },
    { type: "tool_call", id: "c1", name: "add", arguments: '{"a":2,"b":3}' },
    { type: "tool_result", id: "c1", name: "add", ok: true, content: "5" },
    { type: "text", text: "It is 5." },
    { type: "done", reason: "done", text: "It is 5.", calls: 1, usage: { input: 0, output: 0 } },
  ]);
  await chat.close();
});

test("without a list of its own the model is offered every tool of the engine", async () => {
  const model = createScriptedModel([{ text: "hi" }]);
  const chat = createChatService({ engine: engineOf(), model });
  await collect(chat.handleStream("anna", "hello"));
  expect(model.requests[0]!.tools.map((tool) => tool.kind === "function" && tool.name)).toEqual(["add", "wait"]);
});

test("a conversation is kept and gone on with by another process's service", async () => {
  const store = openConversationFolder(folder());
  const first = createChatService({ engine: engineOf(), model: createScriptedModel(sum), store });
  await collect(first.handleStream("anna", "2 + 3?"));
  const before = [...first.history("anna")];
  await first.close();

  const model = createScriptedModel([{ text: "As I said." }]);
  const second = createChatService({ engine: engineOf(), model, store });
  expect(second.history("anna")).toEqual(before);
  await collect(second.handleStream("anna", "sure?"));
  expect(model.requests[0]!.input.slice(0, -1)).toEqual(before);
  await second.close();
});

test("conversations run beside each other on one engine and hear nothing of each other", async () => {
  // The same id everywhere, as models have it that give none of their own.
  const model = (id: string) =>
    createScriptedModel([{ calls: [{ id: "call_1", name: "add", input: { a: Number(id), b: 1 } }] }, { text: id }]);
  const store = openConversationFolder(folder());
  const chat = createChatService({ engine: engineOf(), model, store });
  const ids = ["1", "2", "3", "4"];
  const heard = await Promise.all(ids.map((id) => collect(chat.handleStream(id, "go"))));
  for (const [index, chunks] of heard.entries())
    expect(chunks.slice(0, 2)).toEqual([
      { type: "tool_call", id: "call_1", name: "add", arguments: `{"a":${index + 1},"b":1}` },
      { type: "tool_result", id: "call_1", name: "add", ok: true, content: String(index + 2) },
    ]);
  await chat.close();
  for (const id of ids) expect(JSON.stringify(store.read(id))).not.toMatch(/"id":"s\d+_/);
});

test("messages of one conversation are answered one after another", async () => {
  const model = createScriptedModel([{ text: "one" }, { text: "two" }]);
  const chat = createChatService({ engine: engineOf(), model });
  const [first, second] = await Promise.all([
    collect(chat.handleStream("anna", "1")),
    collect(chat.handleStream("anna", "2")),
  ]);
  expect([first, second].map((chunks) => chunks!.at(-1))).toMatchObject([{ text: "one" }, { text: "two" }]);
  expect(model.requests[1]!.input).toHaveLength(3);
});

test("a client that goes away interrupts its turn, and the conversation can go on", async () => {
  const model = createScriptedModel([{ calls: [{ name: "wait" }] }, { text: "still here" }]);
  const chat = createChatService({ engine: engineOf(), model });
  for await (const chunk of chat.handleStream("anna", "wait")) if (chunk.type === "tool_call") break;
  expect((await collect(chat.handleStream("anna", "hello?"))).at(-1)).toMatchObject({ text: "still here" });
  const history = chat.history("anna");
  expect(history.filter(({ type }) => type === "result")).toHaveLength(1);
});

test("an aborted signal interrupts too, and says so", async () => {
  const chat = createChatService({ engine: engineOf(), model: createScriptedModel([{ calls: [{ name: "wait" }] }]) });
  const stop = new AbortController();
  const chunks: ChatChunk[] = [];
  for await (const chunk of chat.handleStream("anna", "wait", stop.signal)) {
    chunks.push(chunk);
    if (chunk.type === "tool_call") setTimeout(() => stop.abort(), 5);
  }
  expect(chunks.at(-1)).toMatchObject({ type: "done", reason: "interrupted" });
});

test("idle conversations are closed and read again when they are spoken to", async () => {
  const store = openConversationFolder(folder());
  const chat = createChatService({
    engine: engineOf(),
    model: (id) => createScriptedModel([{ text: `hello ${id}` }, { text: "again" }]),
    store,
    maxOpen: 1,
  });
  for (const id of ["a", "b", "c", "a"]) await collect(chat.handleStream(id, "hi"));
  expect(chat.history("a")).toHaveLength(4);
  expect(chat.history("b")).toHaveLength(2);
  await chat.close();
});

test("a message that comes while its conversation is being closed waits, and every journal is whole", async () => {
  const path = folder();
  const store = openConversationFolder(path);
  const answer: Model = {
    name: "m",
    async *ask(request) {
      yield* answerToEvents({ items: [ownWords(`heard ${request.input.length}`)], outcome: "ok", finish: "stop" });
    },
  };
  const chat = createChatService({ engine: engineOf(), model: answer, store, maxOpen: 1 });
  const sent = Array.from({ length: 24 }, (_, n) => ({ id: `c${(n * 7) % 3}`, text: `message ${n}` }));
  const ends = await Promise.all(
    sent.map(async ({ id, text }, n) => {
      for (let turn = 0; turn < n % 5; turn++) await Promise.resolve();
      return (await collect(chat.handleStream(id, text))).at(-1);
    }),
  );
  expect(ends.every((end) => end?.type === "done" && end.reason === "done")).toBe(true);
  await chat.close();
  for (const id of ["c0", "c1", "c2"]) {
    const { records, problems } = readJournal(join(path, `chat-${id}.jsonl`));
    expect(problems).toEqual([]);
    const prompts = records.filter(({ type }) => type === "turn.started").map(({ prompt }) => prompt);
    expect(prompts.toSorted()).toEqual(
      sent
        .filter((one) => one.id === id)
        .map(({ text }) => text)
        .toSorted(),
    );
    const words = rebuildHistory(records).items.flatMap((item) => (item.type === "message" ? [item.role] : []));
    expect(words).toEqual(prompts.flatMap(() => ["user", "assistant"]));
  }
});

test("a conversation whose journal takes its time to close is not opened beside it", async () => {
  const inner = openConversationFolder(folder());
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const closing: string[] = [];
  const store: ConversationStore = {
    read: inner.read,
    open(id) {
      const { journal, records } = inner.open(id);
      const close = async () => {
        closing.push(id);
        await released;
        await journal.close();
      };
      return { records, journal: { append: journal.append, close } };
    },
  };
  const model = createScriptedModel([{ text: "one" }, { text: "two" }, { text: "three" }]);
  const chat = createChatService({ engine: engineOf(), model, store, maxOpen: 1 });
  await collect(chat.handleStream("a", "first"));
  const second = collect(chat.handleStream("b", "second"));
  await expect.poll(() => closing).toEqual(["a"]);
  const third = collect(chat.handleStream("a", "third"));
  release();
  expect((await second).at(-1)).toMatchObject({ type: "done", text: "two" });
  expect((await third).at(-1)).toMatchObject({ type: "done", text: "three" });
  expect(chat.history("a")).toHaveLength(4);
  await chat.close();
});

test("a conversation that could not be begun is free again", async () => {
  const store = openConversationFolder(folder());
  let limits: object = { maxRequests: -1 };
  const open = () =>
    createChatService({
      engine: engineOf(),
      model: createScriptedModel([{ text: "hi" }]),
      store,
      limits,
    });
  await expect(collect(open().handleStream("anna", "hello"))).rejects.toThrow("maxRequests");
  limits = {};
  const chat = open();
  expect((await collect(chat.handleStream("anna", "hello"))).at(-1)).toMatchObject({ type: "done", text: "hi" });
  await chat.close();
});

test.each(["../../etc/passwd", "..", ".", "a/b", "a\\b", "x".repeat(40), "ж*?"])(
  "an id from anyone stays in the folder: %s",
  async (id) => {
    const path = folder();
    const chat = createChatService({
      engine: engineOf(),
      model: createScriptedModel([{ text: "hi" }]),
      store: openConversationFolder(join(path, "inner")),
    });
    await collect(chat.handleStream(id, "hi"));
    await chat.close();
    expect(readdirSync(path)).toEqual(["inner"]);
    expect(readdirSync(join(path, "inner"))).toHaveLength(1);
  },
);

test("an id that no file name can hold is refused", async () => {
  const chat = createChatService({
    engine: engineOf(),
    model: createScriptedModel([]),
    store: openConversationFolder(folder()),
  });
  await expect(collect(chat.handleStream("", "hi"))).rejects.toThrow(TypeError);
  await expect(collect(chat.handleStream("é".repeat(99), "hi"))).rejects.toThrow(TypeError);
});

test("a model's error is a chunk, not an exception", async () => {
  const model = createScriptedModel([{ end: { outcome: "error", error: { message: "wrong key" } } }]);
  const chat = createChatService({ engine: engineOf(), model });
  expect(await collect(chat.handleStream("anna", "hi"))).toMatchObject([
    { type: "error", message: "wrong key" },
    { type: "done", reason: "error" },
  ]);
});

test("two people of one service share no power: no yes, no terminal, no file read, no kept output, no call id", async () => {
  const workspace = folder();
  writeFileSync(join(workspace, "shared.txt"), "one\n");
  const asked: string[] = [];
  const approver = (who: string): Approver => ({
    async ask({ call }) {
      asked.push(`${who}: ${call.tool}`);
      return { answer: "session" };
    },
  });
  const engine = createEngine({ tools: builtins, workspace, approval: "on-request", sandbox: "full-access" });
  let terminal = 0;
  // Every answer has the same call id, as some models have it.
  const call = (name: string, input: Json): ScriptedStep => ({ calls: [{ id: "call_1", name, input }] });
  const write =
    (chars: string, session_id: () => number): ScriptedStep =>
    () => ({
      calls: [{ id: "call_1", name: "write_stdin", input: { session_id: session_id(), chars } }],
    });
  const models = new Map([
    [
      "anna",
      createScriptedModel([
        call("read_file", { file_path: "shared.txt" }),
        call("shell_command", { command: "chmod 777 shared.txt" }),
        call("shell_command", { command: "seq 1 60000" }),
        call("exec_command", { cmd: "cat", tty: true, yield_time_ms: 250 }),
        { text: "done" },
        call("internal_file_write", { path: "shared.txt", content: "three\n" }),
        { text: "done" },
      ]),
    ],
    [
      "ben",
      createScriptedModel([
        call("internal_file_write", { path: "shared.txt", content: "two\n" }),
        call("shell_command", { command: "chmod 777 shared.txt" }),
        call("shell_command", { command: "seq 2 60001" }),
        write("hello\n", () => terminal),
        write("", () => 1),
        { text: "done" },
      ]),
    ],
  ]);
  const chat = createChatService({ engine, model: (who) => models.get(who)!, approver, tools: () => [] });
  const results = async (who: string) =>
    (await collect(chat.handleStream(who, "go"))).flatMap((chunk) => (chunk.type === "tool_result" ? [chunk] : []));

  const anna = await results("anna");
  terminal = Number(/session (\d+)/.exec(anna[3]?.content ?? "")?.[1]);
  expect(terminal).toBeGreaterThan(0);
  const ben = await results("ben");

  // What Anna has read is out of date since Ben wrote it: his knowing it is not hers.
  expect(ben[0]?.ok).toBe(true);
  const [late] = await results("anna");
  expect(late).toMatchObject({ ok: false, content: expect.stringMatching(/changed/) });
  expect(readFileSync(join(workspace, "shared.txt"), "utf8")).toBe("two\n");
  // Anna's yes for the session is not Ben's.
  expect(asked).toEqual(["anna: shell_command", "ben: shell_command"]);
  // One id, two files, each whole.
  const fileOf = (content = "") => /whole in (\S+?)[\s,;\]]/.exec(content)?.[1] ?? "";
  const [first, second] = [fileOf(anna[2]?.content), fileOf(ben[2]?.content)];
  expect(first).not.toBe(second);
  expect(readFileSync(first, "utf8").split("\n")[0]).toBe("1");
  expect(readFileSync(second, "utf8").split("\n")[0]).toBe("2");
  // Nor is Anna's terminal Ben's, by its number, nor is the number told.
  expect(ben.slice(3).map(({ ok }) => ok)).toEqual([false, false]);
  expect(ben[4]?.content).not.toContain(String(terminal));
  await chat.close();
  await engine.close();
});

test("what nobody knows is refused when the service is made, and after its end it takes nothing", async () => {
  const model = createScriptedModel([{ text: "hi" }, { text: "never" }]);
  expect(() => createChatService({ engine: engineOf(), model, maxopen: 5 } as never)).toThrow("maxOpen");
  const chat = createChatService({ engine: engineOf(), model });
  await collect(chat.handleStream("anna", "hello"));
  expect(chat.history("anna")).toHaveLength(2);
  expect(chat.history("nobody")).toEqual([]);
  await chat.close();
  await expect(collect(chat.handleStream("anna", "again"))).rejects.toThrow("closed");
  expect(chat.history("anna")).toEqual([]); // without a store nothing is kept beyond the service
  expect(model.requests).toHaveLength(1);
});
