/** Requests as released clients send them: read and written again they are the same request. */
import { describe, expect, test } from "vitest";
import { isObject, type JsonObject } from "../../src/base/json.ts";
import { codecs, type EncodeOptions, type WireName } from "../../src/wire/index.ts";

/**
 * In the form we write ourselves where a wire allows several: tools sorted by name, those of the provider's own in
 * their place, no `$schema`, no `status` that says nothing, one text as a string, cache marks at the three places that
 * pay.
 */
type Client = readonly [client: string, body: JsonObject, options?: EncodeOptions];

const path: JsonObject = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const strictPath: JsonObject = { ...path, additionalProperties: false };
const png = "iVBORw0KGgo=";

const chat: readonly Client[] = [
  [
    "opencode",
    {
      model: "qwen3",
      max_tokens: 32_000,
      temperature: 0.55,
      top_p: 1,
      messages: [
        { role: "system", content: "You are opencode." },
        {
          role: "user",
          content: [
            { type: "text", text: "look" },
            { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
          ],
        },
        {
          role: "assistant",
          content: "I look.",
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } },
            { id: "call_2", type: "function", function: { name: "read", arguments: '{"path":"b"}' } },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: "A" },
        { role: "tool", tool_call_id: "call_2", content: "B" },
        { role: "assistant", content: "Done." },
        { role: "user", content: "more" },
      ],
      tools: [{ type: "function", function: { name: "read", description: "Reads.", parameters: strictPath } }],
      tool_choice: "auto",
      stream: true,
      stream_options: { include_usage: true },
    },
  ],
  [
    "AI SDK, openai.chat",
    {
      model: "gpt-5.5",
      messages: [
        { role: "system", content: "S" },
        { role: "user", content: "go" },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "call_1", type: "function", function: { name: "read", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "call_1", content: "A" },
      ],
      tools: [{ type: "function", function: { name: "read", description: "", parameters: strictPath, strict: false } }],
      tool_choice: { type: "function", function: { name: "read" } },
      parallel_tool_calls: false,
      reasoning_effort: "low",
      max_completion_tokens: 99,
      response_format: { type: "json_schema", json_schema: { name: "answer", schema: strictPath, strict: true } },
      prompt_cache_key: "k",
      verbosity: "low",
      store: false,
      service_tier: "flex",
      metadata: { a: "b" },
      stream: true,
      stream_options: { include_usage: true },
    },
    { quirks: { maxTokensField: "max_completion_tokens" } },
  ],
  [
    "a provider's own tool and JSON mode",
    {
      model: "kimi",
      messages: [{ role: "user", content: "go" }],
      tools: [
        { type: "function", function: { name: "read", description: "Reads.", parameters: path } },
        { type: "web_search", search_context_size: "low" },
      ],
      response_format: { type: "json_object" },
      stream: false,
    },
  ],
  [
    "DeepSeek thinking, with its thoughts sent back",
    {
      model: "deepseek",
      messages: [
        { role: "user", content: "go" },
        {
          role: "assistant",
          content: null,
          reasoning_content: "hm",
          tool_calls: [{ id: "c", type: "function", function: { name: "read", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c", content: "A" },
      ],
      stream: false,
    },
    { quirks: { echoReasoning: "reasoning_content" } },
  ],
];

const responses: readonly Client[] = [
  [
    "codex, unknown model",
    {
      model: "glm",
      input: [
        {
          type: "message",
          role: "developer",
          content: [
            { type: "input_text", text: "Be brief." },
            { type: "input_text", text: "Really." },
          ],
        },
        {
          type: "message",
          role: "user",
          content: [{ type: "input_text", text: "<environment_context>x</environment_context>" }],
        },
        {
          type: "message",
          role: "user",
          content: [
            { type: "input_text", text: "go" },
            { type: "input_image", image_url: `data:image/png;base64,${png}`, detail: "high" },
          ],
        },
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "E" },
        { type: "function_call", call_id: "call_1", name: "exec_command", arguments: '{"cmd":"ls"}' },
        { type: "function_call", call_id: "call_2", name: "read_thing", namespace: "mcp__docs", arguments: "{}" },
        { type: "function_call_output", call_id: "call_1", output: "a.txt" },
        {
          type: "function_call_output",
          call_id: "call_2",
          output: [
            { type: "input_text", text: "Wall time: 1 s\nOutput:" },
            { type: "input_image", image_url: `data:image/png;base64,${png}`, detail: "high" },
          ],
        },
        {
          type: "message",
          role: "assistant",
          content: [{ type: "output_text", text: "Done.", annotations: [] }],
          phase: "final_answer",
        },
      ],
      tools: [
        { type: "web_search", external_web_access: false },
        { type: "function", name: "exec_command", description: "Runs.", parameters: strictPath, strict: false },
        {
          type: "namespace",
          name: "mcp__docs",
          description: "Docs.",
          tools: [
            { type: "function", name: "read_thing", description: "Reads.", parameters: strictPath, strict: false },
          ],
        },
      ],
      tool_choice: "auto",
      parallel_tool_calls: true,
      reasoning: { effort: "medium", summary: "auto" },
      store: false,
      stream: true,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "thread",
      client_metadata: { "x-codex-installation-id": "i" },
    },
  ],
  [
    "codex with freeform patch, tool search and a packed history",
    {
      model: "gpt-5.5",
      input: [
        { type: "compaction", encrypted_content: "C" },
        { type: "message", role: "user", content: [{ type: "input_text", text: "go" }] },
        {
          type: "custom_tool_call",
          call_id: "call_1",
          name: "apply_patch",
          input: "*** Begin Patch\n*** End Patch",
        },
        { type: "custom_tool_call_output", call_id: "call_1", output: "ok" },
        {
          type: "tool_search_call",
          call_id: "call_2",
          execution: "client",
          arguments: { query: "mail" },
        },
        {
          type: "tool_search_output",
          call_id: "call_2",
          execution: "client",
          status: "completed",
          tools: [
            { type: "tool_search", execution: "client", description: "Finds.", parameters: path },
            {
              type: "namespace",
              name: "mcp__mail",
              description: "Mail.",
              tools: [{ type: "function", name: "send", description: "Sends.", parameters: path }],
            },
          ],
        },
        {
          type: "local_shell_call",
          call_id: "call_3",
          status: "completed",
          action: { type: "exec", command: ["ls"], env: {} },
        },
        { type: "local_shell_call_output", id: "call_3", output: "a" },
        { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "x" } },
        {
          type: "computer_call",
          id: "cu_1",
          call_id: "call_4",
          action: { type: "screenshot" },
          pending_safety_checks: [],
          status: "completed",
        },
        {
          type: "computer_call_output",
          call_id: "call_4",
          output: { type: "computer_screenshot", image_url: `data:image/png;base64,${png}` },
        },
      ],
      tools: [
        {
          type: "custom",
          name: "apply_patch",
          description: "Patches.",
          format: { type: "grammar", syntax: "lark", definition: "start: /x/" },
        },
      ],
      tool_choice: "auto",
      parallel_tool_calls: true,
      store: false,
      stream: true,
      include: ["reasoning.encrypted_content"],
    },
  ],
  [
    "codex, the newest dialect",
    {
      model: "gpt-5.6-sol",
      input: [
        {
          type: "additional_tools",
          role: "developer",
          tools: [
            {
              type: "namespace",
              name: "functions",
              description: "",
              tools: [
                {
                  type: "custom",
                  name: "exec",
                  description: "JS.",
                  format: { type: "grammar", syntax: "lark", definition: "start: /x/" },
                },
              ],
            },
          ],
        },
        { type: "message", role: "user", content: [{ type: "input_text", text: "go" }] },
        {
          type: "custom_tool_call",
          call_id: "call_1",
          name: "exec",
          namespace: "functions",
          input: "1",
        },
        { type: "custom_tool_call_output", call_id: "call_1", output: "1" },
      ],
      parallel_tool_calls: false,
      reasoning: { effort: "medium", context: "all_turns" },
      store: false,
      stream: true,
      include: ["reasoning.encrypted_content"],
      text: { verbosity: "low" },
    },
  ],
  [
    "AI SDK, stored items and an output schema",
    {
      model: "gpt-5.5",
      input: [
        { type: "message", role: "developer", content: [{ type: "input_text", text: "S" }] },
        { type: "message", role: "user", content: [{ type: "input_text", text: "go" }] },
        { type: "item_reference", id: "msg_1" },
        { type: "function_call_output", call_id: "call_9", output: "A" },
      ],
      previous_response_id: "resp_0",
      text: { format: { type: "json_schema", name: "answer", schema: strictPath, strict: true } },
      max_output_tokens: 99,
      temperature: 0.2,
      top_p: 0.9,
      store: true,
      stream: true,
      truncation: "auto",
      include: ["reasoning.encrypted_content"],
      metadata: { a: "b" },
    },
  ],
];

const messages: readonly Client[] = [
  [
    "Claude Code",
    {
      model: "claude-x",
      max_tokens: 32_000,
      system: [
        { type: "text", text: "x-anthropic-billing-header: cc_version=2;" },
        { type: "text", text: "You are Claude Code.", cache_control: { type: "ephemeral" } },
      ],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "<system-reminder>x</system-reminder>" },
            { type: "text", text: "go" },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "S1" },
            { type: "text", text: "I look." },
            { type: "tool_use", id: "toolu_1", name: "Bash", input: { command: "ls" } },
            { type: "tool_use", id: "toolu_2", name: "Read", input: { file_path: "a.png" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "toolu_1", content: "no such file", is_error: true },
            {
              type: "tool_result",
              tool_use_id: "toolu_2",
              content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: png } }],
            },
            { type: "text", text: "go on" },
          ],
        },
        { role: "system", content: [{ type: "text", text: "env" }] },
        { role: "user", content: [{ type: "text", text: "and", cache_control: { type: "ephemeral" } }] },
      ],
      tools: [
        {
          name: "Bash",
          description: "Runs.",
          input_schema: { ...strictPath },
          eager_input_streaming: true,
        },
        { name: "Read", description: "Reads.", input_schema: strictPath },
        { type: "web_search_20250305", name: "web_search", max_uses: 8, cache_control: { type: "ephemeral" } },
      ],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
      thinking: { type: "adaptive" },
      output_config: { effort: "high" },
      metadata: { user_id: "u" },
      context_management: { edits: [] },
      stream: true,
    },
    { quirks: { laterSystem: true } },
  ],
  [
    "AI SDK with the provider's own tools",
    {
      model: "claude-x",
      max_tokens: 4096,
      temperature: 0.5,
      stop_sequences: ["END"],
      messages: [
        {
          role: "user",
          content: [
            { type: "document", source: { type: "base64", media_type: "application/pdf", data: png }, title: "t" },
            { type: "text", text: "go" },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "redacted_thinking", data: "R" },
            { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
            { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
            {
              type: "text",
              text: "Found.",
              citations: [
                { type: "web_search_result_location", url: "u", title: "t", cited_text: "c", encrypted_index: "e" },
              ],
            },
          ],
        },
        { role: "user", content: [{ type: "text", text: "more" }] },
      ],
      thinking: { type: "enabled", budget_tokens: 2000 },
      stream: true,
    },
  ],
];

const gemini: readonly Client[] = [
  [
    "gemini-cli",
    {
      systemInstruction: { parts: [{ text: "You are Gemini CLI." }] },
      contents: [
        { role: "user", parts: [{ text: "context" }, { text: "go" }] },
        {
          role: "model",
          parts: [
            { text: "hm", thought: true, thoughtSignature: "T" },
            { text: "I look." },
            { toolCall: { toolType: "GOOGLE_SEARCH_WEB", id: "t1", args: {} } },
            { hologram: { x: 1 } },
            { functionCall: { id: "fc1", name: "read_file", args: { path: "a" } }, thoughtSignature: "S" },
            { functionCall: { id: "fc2", name: "read_file", args: { path: "b" } } },
          ],
        },
        {
          role: "user",
          parts: [
            { functionResponse: { id: "fc1", name: "read_file", response: { output: "A" } } },
            { functionResponse: { id: "fc2", name: "read_file", response: { error: "no" } } },
          ],
        },
        { role: "model", parts: [{ text: "Done.", thoughtSignature: "S2" }] },
        { role: "user", parts: [{ text: "more" }, { inlineData: { mimeType: "image/png", data: png } }] },
      ],
      tools: [
        { functionDeclarations: [{ name: "read_file", description: "Reads.", parametersJsonSchema: path }] },
        { googleSearch: {} },
      ],
      toolConfig: { functionCallingConfig: { mode: "AUTO" } },
      generationConfig: {
        temperature: 1,
        topP: 0.95,
        topK: 64,
        maxOutputTokens: 99,
        thinkingConfig: { includeThoughts: true, thinkingBudget: 8192 },
      },
      safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }],
      labels: { a: "b" },
    },
    { target: "openai" },
  ],
];

const clients: Readonly<Record<WireName, readonly Client[]>> = { chat, responses, messages, gemini };
const all = Object.values(codecs).flatMap((codec) =>
  clients[codec.name].map(([client, body, options]) => ({ client, codec, body, options })),
);

describe("a request goes through us unchanged", () => {
  test.each(all)("$client over $codec.name", ({ codec, body, options }) => {
    const request = codec.decodeRequest(body);
    const { body: written, dropped } = codec.encodeRequest(request, options);
    expect(dropped).toEqual([]);
    expect(sorted(written)).toEqual(sorted(body));
  });

  /** Tools go out in the order of their names, whatever order a client has them in. */
  function sorted(one: JsonObject): JsonObject {
    const key = (tool: unknown) => (isObject(tool) ? String(tool["name"] ?? tool["type"]) : "");
    const tools = one["tools"];
    return Array.isArray(tools) ? { ...one, tools: tools.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)) } : one;
  }
});
