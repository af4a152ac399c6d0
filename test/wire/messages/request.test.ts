import { describe, expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import type { Item, ModelRequest, ToolSpec } from "../../../src/spec/model.ts";
import { messages } from "../../../src/wire/messages/index.ts";
import { call, fn, result, said, user } from "../items.ts";

const ask = (input: readonly Item[], more: Partial<ModelRequest> = {}) =>
  messages.encodeRequest({ model: "m", tools: [], input, ...more });
const sent = (input: readonly Item[], more: Partial<ModelRequest> = {}) => ask(input, more).body["messages"];

describe("the request a Messages server gets", () => {
  test("has all results of a turn in one user message, results first, then what the user says", () => {
    expect(
      sent([user("a"), said("b"), call("t1"), call("t2"), result("t2", { ok: false }), result("t1"), user("c")]),
    ).toEqual([
      { role: "user", content: [{ type: "text", text: "a" }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "b" },
          { type: "tool_use", id: "t1", name: "f", input: {} },
          { type: "tool_use", id: "t2", name: "f", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t1", content: "ok" },
          { type: "tool_result", tool_use_id: "t2", content: "ok", is_error: true },
          { type: "text", text: "c" },
        ],
      },
    ]);
  });

  test("never holds an empty text or an empty message", () => {
    expect(sent([user("a"), said(""), call("t"), result("t", { content: [text("")] })])).toEqual([
      { role: "user", content: [{ type: "text", text: "a" }] },
      { role: "assistant", content: [{ type: "tool_use", id: "t", name: "f", input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t" }] },
    ]);
  });

  test("spells ids as the API wants them, pairs together and different ones apart", () => {
    const [, answers] = sent([
      call("functions.f:0"),
      call("functions.f_0"),
      result("functions.f:0"),
      result("functions.f_0"),
    ]) as readonly { content: readonly { tool_use_id: string }[] }[];
    const ids = answers!.content.map((block) => block.tool_use_id);
    expect(ids.every((id) => /^[a-zA-Z0-9_-]+$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(2);
  });

  test("holds arguments that are no object inside one, and gets them out again", () => {
    const input = [call("t", { arguments: '{"cit', complete: false }), result("t")];
    const { body } = ask(input);
    expect(body["messages"]).toMatchObject([{ content: [{ type: "tool_use", input: expect.any(Object) }] }, {}]);
    expect(messages.decodeRequest(body).input[0]).toMatchObject({ arguments: '{"cit', complete: false });
  });

  test("answers calls that nobody answered, drops answers that nobody asked for", () => {
    expect(sent([user("a"), result("x"), call("t"), user("b")])).toMatchObject([
      { role: "user" },
      { role: "assistant", content: [{ type: "tool_use", id: "t" }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "t", is_error: true },
          { type: "text", text: "b" },
        ],
      },
    ]);
  });

  test("carries only thoughts it signed itself", () => {
    const foreign: Item = {
      type: "reasoning",
      summary: ["s"],
      opaque: { wire: "responses", kind: "encrypted_content", value: "E" },
    };
    expect(sent([user("a"), foreign, { type: "reasoning", text: "t" }, said("b")])).toMatchObject([
      {},
      { content: [{ type: "text", text: "b" }] },
    ]);
  });

  test("shows images and documents inside results, and names what it cannot show", () => {
    const content = [
      text("see"),
      { type: "image", mediaType: "image/jpeg", data: "AAAA" },
      { type: "file", mediaType: "application/pdf", name: "a.pdf", data: "BBBB" },
      { type: "file", mediaType: "text/plain", name: "a.txt", data: "aMOp" },
      { type: "file", mediaType: "application/zip", name: "a.zip", data: "CC" },
      { type: "audio", mediaType: "audio/wav", data: "DD" },
    ];
    expect(sent([call("t"), result("t", { content })])).toMatchObject([
      {},
      {
        content: [
          {
            content: [
              { type: "text", text: "see" },
              { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "AAAA" } },
              {
                type: "document",
                title: "a.pdf",
                source: { type: "base64", media_type: "application/pdf", data: "BBBB" },
              },
              { type: "document", title: "a.txt", source: { type: "text", media_type: "text/plain", data: "hé" } },
              { type: "text", text: "[file a.zip]" },
              { type: "text", text: "[audio audio/wav]" },
            ],
          },
        ],
      },
    ]);
  });

  test("marks the last system block, the last tool and the last user block for the cache", () => {
    const { body } = ask([user("a"), said("b"), user("c")], {
      cacheKey: "k",
      instructions: "s",
      tools: [fn("a"), fn("b")],
    });
    const mark = { cache_control: { type: "ephemeral" } };
    expect(body).toMatchObject({
      system: [{ type: "text", text: "s", ...mark }],
      tools: [{ name: "a" }, { name: "b", ...mark }],
      messages: [{}, {}, { content: [{ type: "text", text: "c", ...mark }] }],
      metadata: { user_id: "k" },
    });
    expect(JSON.stringify(body).split("cache_control")).toHaveLength(4);
    expect(messages.decodeRequest(body)).toMatchObject({ cacheKey: "k", instructions: "s" });
  });

  test("has functions for what is freeform, names for what is in a namespace, and its own typed tools", () => {
    const tools: readonly ToolSpec[] = [
      {
        kind: "custom",
        name: "apply_patch",
        description: "p",
        format: { type: "grammar", syntax: "lark", definition: "start: A" },
      },
      { kind: "namespace", name: "mcp__docs", description: "", tools: [fn("ask")] },
      { kind: "native", type: "bash_20250124", name: "bash", wire: "messages" },
      { kind: "native", type: "web_search", name: "web_search", wire: "responses" },
      { kind: "native", type: "file_search", name: "file_search", wire: "responses" },
    ];
    const { body, names, dropped } = ask([], { tools });
    expect(body["tools"]).toMatchObject([
      { name: "apply_patch", input_schema: { required: ["input"] }, description: expect.stringContaining("start: A") },
      { type: "bash_20250124", name: "bash" },
      { name: "mcp__docs__ask" },
      { type: "web_search_20250305", name: "web_search" },
    ]);
    expect(dropped).toMatchObject([{ name: "file_search" }]);
    const answer = messages.decodeAnswer(
      {
        content: [
          { type: "tool_use", id: "a", name: "apply_patch", input: { input: "*** Begin" } },
          { type: "tool_use", id: "b", name: "mcp__docs__ask", input: {} },
        ],
      },
      { names },
    );
    expect(answer.items).toMatchObject([
      { kind: "custom", name: "apply_patch", arguments: "*** Begin", complete: true },
      { kind: "function", name: "ask", namespace: "mcp__docs" },
    ]);
    const encoder = messages.encodeAnswer(answer, { names });
    expect(encoder["content"]).toMatchObject([
      { name: "apply_patch", input: { input: "*** Begin" } },
      { name: "mcp__docs__ask" },
    ]);
  });

  test("lists tools that came as items of another wire", () => {
    expect(ask([], { loaded: [fn("found")] }).body["tools"]).toMatchObject([{ name: "found" }]);
  });

  test("says choices and 'one at a time' in one field, and offers only what is allowed", () => {
    const tools = [fn("a"), fn("b")];
    const choice = (more: Partial<ModelRequest>) => ask([], { tools, ...more }).body["tool_choice"];
    expect(choice({ toolChoice: "required", parallel: false })).toEqual({
      type: "any",
      disable_parallel_tool_use: true,
    });
    expect(choice({ toolChoice: { name: "a" } })).toEqual({ type: "tool", name: "a" });
    expect(choice({ toolChoice: "none", parallel: true })).toEqual({ type: "none" });
    const { body } = ask([], { tools, toolChoice: { allowed: ["b"], mode: "required" } });
    expect(body).toMatchObject({ tools: [{ name: "b" }], tool_choice: { type: "any" } });
  });

  test("puts later instructions where the server takes them", () => {
    const later: Item = { type: "message", role: "developer", content: [text("now this")] };
    expect(ask([user("a"), said("b"), later]).body["messages"]).toMatchObject([
      {},
      {},
      { role: "user", content: [{ text: expect.stringContaining("now this") }] },
    ]);
    const { body } = messages.encodeRequest(
      { model: "m", tools: [], input: [user("a"), later] },
      { quirks: { laterSystem: true } },
    );
    expect(body["messages"]).toMatchObject([
      { role: "user" },
      { role: "system", content: [{ type: "text", text: "now this" }] },
    ]);
  });
});

describe("the request a Messages client sends", () => {
  const read = (content: unknown, more: object = {}) =>
    messages.decodeRequest({ model: "m", messages: [{ role: "user", content }], ...more });

  test("system blocks, a system message inside, cache marks, unknown fields", () => {
    const system = [
      { type: "text", text: "one" },
      { type: "text", text: "two", cache_control: { type: "ephemeral" } },
    ];
    const asked = messages.decodeRequest({
      model: "m",
      max_tokens: 5,
      system,
      messages: [
        { role: "user", content: [{ type: "text", text: "a", cache_control: { type: "ephemeral" } }] },
        { role: "system", content: "env", output_config: { effort: "low" } },
      ],
      context_management: { edits: [] },
      thinking: { type: "adaptive", display: "summarized" },
    });
    expect(asked).toEqual({
      model: "m",
      maxOutputTokens: 5,
      instructions: "one\n\ntwo",
      input: [user("a"), { type: "message", role: "system", content: [text("env")] }],
      tools: [],
      cacheKey: "default",
      extra: {
        wire: "messages",
        fields: { context_management: { edits: [] }, thinking: { type: "adaptive", display: "summarized" }, system },
      },
    });
    expect(messages.encodeRequest(asked).body).toMatchObject({
      thinking: { type: "adaptive", display: "summarized" },
      context_management: { edits: [] },
      system,
    });
    // Once they say something else, they are not the client's any more.
    expect(messages.encodeRequest({ ...asked, instructions: "new" }).body["system"]).toMatchObject([{ text: "new" }]);
  });

  test("results, with what only this wire knows kept in its place", () => {
    const reference = { type: "tool_reference", tool_name: "x" };
    const asked = read([
      { type: "text", text: "after" },
      { type: "tool_result", tool_use_id: "t", is_error: true, content: [{ type: "text", text: "no" }, reference] },
    ]);
    expect(asked.input).toMatchObject([
      { type: "result", callId: "t", ok: false, content: [text("no")] },
      { type: "message", role: "user" },
    ]);
    const { body } = messages.encodeRequest({ ...asked, input: [call("t"), ...asked.input] });
    expect(body["messages"]).toMatchObject([
      {},
      { content: [{ type: "tool_result", is_error: true, content: [{ text: "no" }, reference] }, { text: "after" }] },
    ]);
  });

  test("anything at all is read without a throw", () => {
    for (const body of [
      null,
      1,
      "x",
      [],
      {},
      { messages: 3 },
      { messages: [null, { role: "user" }, { role: "assistant", content: [{ type: 5 }] }] },
      { tools: [{}, null], system: 4 },
    ]) {
      expect(messages.decodeRequest(body).model).toBe("");
    }
  });
});
