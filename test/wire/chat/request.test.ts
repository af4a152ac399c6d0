import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { text, type Part } from "../../../src/base/content.ts";
import type { JsonObject } from "../../../src/base/json.ts";
import type { CallItem, Item, MessageItem, ModelRequest, ResultItem, ToolSpec } from "../../../src/spec/model.ts";
import { chat } from "../../../src/wire/chat/index.ts";
import type { Quirks } from "../../../src/wire/codec.ts";
import { collect } from "../../../src/wire/answer.ts";
import { refusals } from "./strict.ts";

const user: Item = { type: "message", role: "user", content: [text("hi")] };
const call = (id: string, fields: Partial<CallItem> = {}): CallItem => ({
  type: "call",
  kind: "function",
  id,
  name: "look",
  arguments: "{}",
  complete: true,
  ...fields,
});
const result = (callId: string, content: readonly Part[], ok = true): ResultItem => ({
  type: "result",
  kind: "function",
  callId,
  name: "look",
  content,
  ok,
});
const image: Part = { type: "image", mediaType: "image/png", data: "AAAA" };

function messages(
  input: readonly Item[],
  quirks: Quirks = {},
  rest: Partial<ModelRequest> = {},
): readonly JsonObject[] {
  const { body } = chat.encodeRequest({ model: "m", input, tools: [], ...rest }, { quirks });
  return body["messages"] as readonly JsonObject[]; // always a list
}

describe("messages", () => {
  test("images of results stand in one user message after all results of the group", () => {
    const said = messages([user, call("a"), call("b"), result("a", [text("one"), image]), result("b", [text("two")])]);
    expect(said.map((message) => message["role"])).toEqual(["user", "assistant", "tool", "tool", "user"]);
    expect(said[2]).toEqual({ role: "tool", tool_call_id: "a", content: "one" });
    expect(said[4]!["content"]).toMatchObject([
      { type: "text" },
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
    ]);
  });

  test("a failed result says so in its text, once", () => {
    const said = messages([
      call("a"),
      call("b"),
      result("a", [text("no such file")], false),
      result("b", [text("Error: gone")], false),
    ]);
    expect(said.slice(1).map((message) => message["content"])).toEqual(["Error: no such file", "Error: gone"]);
  });

  test("content beside calls is null, or empty where a server refuses null", () => {
    expect(messages([call("a")])[0]).toMatchObject({ content: null });
    expect(messages([call("a")], { emptyContent: true })[0]).toMatchObject({ content: "" });
  });

  test("thoughts go back only where the server wants them, and then an empty one stands for none", () => {
    const input: readonly Item[] = [{ type: "reasoning", text: "hm" }, call("a"), result("a", [text("x")]), call("b")];
    expect(messages(input)[0]).not.toHaveProperty("reasoning_content");
    const said = messages(input, { echoReasoning: "reasoning_content" });
    expect([said[0], said[2]].map((message) => message!["reasoning_content"])).toEqual(["hm", ""]);
  });

  test("ids are made legal for servers that take nine letters and digits, call and result alike", () => {
    const said = messages([call("functions.look:0"), result("functions.look:0", [text("x")])], { idLength: 9 });
    const [made] = said[0]!["tool_calls"] as readonly JsonObject[]; // one call
    expect(made!["id"]).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(said[1]!["tool_call_id"]).toBe(made!["id"]);
  });

  test("ids over 40 characters, which OpenAI refuses, are shortened alike in call and result", () => {
    const long = `ws_${"6".repeat(60)}`;
    const said = messages([call(long), result(long, [text("x")])]);
    const [made] = said[0]!["tool_calls"] as readonly JsonObject[]; // one call
    expect(made!["id"]).toHaveLength(40);
    expect(said[1]!["tool_call_id"]).toBe(made!["id"]);
  });

  test("what a provider keeps on a call goes back inside that call", () => {
    const extra = { wire: "chat", fields: { extra_content: { google: { thought_signature: "U0lH" } } } };
    expect(messages([call("a", { extra })])[0]!["tool_calls"]).toMatchObject([{ id: "a", ...extra.fields }]);
    expect(messages([call("a", { extra: { ...extra, wire: "gemini" } })])[0]!["tool_calls"]).not.toMatchObject([
      extra.fields,
    ]);
  });

  test("arguments that are no object travel under a key of ours and come back", () => {
    const broken = call("a", { arguments: '{"city":"Os', complete: false });
    const { body } = chat.encodeRequest({ model: "m", input: [broken, result("a", [text("x")])], tools: [] });
    expect(refusals(body)).toEqual([]);
    expect(chat.decodeRequest(body).input[0]).toEqual(broken);
  });
});

describe("tools and settings", () => {
  const tool = (name: string): ToolSpec => ({
    kind: "function",
    name,
    description: "",
    parameters: { type: "object" },
  });
  const encode = (fields: Partial<ModelRequest>, quirks: Quirks = {}) =>
    chat.encodeRequest({ model: "m", input: [user], tools: [tool("a"), tool("b")], ...fields }, { quirks }).body;

  test("nothing to call means no tools, no choice and no parallel flag", () => {
    const body = encode({ tools: [], toolChoice: "auto", parallel: true });
    expect(Object.keys(body)).toEqual(["model", "messages"]);
  });

  test("allowed tools are said by the list where a server does not know the form", () => {
    const choice = { allowed: ["b"], mode: "required" } as const;
    const names = (body: JsonObject) =>
      (body["tools"] as readonly { function: { name: string } }[]).map((one) => one.function.name); // functions only
    expect([names(encode({ toolChoice: choice })), encode({ toolChoice: choice })["tool_choice"]]).toEqual([
      ["b"],
      "required",
    ]);
    const native = encode({ toolChoice: choice }, { allowedTools: true });
    expect([names(native).length, native["tool_choice"]]).toEqual([
      2,
      {
        type: "allowed_tools",
        allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "b" } }] },
      },
    ]);
    expect(encode({ toolChoice: "none" }, { noToolChoice: true })).not.toHaveProperty("tools");
  });

  test("usage is asked for in streams, and not where the server refuses the field", () => {
    expect(encode({ stream: true })).toMatchObject({ stream: true, stream_options: { include_usage: true } });
    expect(encode({ stream: true }, { noStreamOptions: true })).not.toHaveProperty("stream_options");
  });

  test("a freeform tool and a namespaced one are called under their wire names and come back as what they are", () => {
    const tools: readonly ToolSpec[] = [
      { kind: "custom", name: "apply_patch", description: "patch" },
      {
        kind: "namespace",
        name: "mcp__srv",
        description: "",
        tools: [{ kind: "function", name: "ask", description: "", parameters: { type: "object" } }],
      },
    ];
    const { names } = chat.encodeRequest({ model: "m", input: [user], tools });
    const decoder = chat.createDecoder({ names });
    const calls = [
      { index: 0, id: "a", function: { name: "apply_patch", arguments: '{"input":"*** Begin Patch"}' } },
      { index: 1, id: "b", function: { name: "mcp__srv__ask", arguments: "{}" } },
    ];
    const chunk = { choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: "tool_calls" }] };
    const answer = collect([...decoder.push({ data: JSON.stringify(chunk) }), ...decoder.end()]);
    expect(answer.items).toEqual([
      call("a", { kind: "custom", name: "apply_patch", arguments: "*** Begin Patch" }),
      call("b", { name: "ask", namespace: "mcp__srv" }),
    ]);
    const sent = chat.encodeRequest({ model: "m", input: answer.items, tools }).body[
      "messages"
    ] as readonly JsonObject[]; // a list
    expect(sent[0]!["tool_calls"]).toMatchObject([{ function: calls[0]!.function }, { function: calls[1]!.function }]);
  });
});

test("whatever the history, no strict server refuses the request", () => {
  const words = fc.string({ unit: "binary", maxLength: 8 });
  const id = fc.constantFrom("a", "b", "c:1", "x".repeat(80));
  const part: fc.Arbitrary<Part> = fc.oneof(
    words.map(text),
    fc.constant(image),
    fc.constant<Part>({ type: "audio", mediaType: "audio/wav", data: "AA" }),
    fc.constant<Part>({ type: "resource", uri: "x:y" }),
  );
  const kind = fc.constantFrom("function", "custom", "local_shell");
  const item: fc.Arbitrary<Item> = fc.oneof(
    fc.record({
      type: fc.constant("call" as const),
      kind,
      id,
      name: fc.oneof(
        fc.constantFrom("look", "srv/look", "…"),
        words.filter((one) => one !== ""),
      ),
      namespace: fc.constantFrom("ns", "mcp__a"),
      arguments: fc.oneof(words, fc.constant("{}")),
      complete: fc.boolean(),
    }) as fc.Arbitrary<CallItem>,
    fc.record({
      type: fc.constant("result" as const),
      kind,
      callId: id,
      content: fc.array(part, { maxLength: 3 }),
      ok: fc.boolean(),
    }) as fc.Arbitrary<ResultItem>,
    fc.record({
      type: fc.constant("message" as const),
      role: fc.constantFrom("user", "assistant", "system", "developer"),
      content: fc.array(part, { maxLength: 2 }),
    }) as fc.Arbitrary<MessageItem>,
    fc.constant<Item>({ type: "reasoning", text: "hm" }),
    fc.constant<Item>({ type: "compaction", text: "before" }),
    fc.constant<Item>({ type: "other", wire: "responses", raw: { type: "x" } }),
  );
  const schema = fc.constantFrom<JsonObject>(
    { anyOf: [{ type: "object" }] },
    { type: "string" },
    {},
    { type: "object", properties: { a: true as never } },
  );
  const tool: fc.Arbitrary<ToolSpec> = fc.record({
    kind: fc.constant("function" as const),
    name: words.filter((one) => one !== ""),
    description: words,
    parameters: schema,
  });
  fc.assert(
    fc.property(fc.array(item, { maxLength: 15 }), fc.array(tool, { maxLength: 4 }), (input, tools) => {
      const { body } = chat.encodeRequest({
        model: "m",
        input,
        tools,
        toolChoice: "auto",
        parallel: true,
        stream: true,
      });
      expect(refusals(JSON.parse(JSON.stringify(body)))).toEqual([]);
    }),
    { numRuns: 300 },
  );
});
