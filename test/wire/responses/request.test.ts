import { describe, expect, test } from "vitest";
import { text } from "../../../src/base/content.ts";
import type { Item, ModelRequest, ToolSpec } from "../../../src/spec/model.ts";
import { responses } from "../../../src/wire/responses/index.ts";
import { call, fn, result, user } from "../items.ts";

const ask = (input: readonly Item[], more: Partial<ModelRequest> = {}) =>
  responses.encodeRequest({ model: "m", tools: [], input, ...more });
const sent = (input: readonly Item[]) => ask(input).body["input"];

describe("the request a Responses server gets", () => {
  test("asks for nothing to be stored, and for the reasoning back", () => {
    expect(ask([user("hi")], { cacheKey: "k", stream: true, instructions: "be brief", parallel: true }).body).toEqual({
      model: "m",
      instructions: "be brief",
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] }],
      prompt_cache_key: "k",
      store: false,
      include: ["reasoning.encrypted_content"],
      stream: true,
    });
  });

  test("keeps every kind of tool, sorted, namespaces apart", () => {
    const tools: readonly ToolSpec[] = [
      { kind: "native", type: "web_search", name: "web_search" },
      { kind: "native", type: "local_shell", name: "local_shell" },
      fn("view_image"),
      {
        kind: "custom",
        name: "apply_patch",
        description: "p",
        format: { type: "grammar", syntax: "lark", definition: "start: A" },
      },
      {
        kind: "namespace",
        name: "mcp__docs",
        description: "n",
        tools: [fn("ask"), { kind: "custom", name: "raw", description: "r" }],
      },
    ];
    const { body, names, dropped } = ask([], { tools, toolChoice: "auto" });
    expect(dropped).toEqual([]);
    expect(body["tools"]).toEqual([
      {
        type: "custom",
        name: "apply_patch",
        description: "p",
        format: { type: "grammar", syntax: "lark", definition: "start: A" },
      },
      { type: "local_shell" },
      {
        type: "namespace",
        name: "mcp__docs",
        description: "n",
        tools: [
          {
            type: "function",
            name: "ask",
            description: "d",
            parameters: { type: "object", properties: {} },
            strict: false,
          },
          { type: "custom", name: "raw", description: "r" },
        ],
      },
      {
        type: "function",
        name: "view_image",
        description: "d",
        parameters: { type: "object", properties: {} },
        strict: false,
      },
      { type: "web_search" },
    ]);
    expect(names.get("mcp__docs.ask")).toEqual({ name: "ask", namespace: "mcp__docs", kind: "function" });
  });

  test("spells names it cannot take, and the answer's calls come back under their own", () => {
    const { body, names } = ask([call("call_1", { name: "docs/ask" }), result("call_1")], { tools: [fn("docs/ask")] });
    expect(body["tools"]).toMatchObject([{ name: "mcp__docs__ask" }]);
    expect(body["input"]).toMatchObject([{ name: "mcp__docs__ask" }, {}]);
    const answer = responses.decodeAnswer(
      {
        status: "completed",
        output: [{ type: "function_call", call_id: "c", name: "mcp__docs__ask", arguments: "{}" }],
      },
      { names },
    );
    expect(answer.items).toMatchObject([{ name: "docs/ask" }]);
  });

  test("leaves out a tool of another API by name, and no other", () => {
    const { body, dropped } = ask([], {
      tools: [fn("a"), { kind: "native", type: "bash_20250124", name: "bash", wire: "messages" }],
    });
    expect(body["tools"]).toHaveLength(1);
    expect(dropped).toMatchObject([{ name: "bash" }]);
  });

  test("answers calls that nobody answered, drops answers that nobody asked for", () => {
    const items = [result("x"), call("a"), call("b"), result("b"), result("b"), user("go on")];
    expect(sent(items)).toMatchObject([
      { type: "function_call", call_id: "a" },
      { type: "function_call_output", call_id: "a", output: expect.stringContaining("aborted") },
      { type: "function_call", call_id: "b" },
      { type: "function_call_output", call_id: "b", output: "ok" },
      { type: "message" },
    ]);
  });

  test("tells ids apart that come back in a later turn", () => {
    const ids = (sent([call("0"), result("0"), call("0"), result("0")]) as readonly { call_id: string }[]).map(
      (item) => item.call_id,
    );
    expect(ids).toEqual(["0", "0", "0_2", "0_2"]);
  });

  test("and from those that look like the ones it makes", () => {
    const input = [call("0_2"), result("0_2"), call("0"), result("0"), call("0"), result("0")];
    const ids = (sent(input) as readonly { call_id: string }[]).map((item) => item.call_id);
    expect(ids).toEqual(["0_2", "0_2", "0", "0", "0_2_", "0_2_"]);
  });

  test("keeps outputs whose calls the server itself remembers", () => {
    const extra = { wire: "responses", fields: { previous_response_id: "resp_0" } };
    expect(ask([result("a")], { extra }).body).toMatchObject({
      previous_response_id: "resp_0",
      input: [{ call_id: "a" }],
    });
    expect(
      sent([{ type: "other", wire: "responses", raw: { type: "item_reference", id: "fc_1" } }, result("a")]),
    ).toHaveLength(2);
  });

  test("cuts ids that are too long, the same way each time, and keeps pairs together", () => {
    const long = "x".repeat(100);
    const [asked, answered] = sent([call(long), result(long)]) as readonly { call_id: string }[];
    expect(asked!.call_id.length).toBeLessThanOrEqual(64);
    expect(answered!.call_id).toBe(asked!.call_id);
  });

  test("carries only its own opaque state", () => {
    const foreign: Item = { type: "reasoning", text: "t", opaque: { wire: "messages", kind: "signature", value: "S" } };
    expect(sent([foreign, { type: "reasoning", text: "chat thoughts" }, user("a")])).toHaveLength(1);
  });

  test("gives native results their own form", () => {
    const failed = { content: [text("no")], ok: false };
    const items = [
      call("a", { kind: "shell", name: "shell", arguments: '{"commands":["ls"]}' }),
      result("a", { kind: "shell", ...failed }),
      call("b", { kind: "apply_patch", name: "apply_patch", arguments: '{"type":"delete_file","path":"x"}' }),
      result("b", { kind: "apply_patch", ...failed }),
      call("c", { kind: "tool_search", name: "tool_search", arguments: '{"query":"q"}' }),
      result("c", { kind: "tool_search", structured: { tools: [{ type: "function", name: "g" }] } }),
    ];
    expect(sent(items)).toMatchObject([
      { type: "shell_call", action: { commands: ["ls"] } },
      { type: "shell_call_output", output: [{ stdout: "no", stderr: "", outcome: { type: "exit", exit_code: 1 } }] },
      { type: "apply_patch_call", operation: { type: "delete_file", path: "x" }, status: "completed" },
      { type: "apply_patch_call_output", status: "failed", output: "no" },
      { type: "tool_search_call", arguments: { query: "q" }, execution: "client" },
      { type: "tool_search_output", tools: [{ name: "g" }] },
    ]);
  });
});

describe("the request a Responses client sends", () => {
  test("plain text is one user message", () => {
    expect(responses.decodeRequest({ model: "m", input: "hi" })).toEqual({
      model: "m",
      input: [user("hi")],
      tools: [],
    });
  });

  test("tools that came as items are listed beside the others, and the items stay", () => {
    const exec = {
      type: "namespace",
      name: "functions",
      description: "",
      tools: [{ type: "custom", name: "exec", description: "js" }],
    };
    const found = {
      type: "function",
      name: "ask",
      description: "",
      parameters: { type: "object", properties: {} },
      strict: false,
    };
    const input = [
      { type: "additional_tools", role: "developer", tools: [exec] },
      { type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] },
      { type: "tool_search_call", call_id: "c", execution: "client", arguments: { query: "q" } },
      { type: "tool_search_output", call_id: "c", execution: "client", status: "completed", tools: [found] },
    ];
    const neutral = responses.decodeRequest({ model: "m", input });
    expect(neutral.tools).toEqual([]);
    expect(neutral.loaded).toMatchObject([
      { kind: "namespace", name: "functions", tools: [{ kind: "custom", name: "exec" }] },
      { kind: "function", name: "ask" },
    ]);
    expect(responses.encodeRequest(neutral).body["input"]).toEqual(input);
  });

  test("parts of a result that only this wire knows come back in their place", () => {
    const input = [
      { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
      {
        type: "function_call_output",
        call_id: "c",
        output: [
          { type: "input_text", text: "a" },
          { type: "brand_new", x: 1 },
          { type: "input_text", text: "b" },
        ],
      },
    ];
    const neutral = responses.decodeRequest({ model: "m", input });
    expect(neutral.input[1]).toMatchObject({ content: [text("a"), text("b")] });
    expect(responses.encodeRequest(neutral).body["input"]).toEqual(input);
  });

  test("choices of every kind", () => {
    const choice = (tool_choice: unknown) =>
      responses.decodeRequest({ model: "m", tools: [{ type: "function", name: "f" }], tool_choice });
    expect(choice("required").toolChoice).toBe("required");
    expect(choice({ type: "function", name: "f" }).toolChoice).toEqual({ name: "f", kind: "function" });
    expect(choice({ type: "custom", name: "p" }).toolChoice).toEqual({ name: "p", kind: "custom" });
    expect(choice({ type: "apply_patch" }).toolChoice).toEqual({ name: "apply_patch", kind: "apply_patch" });
    expect(
      choice({ type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "f" }] }).toolChoice,
    ).toEqual({ allowed: ["f"], mode: "required" });
    const own = { type: "mcp", server_label: "docs" };
    expect(responses.encodeRequest(choice(own)).body["tool_choice"]).toEqual(own);
    for (const value of [
      "required",
      { type: "function", name: "f" },
      { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
    ]) {
      expect(responses.encodeRequest(choice(value)).body["tool_choice"]).toEqual(value);
    }
  });

  test("anything at all is read without a throw", () => {
    for (const body of [null, 1, "x", [], {}, { input: 3 }, { input: [null, 1, { type: 5 }] }, { tools: [{}, null] }]) {
      expect(responses.decodeRequest(body).model).toBe("");
    }
  });
});
