/** Five hundred tools: found by keywords, called under their own names, and never in the way of the cache. */
import { afterAll, describe, expect, test } from "vitest";
import { searchForm } from "../../src/cli/offered-tools.ts";
import {
  addToolSearch,
  createEngine,
  createRegistry,
  deferTools,
  defineTool,
  toToolSpecs,
  type JsonObject,
} from "../../src/index.ts";
import { createHttpModel } from "../../src/model/http.ts";
import { createSearch } from "../../src/registry/search.ts";
import { createSession } from "../../src/session/index.ts";
import { createScriptedModel, serveModel, type ScriptedStep } from "../../src/testing/index.ts";
import { codecs, type Codec } from "../../src/wire/index.ts";
import { builtins } from "../../src/tools/index.ts";
import { manyTools, needs } from "./many-tools.ts";

const engine = createEngine({
  tools: [...builtins, ...manyTools],
  workspace: ".",
  approver: {
    async ask({ call }) {
      asked.push(call.tool);
      return { answer: "once" };
    },
  },
});
const asked: string[] = [];
addToolSearch(engine.registry);
afterAll(() => engine.close());

test("there are 500, and with keywords the right one is among the first five at least 95 times of 100", () => {
  expect(manyTools).toHaveLength(500);
  const search = createSearch(manyTools);
  const missed = needs.filter(([query, name]) => !search(query, 5).some((tool) => tool.name === name));
  expect(missed.length / needs.length, JSON.stringify(missed)).toBeLessThanOrEqual(0.05);
});

test("an exact name comes first, in any spelling; nothing found says which services there are", async () => {
  const search = createSearch(manyTools);
  expect(search("mcp__stripe__create_refund", 1)[0]?.name).toBe("stripe/create_refund");
  expect(search("stripe/create_refund", 1)[0]?.name).toBe("stripe/create_refund");
  expect((await engine.call("tool_search", { query: "qqqq" })).text).toContain("stripe (20 tools)");
});

test.each(["chat", "responses", "messages", "gemini"] as const)(
  "on %s the tools of the first request are small, and the same bytes over fifty turns while servers come and go",
  async (wire) => {
    const registry = createRegistry(manyTools);
    const own = createEngine({ registry, workspace: "." });
    addToolSearch(registry);
    const step: ScriptedStep = { calls: [{ name: "call_tool", input: { name: "jira/list_sprint" } }] };
    const steps = Array.from({ length: 50 }, (_, index) => [step, { text: `turn ${index}` }]).flat();
    const model = createScriptedModel(steps);
    const session = createSession({ id: `many-${wire}`, engine: own, model });
    for (let turn = 0; turn < 50; turn++) {
      for await (const _ of session.send("go"));
      if (turn === 20) registry.replace((tool) => tool.origin?.server === "spotify", []);
      if (turn === 30)
        registry.add(
          defineTool({
            name: "late/tool",
            origin: { server: "late", name: "tool" },
            description: "x",
            input: {},
            run: () => "y",
          }),
        );
    }
    const bodies = model.requests.map((request) => codecs[wire].encodeRequest(request).body);
    const lists = new Set(bodies.map((body) => JSON.stringify(body["tools"])));
    expect(lists.size).toBe(1);
    expect(JSON.stringify(bodies[0]).length).toBeLessThanOrEqual(8 * 1024);
    expect(
      session.history.filter((item) => item.type === "result" && item.ok && item.name === "call_tool"),
    ).toHaveLength(50);
    await session.close();
    await own.close();
  },
);

test("a few tools are told of as they are, without a search", async () => {
  const few = createEngine({ tools: manyTools.slice(0, 4), workspace: "." });
  addToolSearch(few.registry);
  const session = createSession({ id: "few", engine: few, model: createScriptedModel([]) });
  expect(session.tools().map(({ name }) => name)).toEqual(
    manyTools
      .slice(0, 4)
      .map(({ name }) => name)
      .toSorted(),
  );
  await session.close();
  await few.close();
});

test("more tools than the API takes are left to the search, however small they are", async () => {
  const few = createEngine({ tools: manyTools.slice(0, 4), workspace: "." });
  addToolSearch(few.registry);
  const list = () => toToolSpecs(few);
  const names = (maxTools: number) => deferTools(list, { maxTools })().map(({ name }) => name);
  expect(names(4)).toHaveLength(4);
  expect(names(3)).toEqual(["call_tool", "tool_search"]);
  await few.close();
});

test("built-ins are never pushed out", async () => {
  const session = createSession({ id: "builtin", engine, model: createScriptedModel([]) });
  const { body, dropped } = codecs.chat.encodeRequest(
    { model: "m", input: [], tools: session.tools() },
    { target: "openai" },
  );
  const text = JSON.stringify(body["tools"]);
  expect(dropped).toEqual([]);
  for (const name of ["shell_command", "read_file", "apply_patch", "tool_search"]) expect(text).toContain(`"${name}"`);
  await session.close();
});

test("call_tool is the tool it names: in the question, the events and the record", async () => {
  const names: (string | undefined)[] = [];
  const stop = engine.on((event) => event.type === "call.ended" && names.push(event.call.tool));
  const ended = await engine.call("call_tool", { name: "mcp__slack__create_message", arguments: '{"id":"1"}' });
  stop();
  expect(ended).toMatchObject({ ok: true, tool: "slack/create_message", input: { id: "1" } });
  expect(names).toEqual(["slack/create_message"]);
  expect(asked).toEqual(["slack/create_message"]);
  const wanted = {
    id: "x",
    name: "call_tool",
    kind: "function",
    arguments: '{"name":"slack/create_message"}',
    askedAt: 0,
  } as const;
  const decided = await engine.decide(wanted);
  expect(decided.request?.call.tool).toBe("slack/create_message");
});

test("call_tool without a name, or with its own, is told what it takes", async () => {
  expect(await engine.call("call_tool", {})).toMatchObject({ ok: false, code: "invalid_input" });
  expect(await engine.call("call_tool", { name: "call_tool", arguments: { name: "x" } })).toMatchObject({
    ok: false,
    code: "invalid_input",
  });
  expect(await engine.call("call_tool", { name: "nowhere/at_all" })).toMatchObject({ ok: false, code: "unknown_tool" });
});

describe.each(["responses", "messages"] as const)("on %s what was found is loaded by the API itself", (wire) => {
  test("called under its own name, over a real server; the beginning of the request stays as it was", async () => {
    const own = createEngine({ tools: manyTools, workspace: ".", approver: { ask: async () => ({ answer: "once" }) } });
    addToolSearch(own.registry);
    const script = createScriptedModel([
      {
        calls: [
          {
            name: "tool_search",
            input: { query: "jira list sprint" },
            kind: wire === "responses" ? "tool_search" : "function",
          },
        ],
      },
      { calls: [{ name: "mcp__jira__list_sprint", input: {} }] },
      { text: "done" },
      { text: "again" },
    ]);
    const server = await serveModel(script);
    const sent: JsonObject[] = [];
    const codec: Codec = {
      ...codecs[wire],
      encodeRequest(request, options) {
        const encoded = codecs[wire].encodeRequest(request, options);
        sent.push(encoded.body);
        return encoded;
      },
    };
    const http = createHttpModel({ codec, model: "m", baseUrl: server.baseUrl });
    const tools = deferTools(() => toToolSpecs(own), { form: "loaded" });
    const session = createSession({ id: `loaded-${wire}`, engine: own, model: http, tools });
    for await (const _ of session.send("go"));
    for await (const _ of session.send("more"));
    expect(session.history.flatMap((item) => (item.type === "result" ? [[item.name, item.ok]] : []))).toEqual([
      ["tool_search", true],
      ["mcp__jira__list_sprint", true],
    ]);
    const lists = sent.map((body) => body["tools"] as readonly JsonObject[]);
    const early = lists.map((list) => JSON.stringify(list.filter((tool) => tool["defer_loading"] !== true)));
    expect(new Set(early).size).toBe(1);
    expect(early[0]).not.toContain("call_tool");
    expect(JSON.stringify(sent[0]).length).toBeLessThan(8 * 1024);
    const second = JSON.stringify(sent[1]);
    if (wire === "responses") {
      expect(lists[0]).toMatchObject([{ type: "tool_search", execution: "client" }]);
      expect(second).toContain('"type":"tool_search_output"');
      expect(second).toMatch(/"tools":\[\{"type":"function","strict":false,"name":"mcp__jira__list_sprint"/);
    } else {
      expect(second).toContain('{"type":"tool_reference","tool_name":"mcp__jira__list_sprint"}');
      const late = lists[1]!.filter((tool) => tool["defer_loading"] === true);
      expect(late.map(({ name }) => name)).toContain("mcp__jira__list_sprint");
      expect(late.every((tool) => !("cache_control" in tool))).toBe(true);
    }
    await session.close();
    http.close();
    await server.close();
    await own.close();
  });
});

test("the command loads what was found only where the provider is known to", () => {
  expect(searchForm("openai", "responses", "gpt-5.4")).toBe("loaded");
  expect(searchForm("anthropic", "messages", "claude-sonnet-4-5-20250929")).toBe("loaded");
  for (const [provider, wire, model] of [
    ["openai", "responses", "gpt-5"],
    ["openai", "chat", "gpt-5.4"],
    ["custom", "responses", "gpt-5.4"],
    ["anthropic", "messages", "claude-3-5-haiku"],
  ] as const)
    expect(searchForm(provider, wire, model)).toBe("call_tool");
});
