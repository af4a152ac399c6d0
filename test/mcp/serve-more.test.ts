/** What a server of ours offers beside its tools, and tools that ask on their own, over HTTP in both eras of the protocol. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  Client,
  InMemoryTransport,
  StreamableHTTPClientTransport,
  type ClientCapabilities,
} from "@modelcontextprotocol/client";
import { afterEach, expect, test } from "vitest";
import { createEngine, defineTool, type AnyTool } from "../../src/index.ts";
import {
  createElicitingApprover,
  createServedPrompts,
  serveMcp,
  type ServedPrompt,
  type ServedResources,
} from "../../src/mcp/index.ts";
import { pixel, type Era } from "./served.ts";

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

const eras: readonly Era[] = ["legacy", "modern"];
const nothing = { type: "object", properties: {} } as const;
const askName = {
  kind: "form",
  message: "Who are you?",
  fields: { type: "object", properties: { name: { type: "string", minLength: 1 } }, required: ["name"] },
} as const;
const askModel = { kind: "model", prompt: "Say hello", maxTokens: 10 } as const;

const greet = defineTool({
  name: "greet",
  description: "Asks for a name.",
  input: nothing,
  mutates: false,
  async run(_input, { ask }) {
    const { who } = await ask({ who: askName });
    return who.action === "accept" ? `Hello, ${String(who.content["name"])}!` : `You said ${who.action}.`;
  },
});
const everything = defineTool({
  name: "everything",
  description: "Asks for all there is, at once, and then once more.",
  input: nothing,
  mutates: false,
  async run(_input, { ask }) {
    const { who, hello, where } = await ask({ who: askName, hello: askModel, where: { kind: "folders" } });
    const { sure } = await ask({ sure: { kind: "page", message: "Sign here", url: "https://example.invalid/sign" } });
    return [who.content["name"], hello.text, where.folders[0]?.uri, sure.action].join(" ");
  },
});

interface Setup {
  readonly tools?: readonly AnyTool[];
  readonly prompts?: readonly ServedPrompt[];
  readonly resources?: ServedResources;
}

async function start({ tools = [], prompts = [], resources }: Setup) {
  const approver = createElicitingApprover();
  const workspace = mkdtempSync(join(tmpdir(), "callgate-served-"));
  const engine = createEngine({ workspace, tools, approver, approval: "never", sandbox: "full-access" });
  const served = createServedPrompts(prompts);
  const serving = await serveMcp({
    engine,
    approver,
    prompts: served,
    ...(resources ? { resources } : {}),
    port: 0,
    version: "0",
    tell: () => undefined,
  });
  cleanups.push(async () => {
    await serving.close();
    await engine.close();
  });
  return { engine, prompts: served, url: serving.url!, token: serving.token! };
}

interface Answers {
  /** What the person sends, by the form's turn. */
  readonly forms?: (Record<string, string> | "decline")[];
  readonly capabilities?: ClientCapabilities;
}

async function connect(at: { readonly url: string; readonly token: string }, era: Era, answers: Answers = {}) {
  const { forms = [], capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } } = answers;
  const asked: string[] = [];
  const client = new Client(
    { name: "a client of somebody else", version: "1" },
    { capabilities, ...(era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {}) },
  );
  if (capabilities.elicitation)
    client.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push(params.message);
      if (params.mode === "url") return { action: "accept" };
      const content = forms.shift() ?? { name: "Ada" };
      return content === "decline" ? { action: "decline" } : { action: "accept", content };
    });
  if (capabilities.sampling)
    client.setRequestHandler("sampling/createMessage", () => ({
      role: "assistant",
      model: "theirs",
      content: { type: "text", text: "hello" },
    }));
  if (capabilities.roots) client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///work" }] }));
  const headers = { authorization: `Bearer ${at.token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(at.url), { requestInit: { headers } }));
  cleanups.push(() => client.close());
  return { client, asked };
}

const words = (result: { readonly content: readonly unknown[] }) =>
  result.content.map((block) => (block as { text?: string }).text ?? "").join("\n");

test.each(eras)("a tool asks the person behind a %s client, and hears what they said", async (era) => {
  const { client, asked } = await connect(await start({ tools: [greet] }), era, {
    forms: [{ name: "Ada" }, "decline"],
  });
  expect(words(await client.callTool({ name: "greet", arguments: {} }))).toBe("Hello, Ada!");
  expect(words(await client.callTool({ name: "greet", arguments: {} }))).toBe("You said decline.");
  expect(asked).toEqual(["Who are you?", "Who are you?"]);
});

test.each(eras)("a tool asks a %s client's person, model and folders at once, and again", async (era) => {
  const { client } = await connect(await start({ tools: [everything] }), era);
  expect(words(await client.callTool({ name: "everything", arguments: {} }))).toBe("Ada hello file:///work accept");
});

test.each(eras)("an answer that does not fit the form is asked for again by a %s client, not for ever", async (era) => {
  const at = await start({ tools: [greet] });
  const patient = await connect(at, era, { forms: [{ name: "" }, {}, { name: "Ada" }] });
  expect(words(await patient.client.callTool({ name: "greet", arguments: {} }))).toBe("Hello, Ada!");
  expect(patient.asked).toHaveLength(3);
  const stubborn = await connect(at, era, { forms: [{}, {}, {}, {}, {}] });
  expect(await stubborn.client.callTool({ name: "greet", arguments: {} })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("nobody answered") }],
  });
});

test("a client that cannot be asked is told so, each era in its own words", async () => {
  const at = await start({ tools: [greet] });
  const older = await connect(at, "legacy", { capabilities: {} });
  expect(await older.client.callTool({ name: "greet", arguments: {} })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("nobody is here to fill in a form") }],
  });
  const newer = await connect(at, "modern", { capabilities: {} });
  await expect(newer.client.callTool({ name: "greet", arguments: {} })).rejects.toMatchObject({
    code: -32021,
    data: { requiredCapabilities: { elicitation: { form: {} } } },
  });
});

test("outside MCP the same tool ends with the reason, and an approver may answer it", async () => {
  const workspace = mkdtempSync(join(tmpdir(), "callgate-served-"));
  const alone = createEngine({ workspace, tools: [greet], approval: "never", sandbox: "full-access" });
  expect(await alone.call("greet")).toMatchObject({ ok: false, code: "needs_approval" });
  await alone.close();
  const answered = createEngine({
    workspace,
    tools: [greet],
    approval: "never",
    sandbox: "full-access",
    approver: {
      ask: async () => undefined,
      answerer: {
        can: (_callId, kind) => kind === "form",
        answer: async () => ({ who: { action: "accept", content: { name: "Eve" } } }),
      },
    },
  });
  expect(await answered.call("greet")).toMatchObject({ ok: true, content: [{ text: "Hello, Eve!" }] });
  await answered.close();
});

test("an answer nobody was asked for is no answer to another request", async () => {
  const at = await start({ tools: [greet, everything] });
  const post = async (params: object) => {
    const response = await fetch(at.url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${at.token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": (params as { name: string }).name,
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: {
          arguments: {},
          ...params,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { elicitation: {}, sampling: {}, roots: {} },
          },
        },
      }),
    });
    return (await response.json()) as { result?: { requestState?: string; resultType?: string }; error?: object };
  };
  const { result } = await post({ name: "greet" });
  const requestState = result!.requestState!;
  const inputResponses = { who: { action: "accept", content: { name: "Eve" } } };
  expect(await post({ name: "everything", inputResponses, requestState })).toMatchObject({ error: { code: -32602 } });
  expect(await post({ name: "greet", inputResponses, requestState: `${requestState}x` })).toMatchObject({
    error: { code: -32602 },
  });
  expect(await post({ name: "greet", inputResponses, requestState })).toMatchObject({
    result: { content: [{ text: "Hello, Eve!" }] },
  });
  expect(await post({ name: "greet", inputResponses, requestState })).toMatchObject({ error: { code: -32602 } });
});

const briefing: ServedPrompt = {
  name: "briefing",
  description: "A briefing on a topic.",
  arguments: [
    { name: "topic", required: true, complete: ["trees", "trains", "birds"] },
    { name: "style", complete: (value, { topic }) => [`${value} about ${topic}`] },
  ],
  get: ({ topic }) => [
    { role: "user", content: `Tell me about ${topic}.` },
    { role: "user", content: { type: "image", mediaType: "image/png", data: pixel } },
    { role: "assistant", content: { type: "resource", uri: "a://b", text: "known" } },
  ],
};
const nosy: ServedPrompt = {
  name: "nosy",
  description: "Asks first.",
  async get(_values, { ask }) {
    const { who } = await ask({ who: askName });
    return `I am ${String(who.content["name"])}.`;
  },
};

test.each(eras)("a %s client lists, fills in and completes prompts", async (era) => {
  const { client } = await connect(await start({ prompts: [nosy, briefing] }), era);
  const { prompts } = await client.listPrompts();
  expect(prompts).toMatchObject([
    { name: "briefing", arguments: [{ name: "topic", required: true }, { name: "style" }] },
    { name: "nosy" },
  ]);
  expect(await client.getPrompt({ name: "briefing", arguments: { topic: "trees" } })).toMatchObject({
    messages: [
      { role: "user", content: { type: "text", text: "Tell me about trees." } },
      { role: "user", content: { type: "image", data: pixel, mimeType: "image/png" } },
      { role: "assistant", content: { type: "resource", resource: { uri: "a://b", text: "known" } } },
    ],
  });
  expect(await client.getPrompt({ name: "nosy" })).toMatchObject({ messages: [{ content: { text: "I am Ada." } }] });
  await expect(client.getPrompt({ name: "briefing" })).rejects.toThrow("needs the argument topic");
  await expect(client.getPrompt({ name: "missing" })).rejects.toThrow("no prompt missing");
  const ref = { type: "ref/prompt", name: "briefing" } as const;
  const topics = await client.complete({ ref, argument: { name: "topic", value: "tr" } });
  expect(topics.completion).toMatchObject({ values: ["trees", "trains"], total: 2, hasMore: false });
  const styles = await client.complete({
    ref,
    argument: { name: "style", value: "short" },
    context: { arguments: { topic: "birds" } },
  });
  expect(styles.completion.values).toEqual(["short about birds"]);
});

test.each(eras)("a %s client hears that the prompts changed", async (era) => {
  const at = await start({ prompts: [briefing] });
  let changes = 0;
  const client = new Client(
    { name: "a client of somebody else", version: "1" },
    {
      listChanged: { prompts: { onChanged: () => void changes++ } },
      ...(era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {}),
    },
  );
  const headers = { authorization: `Bearer ${at.token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(at.url), { requestInit: { headers } }));
  cleanups.push(() => client.close());
  await client.listPrompts();
  at.prompts.add(nosy);
  await expect.poll(() => changes, { timeout: 5_000 }).toBeGreaterThan(0);
});

test("a client that subscribed to a resource hears that it was written again, until it unsubscribes", async () => {
  const listeners = new Set<(uri: string) => void>();
  const resources: ServedResources = {
    list: async () => [{ uri: "a://1", name: "one", mediaType: "text/plain" }],
    read: async (uri) => ({ mediaType: "text/plain", text: uri }),
    linkTo: () => undefined,
    templates: [{ uriTemplate: "a://{n}", name: "all", mimeType: "text/plain", complete: { n: ["1", "12"] } }],
    onUpdate(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const { client } = await connect(await start({ resources }), "legacy");
  const heard: string[] = [];
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void heard.push(params.uri));
  const write = (uri: string) => listeners.forEach((tell) => tell(uri));
  await client.subscribeResource({ uri: "a://1" });
  write("a://2");
  write("a://1");
  await expect.poll(() => heard, { timeout: 5_000 }).toEqual(["a://1"]);
  await client.unsubscribeResource({ uri: "a://1" });
  write("a://1");
  await client.listResources();
  expect(heard).toEqual(["a://1"]);
  const ref = { type: "ref/resource", uri: "a://{n}" } as const;
  expect((await client.complete({ ref, argument: { name: "n", value: "1" } })).completion.values).toEqual(["1", "12"]);
});

const chatty = defineTool({
  name: "chatty",
  description: "Logs.",
  input: nothing,
  mutates: false,
  run(_input, { log }) {
    log.debug("small");
    log.warn("large", { size: 3 });
    return "said";
  },
});

test("an older client hears a tool's log from the level it set; a newer one where its request asks for it", async () => {
  const at = await start({ tools: [chatty] });
  const older = await connect(at, "legacy");
  const heard: unknown[] = [];
  const listen = ({ params }: { params: { level: string; data?: unknown } }) =>
    void heard.push([params.level, params.data]);
  older.client.setNotificationHandler("notifications/message", listen);
  await older.client.setLoggingLevel("info");
  await older.client.callTool({ name: "chatty", arguments: {} });
  expect(heard.splice(0)).toEqual([["warning", { message: "large", size: 3 }]]);

  const newer = await connect(at, "modern");
  newer.client.setNotificationHandler("notifications/message", listen);
  await newer.client.callTool({ name: "chatty", arguments: {} });
  expect(heard).toEqual([]);
  const _meta = { "io.modelcontextprotocol/logLevel": "debug" };
  await newer.client.callTool({ name: "chatty", arguments: {}, _meta });
  expect(heard).toEqual([
    ["debug", "small"],
    ["warning", { message: "large", size: 3 }],
  ]);
});

test("calls that only look run together; one that changes something runs alone, whoever made it", async () => {
  const running = new Set<string>();
  const seen: string[][] = [];
  const slow = (name: string, mutates: boolean) =>
    defineTool({
      name,
      description: name,
      input: nothing,
      mutates,
      async run(_input, { callId }) {
        running.add(`${name} ${callId}`);
        await new Promise((resolve) => setTimeout(resolve, 60));
        seen.push([...running].map((one) => one.split(" ")[0]!).toSorted());
        running.delete(`${name} ${callId}`);
        return "done";
      },
    });
  const at = await start({ tools: [slow("look", false), slow("change", true)] });
  const one = await connect(at, "legacy");
  const two = await connect(at, "modern");
  const call = ({ client }: typeof one, name: string) => client.callTool({ name, arguments: {} });
  await Promise.all([
    call(one, "look"),
    call(two, "look"),
    call(one, "change"),
    call(two, "change"),
    call(one, "look"),
  ]);
  expect(seen).toHaveLength(5);
  expect(seen.filter((names) => names.includes("change"))).toEqual([["change"], ["change"]]);
  expect(seen).toContainEqual(["look", "look"]);
});

test("nobody waits for a call that waits for its answer", async () => {
  const release: (() => void)[] = [];
  const change = defineTool({
    name: "change",
    description: "Asks twice at once before it changes something.",
    input: nothing,
    mutates: true,
    async run(_input, { ask }) {
      const [one, two] = await Promise.all([ask({ who: askName }), ask({ who: askName })]);
      return [one.who.content["name"], two.who.content["name"]].join(" and ");
    },
  });
  const look = defineTool({ name: "look", description: "Looks.", input: nothing, mutates: false, run: () => "seen" });
  const at = await start({ tools: [change, look] });
  for (const era of eras) {
    const { client } = await connect(at, era);
    client.setRequestHandler("elicitation/create", async () => {
      await new Promise<void>((resolve) => release.push(resolve));
      return { action: "accept", content: { name: "Ada" } };
    });
    const changing = client.callTool({ name: "change", arguments: {} });
    await expect.poll(() => release.length, { timeout: 5_000 }).toBe(1);
    expect(words(await client.callTool({ name: "look", arguments: {} }))).toBe("seen");
    release.pop()!();
    await expect.poll(() => release.length, { timeout: 5_000 }).toBe(1);
    release.pop()!();
    expect(words(await changing)).toBe("Ada and Ada");
  }
});

test.each(eras)("a call that ended while a %s client was still asked leaves its turn to others", async (era) => {
  const hasty = defineTool({ ...greet, name: "hasty", mutates: true, timeoutMs: 150 });
  const other = defineTool({ name: "other", description: "Other.", input: nothing, mutates: true, run: () => "done" });
  const at = await start({ tools: [hasty, other] });
  const { client } = await connect(at, era);
  client.setRequestHandler("elicitation/create", () => new Promise<never>(() => undefined));
  void client.callTool({ name: "hasty", arguments: {} }).catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect(words(await client.callTool({ name: "other", arguments: {} }))).toBe("done");
  expect(words(await client.callTool({ name: "other", arguments: {} }))).toBe("done");
});

test("a client that fails to answer has not answered, and holds nobody up", async () => {
  const at = await start({ tools: [greet] });
  const { client } = await connect(at, "legacy");
  client.setRequestHandler("elicitation/create", () => {
    throw new Error("no window");
  });
  expect(await client.callTool({ name: "greet", arguments: {} })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("nobody answered") }],
  });
});

test("a stream that broke is taken up again with what was sent meanwhile", async () => {
  const slow = defineTool({
    name: "slow",
    description: "Takes a while.",
    input: nothing,
    mutates: false,
    async run() {
      await new Promise((resolve) => setTimeout(resolve, 300));
      return "late";
    },
  });
  const at = await start({ tools: [slow] });
  const headers = (session?: string) => ({
    authorization: `Bearer ${at.token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
    ...(session === undefined ? {} : { "mcp-session-id": session }),
  });
  const post = (body: object, session?: string, signal?: AbortSignal) =>
    fetch(at.url, {
      method: "POST",
      headers: headers(session),
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
      ...(signal ? { signal } : {}),
    });
  const clientInfo = { name: "x", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const opened = await post({ id: 1, method: "initialize", params });
  await opened.text();
  const session = opened.headers.get("mcp-session-id")!;
  const cut = new AbortController();
  const called = await post({ id: 2, method: "tools/call", params: { name: "slow" } }, session, cut.signal);
  const first = new TextDecoder().decode((await called.body!.getReader().read()).value);
  const last = /^id: (.+)$/m.exec(first)![1]!;
  cut.abort();
  // A client waits a second before it asks; here the server may not have seen yet that the line is cut.
  const resume = () => fetch(at.url, { headers: { ...headers(session), "last-event-id": last } });
  let resumed = await resume();
  for (let tries = 0; resumed.status === 409 && tries < 20; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    resumed = await resume();
  }
  let heard = "";
  for await (const chunk of resumed.body!) {
    heard += new TextDecoder().decode(chunk);
    if (heard.includes("late")) break;
  }
  expect(heard).toContain('"id":2');
});

test("headers that repeat an argument are held to it", async () => {
  const regional = defineTool({
    name: "regional",
    description: "Somewhere.",
    input: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } } as const,
    mutates: false,
    run: ({ region }) => `in ${region}`,
  });
  const { client } = await connect(await start({ tools: [regional] }), "modern");
  await client.listTools();
  expect(words(await client.callTool({ name: "regional", arguments: { region: "süd" } }))).toBe("in süd");
});

test("one client is served over a transport of one's own, until it goes", async () => {
  const engine = createEngine({ tools: [greet], approval: "never", sandbox: "full-access" });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const serving = await serveMcp({ engine, transport: ours, version: "0", tell: () => undefined });
  const client = new Client({ name: "beside us", version: "1" });
  await client.connect(theirs);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["greet"]);
  await client.close();
  await serving.closed;
  await engine.close();
});
