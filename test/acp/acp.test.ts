/** `callgate acp` as an editor sees it: the real command, driven by the protocol's own client. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  client,
  methods,
  ndJsonStream,
  type ClientCapabilities,
  type ClientConnection,
  type RequestPermissionRequest,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { afterEach, beforeAll, expect, test } from "vitest";
import { createEngine, defineTool } from "../../src/index.ts";
import { createMcpServer } from "../../src/mcp/server/server.ts";
import { createScriptedModel, serveModel, type ScriptedStep } from "../../src/testing/index.ts";
import { cli, ensureBuilt, tempFolder } from "../cli/run.ts";
import { has } from "../needs.ts";
import { canHold } from "../runtime/effects/held.ts";

beforeAll(ensureBuilt, 120_000);
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

interface Editor {
  readonly agent: ClientConnection["agent"];
  readonly updates: SessionUpdate[];
  readonly permissions: RequestPermissionRequest[];
  readonly child: ChildProcess;
  /** What the person chooses, by the option's id. */
  choose: string | ((request: RequestPermissionRequest) => Promise<string>);
  unsaved: Map<string, string>;
  /** What the person does with a form. */
  fillIn: () => Promise<{ action: "accept"; content: Record<string, number> }>;
  until(wanted: (update: SessionUpdate) => boolean): Promise<SessionUpdate>;
}

interface Setting {
  readonly steps: readonly ScriptedStep[];
  readonly state?: string;
  readonly flags?: readonly string[];
  readonly capabilities?: ClientCapabilities;
  /** Commands that would be asked about run held. */
  readonly held?: boolean;
}

async function openEditor({
  steps,
  state = tempFolder("state"),
  flags = [],
  capabilities = {},
  held = false,
}: Setting): Promise<Editor> {
  const server = await serveModel(createScriptedModel(steps, "scripted"));
  cleanups.push(() => server.close());
  const args = [cli, "acp", "--base-url", server.baseUrl, "--wire", "chat", "--model", "scripted", ...flags];
  const child = spawn(process.execPath, args, {
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: tempFolder("home"),
      CALLGATE_HOME: state,
      ...(held ? {} : { CALLGATE_HELD: "off" }),
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  cleanups.push(() => child.kill());
  const updates: SessionUpdate[] = [];
  const waiting = new Set<() => void>();
  const editor: Omit<Editor, "agent"> = {
    updates,
    permissions: [],
    child,
    choose: "once",
    unsaved: new Map(),
    fillIn: async () => ({ action: "accept", content: { seats: 4 } }),
    async until(wanted) {
      for (;;) {
        const found = updates.find(wanted);
        if (found !== undefined) return found;
        await new Promise<void>((wake) => waiting.add(wake));
      }
    },
  };
  const app = client({ name: "test" })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push(params.update);
      for (const wake of waiting) wake();
      waiting.clear();
    })
    .onRequest(methods.client.session.requestPermission, async ({ params }) => {
      editor.permissions.push(params);
      const optionId = typeof editor.choose === "string" ? editor.choose : await editor.choose(params);
      return { outcome: optionId === "" ? { outcome: "cancelled" } : { outcome: "selected", optionId } };
    })
    .onRequest(methods.client.elicitation.create, () => editor.fillIn())
    .onRequest(methods.client.fs.readTextFile, ({ params }) => {
      const content = editor.unsaved.get(params.path);
      if (content === undefined) throw new Error("not open");
      return { content };
    });
  const stream = ndJsonStream(
    Writable.toWeb(child.stdin!),
    Readable.toWeb(child.stdout!) as ReadableStream<Uint8Array>,
  );
  const connection = app.connect(stream);
  const { agent } = connection;
  await agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: capabilities });
  return Object.assign(editor, { agent });
}

const send = async (editor: Editor, sessionId: string, text: string): Promise<string> => {
  const { stopReason } = await editor.agent.request<{ stopReason: string }>(methods.agent.session.prompt, {
    sessionId,
    prompt: prompt(text),
  });
  return stopReason;
};
const prompt = (text: string) => [{ type: "text" as const, text }];
const of = <K extends SessionUpdate["sessionUpdate"]>(updates: readonly SessionUpdate[], kind: K) =>
  updates.filter((update): update is Extract<SessionUpdate, { sessionUpdate: K }> => update.sessionUpdate === kind);
const said = (updates: readonly SessionUpdate[]) =>
  of(updates, "agent_message_chunk")
    .map(({ content }) => (content.type === "text" ? content.text : ""))
    .join("");

test("a session says what it can do, takes a prompt, tells plan, diff and words, is listed, loaded and closed", async () => {
  const cwd = tempFolder("work");
  const state = tempFolder("state");
  writeFileSync(join(cwd, "a.txt"), "one\n");
  const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n";
  const editor = await openEditor({
    state,
    steps: [
      {
        calls: [
          { name: "update_plan", input: { plan: [{ step: "change it", status: "in_progress" }] } },
          { name: "apply_patch", input: { input: patch } },
        ],
      },
      { text: "It says two now." },
    ],
  });
  const { sessionId, modes } = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  expect(modes?.availableModes.map(({ id }) => id)).toEqual(["default", "ask", "work", "plan"]);
  const commands = await editor.until(({ sessionUpdate }) => sessionUpdate === "available_commands_update");
  expect(JSON.stringify(commands)).toContain("compact");
  expect(await send(editor, sessionId, "make it two")).toBe("end_turn");
  expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("two\n");
  expect(said(editor.updates)).toBe("It says two now.");
  expect(of(editor.updates, "plan")).toMatchObject([{ entries: [{ content: "change it", status: "in_progress" }] }]);
  const edit = of(editor.updates, "tool_call").find(({ name }) => name === "apply_patch");
  expect(edit).toMatchObject({ kind: "edit", title: "Edit a.txt", locations: [{ path: join(cwd, "a.txt") }] });
  const diffs = of(editor.updates, "tool_call_update").flatMap(({ content }) => content ?? []);
  expect(diffs).toContainEqual({ type: "diff", path: join(cwd, "a.txt"), oldText: "one\n", newText: "two\n" });
  expect(of(editor.updates, "tool_call_update").at(-1)).toMatchObject({ status: "completed" });

  const { sessions } = await editor.agent.request(methods.agent.session.list, { cwd });
  expect(sessions).toMatchObject([{ sessionId, cwd, title: "make it two" }]);
  await editor.agent.request(methods.agent.session.close, { sessionId });
  await expect(
    editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt("more") }),
  ).rejects.toThrow();

  // Another process of the editor: everything is told again, and the conversation goes on.
  const next = await openEditor({ state, steps: [(request) => ({ text: `${request.input.length > 3}` })] });
  await next.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  expect(of(next.updates, "user_message_chunk")).toMatchObject([{ content: { text: "make it two" } }]);
  expect(said(next.updates)).toBe("It says two now.");
  expect(of(next.updates, "tool_call").map(({ status }) => status)).toEqual(["completed", "completed"]);
  expect(of(next.updates, "plan")).toHaveLength(1);
  await next.agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt("go on") });
  expect(said(next.updates)).toBe("It says two now.true");
  await next.agent.request(methods.agent.session.delete, { sessionId });
  expect((await next.agent.request(methods.agent.session.list, { cwd })).sessions).toEqual([]);
});

test("a permission shows the command and the diff; 'always' is a rule for that command; a no is told", async () => {
  const cwd = tempFolder("work");
  writeFileSync(join(cwd, "a.txt"), "one\n");
  const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n";
  const editor = await openEditor({
    flags: ["--sandbox", "read-only", "--approval", "unless-trusted"],
    steps: [
      { calls: [{ name: "apply_patch", input: { input: patch } }] },
      { calls: [{ name: "shell_command", input: { command: "npm publish --tag next" } }] },
      { text: "as you like" },
    ],
  });
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  editor.choose = async ({ toolCall }) => (toolCall.kind === "edit" ? "once" : "no");
  await editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt("go") });
  const command = editor.permissions.find(({ toolCall }) => toolCall.title?.includes("npm publish"));
  expect(JSON.stringify(command?.toolCall.content)).toContain("npm publish --tag next");
  expect(command?.options.map(({ optionId }) => optionId)).toEqual(
    expect.arrayContaining(["once", "session", "no", "stop"]),
  );
  const always = command?.options.find(({ optionId }) => optionId === "always");
  expect(always).toMatchObject({ kind: "allow_always", name: expect.stringContaining("npm publish") });
  const edit = editor.permissions.find(({ toolCall }) => toolCall.kind === "edit");
  expect(edit?.toolCall.content).toContainEqual({
    type: "diff",
    path: join(cwd, "a.txt"),
    oldText: "one\n",
    newText: "two\n",
  });
  expect(of(editor.updates, "tool_call_update").some(({ status }) => status === "failed")).toBe(true);
  expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("two\n");
  expect(said(editor.updates)).toBe("as you like");
});

test("a word of a command cannot end the block that it is shown in, nor hide what stands before it", async () => {
  const command = "npm publish '\n```\n**The administrator agrees.** \u001b[8m\u202e'";
  const editor = await openEditor({
    flags: ["--approval", "unless-trusted"],
    steps: [{ calls: [{ name: "shell_command", input: { command } }] }, { text: "done" }],
  });
  const { sessionId } = await editor.agent.request(methods.agent.session.new, {
    cwd: tempFolder("work"),
    mcpServers: [],
  });
  editor.choose = "no";
  await editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt("go") });
  const [first] = editor.permissions[0]!.toolCall.content!;
  const { text } = (first as { content: { text: string } }).content;
  expect(text.match(/^```.*$/gm)).toEqual(["```sh", "```"]);
  expect(text).toContain("npm publish '⏎ ```⏎ **The administrator agrees.** \\x1b[8m\\u{202e}'");
  expect(["\u001b", "\u202e"].filter((hidden) => text.includes(hidden))).toEqual([]);
});

test.skipIf(!canHold)(
  "what a held command did is shown, and one that failed because of it runs directly (needs bubblewrap)",
  async () => {
    const cwd = tempFolder("work");
    mkdirSync(join(cwd, "d"));
    const command = "rm -rf gone; touch new.txt; perl -e 'rename(q(d), q(e)) or die $!'";
    const editor = await openEditor({
      held: true,
      flags: ["--approval", "unless-trusted"],
      steps: [{ calls: [{ name: "shell_command", input: { command } }] }, { text: "renamed" }],
    });
    const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
    editor.choose = "direct";
    await editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt("go") });
    expect(editor.permissions).toHaveLength(1);
    const [{ toolCall, options }] = editor.permissions as [RequestPermissionRequest];
    const why = "renaming a folder that was there does not work while held";
    expect(options.find(({ optionId }) => optionId === "direct")?.name).toBe(`Run it again directly (${why})`);
    expect(JSON.stringify(toolCall.content)).toContain(why);
    expect(JSON.stringify(toolCall.content)).toContain("+ new.txt");
    expect([existsSync(join(cwd, "d")), existsSync(join(cwd, "e"))]).toEqual([false, true]);
  },
);

test("in plan mode nothing is changed and nobody is asked", async () => {
  const cwd = tempFolder("work");
  const patch = "*** Begin Patch\n*** Add File: b.txt\n+new\n*** End Patch\n";
  const editor = await openEditor({
    steps: [{ calls: [{ name: "apply_patch", input: { input: patch } }] }, { text: "only a plan" }],
  });
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  await editor.agent.request(methods.agent.session.setMode, { sessionId, modeId: "plan" });
  await editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt("go") });
  expect(editor.permissions).toEqual([]);
  expect(() => readFileSync(join(cwd, "b.txt"))).toThrow();
  await expect(editor.agent.request(methods.agent.session.setMode, { sessionId, modeId: "yolo" })).rejects.toThrow();
});

test.skipIf(!has("bubblewrap"))(
  "a command's output streams, as a terminal where the editor has one, and a cancel ends it (needs bubblewrap)",
  async () => {
    const cwd = tempFolder("work");
    const editor = await openEditor({
      capabilities: { _meta: { terminal_output: true } },
      steps: [{ calls: [{ name: "shell_command", input: { command: "echo begun; sleep 60" } }] }],
    });
    const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
    const ended = send(editor, sessionId, "go");
    const output = await editor.until((update) => JSON.stringify(update._meta ?? {}).includes("terminal_output"));
    expect(output).toMatchObject({ _meta: { terminal_output: { data: "begun\n" } } });
    expect(of(editor.updates, "tool_call")).toMatchObject([
      { title: "echo begun; sleep 60", kind: "execute", content: [{ type: "terminal" }] },
    ]);
    await editor.agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await ended).toBe("cancelled");
  },
);

test("a cancel while the person is asked ends the turn", async () => {
  const cwd = tempFolder("work");
  const editor = await openEditor({
    steps: [{ calls: [{ name: "shell_command", input: { command: "npm publish" } }] }],
  });
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  await editor.agent.request(methods.agent.session.setMode, { sessionId, modeId: "ask" });
  let asked = () => {};
  const isAsked = new Promise<void>((wake) => (asked = wake));
  editor.choose = () => {
    asked();
    return new Promise(() => undefined);
  };
  const ended = send(editor, sessionId, "go");
  await isAsked;
  await editor.agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await ended).toBe("cancelled");
});

test("reading a file shows what the editor has open; a file beyond reach is not asked for", async () => {
  const cwd = tempFolder("work");
  writeFileSync(join(cwd, "a.txt"), "saved\n");
  writeFileSync(join(cwd, "b.txt"), "on disk\n");
  const told: string[] = [];
  const editor = await openEditor({
    capabilities: { fs: { readTextFile: true } },
    steps: [
      {
        calls: [
          { name: "read_file", input: { file_path: join(cwd, "a.txt") } },
          { name: "read_file", input: { file_path: join(cwd, "b.txt") } },
        ],
      },
      (request) => {
        told.push(JSON.stringify(request.input.filter(({ type }) => type === "result")));
        return { text: "read" };
      },
    ],
  });
  editor.unsaved.set(join(cwd, "a.txt"), "typed\nnot saved\n");
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  await editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt("read") });
  expect(told[0]).toContain("not saved");
  expect(told[0]).toContain("on disk");
});

test("the editor's MCP servers are there, slash commands answer, files come with the prompt", async () => {
  const cwd = tempFolder("work");
  const state = tempFolder("state");
  const asked: string[] = [];
  const editor = await openEditor({
    state,
    steps: [
      (request) => {
        asked.push(JSON.stringify(request.tools.map(({ name }) => name)), JSON.stringify(request.input));
        return { text: "seen" };
      },
    ],
  });
  const { sessionId } = await editor.agent.request(methods.agent.session.new, {
    cwd,
    mcpServers: [
      {
        name: "memory",
        command: process.execPath,
        args: [resolve("node_modules/@modelcontextprotocol/server-memory/dist/index.js")],
        env: [{ name: "MEMORY_FILE_PATH", value: join(cwd, "memory.jsonl") }],
      },
    ],
  });
  await editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: prompt("/status") });
  expect(said(editor.updates)).toContain("scripted");
  const uri = `file://${join(cwd, "x.ts")}`;
  await editor.agent.request(methods.agent.session.prompt, {
    sessionId,
    prompt: [...prompt("look at"), { type: "resource", resource: { uri, text: "const x = 1;" } }],
  });
  expect(asked[0], JSON.stringify(of(editor.updates, "notice"))).toContain("create_entities");
  expect(asked[1]).toContain("const x = 1;");
  mkdirSync(join(cwd, "empty"));
  await expect(
    editor.agent.request(methods.agent.session.load, { sessionId: "none", cwd, mcpServers: [] }),
  ).rejects.toThrow(/none/);
});

test("the model is chosen in the editor; a session is copied, and resumed without being told again", async () => {
  const cwd = tempFolder("work");
  const state = tempFolder("state");
  const models: string[] = [];
  const step: ScriptedStep = (request) => {
    models.push(request.model);
    return { text: `answer ${models.length}` };
  };
  const editor = await openEditor({ state, steps: [step, step, step, step] });
  const opened = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const { sessionId } = opened;
  expect(opened.configOptions).toMatchObject([{ id: "model", category: "model", currentValue: "scripted" }]);
  await send(editor, sessionId, "hello");
  await editor.agent.request(methods.agent.session.setMode, { sessionId, modeId: "plan" });
  const chosen = await editor.agent.request(methods.agent.session.setConfigOption, {
    sessionId,
    configId: "model",
    value: "other",
  });
  expect(chosen.configOptions).toMatchObject([{ id: "model", currentValue: "other" }]);
  await send(editor, sessionId, "again");
  expect(models).toEqual(["scripted", "other"]);
  await expect(
    editor.agent.request(methods.agent.session.setConfigOption, { sessionId, configId: "colour", value: "red" }),
  ).rejects.toThrow(/colour/);

  const copy = await editor.agent.request<{ sessionId: string }>("session/fork", { sessionId, cwd, mcpServers: [] });
  expect(copy.sessionId).not.toBe(sessionId);
  await send(editor, copy.sessionId, "in the copy");
  const { sessions } = await editor.agent.request(methods.agent.session.list, { cwd });
  expect(sessions).toHaveLength(2);

  await editor.agent.request(methods.agent.session.close, { sessionId });
  const next = await openEditor({ state, steps: [(request) => ({ text: JSON.stringify(request.input) })] });
  await next.agent.request(methods.agent.session.resume, { sessionId, cwd, mcpServers: [] });
  expect(of(next.updates, "user_message_chunk")).toEqual([]);
  await send(next, sessionId, "and now");
  expect(said(next.updates)).toContain("hello");
  expect(said(next.updates)).not.toContain("in the copy");
});

/** A folder of settings with a tool that asks its person for how many. */
function withBooking(): string {
  const state = tempFolder("state");
  mkdirSync(join(state, "tools", "desk"), { recursive: true });
  writeFileSync(
    join(state, "tools", "desk", "book.mjs"),
    `export default {
      name: "book",
      description: "Books a table.",
      inputSchema: { type: "object" },
      async handler(_input, ctx) {
        const fields = { type: "object", properties: { seats: { type: "integer" } }, required: ["seats"] };
        const { table } = await ctx.ask({ table: { kind: "form", message: "For how many?", fields } });
        return "booked for " + table.content.seats;
      },
    };`,
  );
  return state;
}

test("a turn that is cancelled waits for nobody, also while a form is open", async () => {
  const editor = await openEditor({
    state: withBooking(),
    capabilities: { elicitation: { form: {} } },
    steps: [{ calls: [{ name: "internal_desk_book" }] }, { text: "never said" }],
  });
  const { sessionId } = await editor.agent.request(methods.agent.session.new, {
    cwd: tempFolder("work"),
    mcpServers: [],
  });
  const asked = new Promise<void>((open) => {
    editor.fillIn = () => {
      open();
      return new Promise(() => undefined);
    };
  });
  const ended = send(editor, sessionId, "book a table");
  await asked;
  await editor.agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await ended).toBe("cancelled");
});

test("a tool's form is filled in by the editor's person, and its MCP servers may be addresses", async () => {
  const cwd = tempFolder("work");
  const state = withBooking();
  const look = defineTool({
    name: "look",
    description: "Looks.",
    input: { type: "object" },
    run: () => "seen far away",
  });
  const engine = createEngine({ tools: [look], workspace: cwd });
  const handle = toNodeHandler(createMcpHandler(() => createMcpServer({ engine, version: "0" })));
  const http = createServer(
    (request, response) =>
      void handle(Object.assign(request, { method: request.method ?? "GET", url: request.url ?? "/" }), response),
  );
  await new Promise<void>((ready) => http.listen(0, "127.0.0.1", ready));
  cleanups.push(
    () => engine.close(),
    () => http.close(),
  );
  const { port } = http.address() as AddressInfo; // a TCP server has one
  const editor = await openEditor({
    state,
    capabilities: { elicitation: { form: {} } },
    steps: [
      { calls: [{ name: "internal_desk_book" }, { name: "far__look" }] },
      (request) => ({ text: JSON.stringify(request.input.slice(-2)) }),
    ],
  });
  const { sessionId } = await editor.agent.request(methods.agent.session.new, {
    cwd,
    mcpServers: [{ type: "http", name: "far", url: `http://127.0.0.1:${port}/mcp`, headers: [] }],
  });
  await send(editor, sessionId, "book a table");
  expect(said(editor.updates), JSON.stringify(of(editor.updates, "notice"))).toContain("booked for 4");
  expect(said(editor.updates)).toContain("seen far away");
});

test("a form that the editor's MCP server shows is filled in by the editor's person", async () => {
  const cwd = tempFolder("work");
  const server = join(tempFolder("server"), "server.cjs");
  writeFileSync(
    server,
    `const { createInterface } = require("node:readline");
    const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
    let call;
    createInterface({ input: process.stdin }).on("line", (line) => {
      const { id, method, params, result } = JSON.parse(line);
      const requestedSchema = { type: "object", properties: { seats: { type: "integer" } }, required: ["seats"] };
      if (method === "initialize")
        send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } } });
      else if (method === "tools/list")
        send({ id, result: { tools: [{ name: "reserve", description: "Reserves.", inputSchema: { type: "object" } }] } });
      else if (method === "tools/call") {
        call = id;
        send({ id: "form", method: "elicitation/create", params: { mode: "form", message: "For how many?", requestedSchema } });
      } else if (id === "form")
        send({ id: call, result: { content: [{ type: "text", text: "reserved " + JSON.stringify(result) }] } });
      else if (id !== undefined) send({ id, result: {} });
    });`,
  );
  const editor = await openEditor({
    capabilities: { elicitation: { form: {} } },
    steps: [{ calls: [{ name: "mcp__hall__reserve" }] }, (request) => ({ text: JSON.stringify(request.input.at(-1)) })],
  });
  const { sessionId } = await editor.agent.request(methods.agent.session.new, {
    cwd,
    mcpServers: [{ name: "hall", command: process.execPath, args: [server], env: [] }],
  });
  await send(editor, sessionId, "reserve a hall");
  expect(said(editor.updates), JSON.stringify(of(editor.updates, "notice"))).toMatch(/reserved .*seats.*4/);
});

test("an image is shown; a call that waits when the agent is killed did not run, is asked about anew, and runs once", async () => {
  const cwd = tempFolder("work");
  const state = tempFolder("state");
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
  mkdirSync(join(state, "tools", "desk"), { recursive: true });
  const tool = (name: string, body: string) =>
    writeFileSync(
      join(state, "tools", "desk", `${name}.mjs`),
      `import { appendFileSync } from "node:fs";
      export default { name: "${name}", description: "${name}", inputSchema: { type: "object" }, mutates: ${name === "publish"}, handler() { ${body} } };`,
    );
  tool("picture", `return { content: [{ type: "image", data: "${pixel}", mimeType: "image/png" }] };`);
  tool("publish", `appendFileSync(${JSON.stringify(join(cwd, "published"))}, "once\\n"); return "published";`);
  const flags = ["--approval", "unless-trusted"];
  const first = await openEditor({
    state,
    flags,
    steps: [{ calls: [{ name: "internal_desk_picture" }] }, { calls: [{ name: "internal_desk_publish" }] }],
  });
  const { sessionId } = await first.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const asked = new Promise<void>((resolve) => {
    first.choose = async ({ toolCall }) => {
      if (!toolCall.title?.includes("publish")) return "once";
      resolve();
      return new Promise<string>(() => undefined);
    };
  });
  void send(first, sessionId, "publish it").catch(() => "killed");
  await asked;
  expect(JSON.stringify(of(first.updates, "tool_call_update"))).toContain(pixel);
  const ended = new Promise((resolve) => first.child.once("exit", resolve));
  first.child.kill("SIGKILL");
  await ended;
  const second = await openEditor({
    state,
    flags,
    steps: [
      (request) => {
        const told = JSON.stringify(request.input);
        return told.includes("It did not run") ? { calls: [{ name: "internal_desk_publish" }] } : { text: told };
      },
      { text: "It is out." },
    ],
  });
  await second.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  await send(second, sessionId, "go on");
  expect(said(second.updates)).toContain("It is out.");
  expect(second.permissions).toHaveLength(1);
  expect(readFileSync(join(cwd, "published"), "utf8")).toBe("once\n");
});
