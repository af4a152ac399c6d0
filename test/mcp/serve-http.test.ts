/** Our server over HTTP, driven by the SDK's own client in both eras of the protocol. */
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { Client } from "@modelcontextprotocol/client";
import { builtins } from "../../src/tools/index.ts";
import { connectHttp, pixel, serveHere, type ClientSetup, type Era } from "./served.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function start(options: Parameters<typeof serveHere>[0] = {}) {
  const here = await serveHere(options);
  cleanups.push(here.close);
  const { url = "", token = "" } = here.serving;
  return {
    ...here,
    url,
    token,
    async connect(setup: ClientSetup): Promise<Client> {
      const client = await connectHttp(url, token, setup);
      cleanups.push(() => client.close());
      return client;
    },
  };
}

const eras: readonly Era[] = ["legacy", "modern"];

test.each(eras)("a %s client lists the tools and calls one of every kind", async (era) => {
  const { connect } = await start();
  const client = await connect({ era });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["add", "note", "picture", "shout", "steps", "wait"]);
  const described = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
  expect(described["add"]).toMatchObject({
    outputSchema: { type: "object", required: ["sum"] },
    annotations: { readOnlyHint: true },
  });
  expect(described["note"]).toMatchObject({ annotations: { readOnlyHint: false, destructiveHint: true } });

  const added = await client.callTool({ name: "add", arguments: { a: 2, b: 3 } });
  expect(added).toMatchObject({ structuredContent: { sum: 5 } });
  const picture = await client.callTool({ name: "picture", arguments: {} });
  expect(picture.content).toEqual([{ type: "image", data: pixel, mimeType: "image/png" }]);
  const shouted = await client.callTool({ name: "shout", arguments: { input: "hello" } });
  expect(shouted.content).toMatchObject([{ type: "text", text: "HELLO" }]);
  const wrong = await client.callTool({ name: "add", arguments: { a: "two" } });
  expect(wrong).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("add(") }] });
  const unknown = await client.callTool({ name: "subtract", arguments: {} });
  expect(unknown).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("Unknown tool") }] });
});

test.each(eras)("a %s client hears progress", async (era) => {
  const { connect } = await start();
  const client = await connect({ era });
  const heard: unknown[] = [];
  await client.callTool({ name: "steps", arguments: {} }, { onprogress: (progress) => heard.push(progress) });
  expect(heard).toEqual([
    { progress: 1, total: 2, message: "half" },
    { progress: 2, total: 2 },
  ]);
});

test.each(eras)("a %s client's cancellation reaches the handler", async (era) => {
  const { connect, ran } = await start();
  const client = await connect({ era });
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 100);
  await expect(client.callTool({ name: "wait", arguments: {} }, { signal: stop.signal })).rejects.toThrow();
  await expect.poll(() => ran.aborted.length, { timeout: 3_000 }).toBe(1);
});

test.each(eras)("the person behind a %s client is asked, and the call runs once", async (era) => {
  const { connect, ran } = await start();
  const asked: string[] = [];
  const client = await connect({
    era,
    answer: (message) => {
      asked.push(message);
      return { action: "accept", content: { answer: "once" } };
    },
  });
  expect(await client.callTool({ name: "note", arguments: { text: "milk" } })).toMatchObject({
    content: [{ text: "noted" }],
  });
  expect(asked).toEqual([expect.stringContaining("milk")]);
  expect(ran.notes).toEqual(["milk"]);
  await client.callTool({ name: "note", arguments: { text: "eggs" } });
  expect(asked).toHaveLength(2);
});

test.each(eras)("a %s client's no, and its shrug, keep the call from running", async (era) => {
  const { connect, ran } = await start();
  const answers = [
    { action: "accept" as const, content: { answer: "no", reason: "not today" } },
    { action: "cancel" as const },
  ];
  const client = await connect({ era, answer: () => answers.shift()! });
  expect(await client.callTool({ name: "note", arguments: { text: "x" } })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("not today") }],
  });
  expect(await client.callTool({ name: "note", arguments: { text: "y" } })).toMatchObject({ isError: true });
  expect(ran.notes).toEqual([]);
});

test.each(eras)("a %s client that cannot be asked is refused with the reason", async (era) => {
  const { connect, ran } = await start();
  const client = await connect({ era });
  expect(await client.callTool({ name: "note", arguments: { text: "x" } })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("Nobody is here to approve") }],
  });
  expect(ran.notes).toEqual([]);
});

test("two clients are asked each for their own call", async () => {
  const { connect, ran } = await start();
  const answer = (mine: string) => (message: string) =>
    message.includes(mine)
      ? { action: "accept" as const, content: { answer: "once" } }
      : { action: "decline" as const };
  const one = await connect({ era: "legacy", answer: answer("first") });
  const two = await connect({ era: "legacy", answer: answer("second") });
  await Promise.all([
    one.callTool({ name: "note", arguments: { text: "first" } }),
    two.callTool({ name: "note", arguments: { text: "second" } }),
  ]);
  expect(ran.notes.toSorted()).toEqual(["first", "second"]);
});

test("two clients share no power: no yes, no terminal, no file read, no kept output", async () => {
  const { connect, engine } = await start({ more: builtins });
  writeFileSync(join(engine.workspace, "shared.txt"), "one\n");
  const asked: string[] = [];
  const person = (who: string) => (message: string) => {
    asked.push(`${who}: ${/\w+/.exec(message)?.[0]}`);
    return { action: "accept" as const, content: { answer: "session" } };
  };
  const one = await connect({ era: "legacy", answer: person("one") });
  const two = await connect({ era: "legacy", answer: person("two") });
  const say = async (client: Client, name: string, input: Record<string, unknown>) => {
    const { content, isError = false } = await client.callTool({ name, arguments: input });
    return { isError, text: content.map((part) => (part.type === "text" ? part.text : "")).join("") };
  };
  const note = { text: "a note" };
  await say(one, "note", note);
  await say(one, "note", note);
  expect(asked).toHaveLength(1);
  await say(two, "note", note);
  expect(asked.map((line) => line.slice(0, 3))).toEqual(["one", "two"]);

  // What one has read is out of date once the other wrote it, and only for the one.
  const write = (client: Client) => say(client, "internal_file_write", { path: "shared.txt", content: "two\n" });
  await say(one, "read_file", { file_path: "shared.txt" });
  expect((await write(two)).isError).toBe(false);
  expect(await write(one)).toMatchObject({ isError: true, text: expect.stringMatching(/changed/) });
  expect((await write(two)).isError).toBe(false);

  const opened = await say(one, "exec_command", { cmd: "cat", tty: true, yield_time_ms: 250 });
  const session_id = Number(/session (\d+)/.exec(opened.text)?.[1]);
  expect(session_id).toBeGreaterThan(0);
  expect((await say(two, "write_stdin", { session_id, chars: "hello\n" })).isError).toBe(true);
  expect((await say(two, "write_stdin", { session_id: 1, chars: "" })).text).not.toContain(String(session_id));

  const fileOf = ({ text }: { readonly text: string }) => /whole in (\S+?)[\s,;\]]/.exec(text)?.[1] ?? "";
  const first = fileOf(await say(one, "shell_command", { command: "seq 1 60000" }));
  const second = fileOf(await say(two, "shell_command", { command: "seq 2 60001" }));
  expect([first, second].map((file) => readFileSync(file, "utf8").split("\n")[0])).toEqual(["1", "2"]);
  // Its own output each reads unasked; for the other's the person is asked.
  const before = asked.length;
  expect((await say(two, "read_file", { file_path: second, limit: 1 })).isError).toBe(false);
  expect(asked).toHaveLength(before);
  await say(two, "read_file", { file_path: first, limit: 1 });
  expect(asked).toHaveLength(before + 1);
});

test.each(eras)("a %s client is told when the tools change", async (era) => {
  const { connect, engine } = await start();
  let changes = 0;
  const client = await connect({ era, onToolsChanged: () => changes++ });
  await client.listTools();
  engine.registry.replace((tool) => tool.name === "picture", []);
  await expect.poll(() => changes, { timeout: 5_000 }).toBeGreaterThan(0);
  expect((await client.listTools()).tools.map(({ name }) => name)).not.toContain("picture");
});

test("a session nobody uses is closed, and its client is told that it is gone", async () => {
  const { url, token } = await start({ sessions: { idleMs: 50 } });
  const post = (body: object, session?: string) =>
    fetch(url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(session === undefined ? {} : { "mcp-session-id": session }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }),
    });
  const opened = await post({
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } },
  });
  await opened.text();
  const session = opened.headers.get("mcp-session-id")!;
  await expect
    .poll(async () => (await post({ method: "ping" }, session)).status, { timeout: 3_000, interval: 200 })
    .toBe(404);
});

test("no more sessions are kept than the limit: the oldest idle one goes", async () => {
  const { connect } = await start({ sessions: { maxSessions: 2 } });
  for (let n = 0; n < 5; n++) {
    const client = await connect({ era: "legacy" });
    expect((await client.listTools()).tools).toHaveLength(6);
    await client.close();
  }
});

function ask(url: string, headers: Record<string, string>, body = "{}"): Promise<number> {
  return new Promise((resolve, reject) => {
    const { hostname, port, pathname } = new URL(url);
    const sent = request(
      { hostname, port, path: pathname, method: "POST", headers: { "content-type": "application/json", ...headers } },
      (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

test("without the token, from a web page, or under another host name nobody gets in", async () => {
  const { url, token } = await start();
  const authorization = `Bearer ${token}`;
  const initialize = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } },
  });
  const accept = "application/json, text/event-stream";
  expect(await ask(url, {}, initialize)).toBe(401);
  expect(await ask(url, { authorization: "Bearer wrong" }, initialize)).toBe(401);
  expect(await ask(url, { authorization, host: "evil.example" }, initialize)).toBe(403);
  expect(await ask(url, { authorization, origin: "https://evil.example" }, initialize)).toBe(403);
  for (const origin of [
    "null",
    "http://127.0.0.1.evil.invalid",
    "http://localhost:3000.evil.invalid",
    "http://evil.invalid/127.0.0.1",
    "http://localhost:5173",
    "http://127.0.0.1",
  ])
    expect(await ask(url, { authorization, origin }, initialize), origin).toBe(403);
  for (const host of ["127.0.0.1.evil.invalid", "localhost.evil.invalid", "evil.invalid:80"])
    expect(await ask(url, { authorization, host }, initialize), host).toBe(403);
  expect(await ask(url, { authorization, "transfer-encoding": "chunked", "content-length": "4" }, initialize)).toBe(
    400,
  );
  expect(await ask(url.replace("/mcp", "/"), { authorization }, initialize)).toBe(404);
  expect(await ask(url, { authorization, accept }, "{not json")).toBe(400);
  expect(await ask(url, { authorization, accept, "mcp-session-id": "none" }, initialize)).toBe(404);
  expect(await ask(url, { authorization, accept }, initialize)).toBe(200);
});
