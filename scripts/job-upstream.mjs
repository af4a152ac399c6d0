// A model server for one small job, written without Callgate's own codecs: it speaks one wire by hand, refuses what
// strict providers refuse, hands out opaque state with every thought, and looks whether it comes back unchanged.
import { createServer } from "node:http";

const steps = [["cat notes.txt"], ["ls", "false"], ["sed -i s/old/new/ notes.txt"], ["cat notes.txt"]];
const thoughts = steps.length;

/** `wire`: chat, text:hermes, responses, messages or gemini. `seen` tells what the clients' requests held. */
export async function startJobUpstream(wire) {
  const seen = { requests: 0, carried: 0, problems: [] };
  const kind = wire.startsWith("text:") ? "text" : wire;
  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const refuse = (message) => {
        seen.problems.push(message);
        response.writeHead(400, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: { message, type: "invalid_request_error", code: 400 } }));
      };
      try {
        const body = JSON.parse(Buffer.concat(chunks).toString("utf8"));
        const asked = readers[kind](body, request);
        const shell =
          asked.tools.find(({ name }) => shells.test(name)) ??
          asked.tools.find(({ name }) => /(?:^|_|\.)exec$/.test(name));
        seen.requests++;
        if (shell !== undefined) seen.carried = asked.carried;
        const commands = shell === undefined ? undefined : steps[asked.turns];
        const answer = {
          turn: asked.turns,
          thought: shell === undefined ? undefined : `I think of step ${asked.turns}.`,
          text: commands ? `Now step ${asked.turns}.` : shell === undefined ? "A title" : "JOB DONE",
          calls: (commands ?? []).map((command) => toCall(shell, command)),
        };
        const isStream = body.stream === true || (request.url ?? "").includes("streamGenerateContent");
        writers[kind](answer, response, isStream, body.model);
      } catch (error) {
        refuse(error.message);
      }
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return {
    baseUrl: `${url}${wire === "gemini" ? "/v1beta" : "/v1"}`,
    seen,
    thoughts,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

const shells = /^(?:exec_command|shell|shell_command|local_shell|Bash|bash|run_shell_command)$/;

/** The tool's own way to be told a command; in Codex's code mode a command is a line of a program. */
function toCall(tool, command) {
  const program = `const done = await tools.exec_command({ cmd: ${JSON.stringify(command)} }); text(JSON.stringify(done));`;
  if (tool.custom) return { name: tool.name, namespace: tool.namespace, custom: true, input: program };
  const fields = tool.fields ?? {};
  if (/(?:^|_|\.)exec$/.test(tool.name)) return { name: tool.name, input: { input: program } };
  const name = "cmd" in fields ? "cmd" : "command";
  const value = fields[name]?.type === "array" ? ["bash", "-lc", command] : command;
  return {
    name: tool.name,
    namespace: tool.namespace,
    input: { [name]: value, ...("description" in fields ? { description: "a step of the job" } : {}) },
  };
}

function must(condition, message) {
  if (!condition) throw new Error(message);
}
const opaque = (turn) => Buffer.from(`state of step ${turn}, which nobody may change`).toString("base64");
const isOpaque = (value) => steps.some((_, turn) => value === opaque(turn));
const countOpaque = (values) => {
  const own = values.filter((value) => value !== undefined && value !== null && value !== "");
  for (const value of own) must(isOpaque(value), `opaque state was changed: ${String(value).slice(0, 40)}`);
  return new Set(own).size;
};
const count = (list, test) => list.filter(test).length;
/** What was thought in earlier steps, by its words. */
const countThoughts = (texts) =>
  new Set(texts.flatMap((text) => String(text ?? "").match(/I think of step \d/g) ?? [])).size;
const noThoughtAsText = (texts) =>
  must(countThoughts(texts) === 0, "a thought came back as text that everybody can see");

const chatFields =
  /^(?:model|messages|tools|tool_choice|parallel_tool_calls|stream|stream_options|max_tokens|max_completion_tokens|temperature|top_p|reasoning_effort|response_format|prompt_cache_key|stop)$/;

function readChat(body) {
  for (const field of Object.keys(body)) must(chatFields.test(field), `unknown field: ${field}`);
  must((body.prompt_cache_key ?? "").length <= 64, "prompt_cache_key is longer than 64");
  must(!Array.isArray(body.tools) || body.tools.length > 0, "tools is empty");
  let open = new Set();
  for (const [index, message] of body.messages.entries()) {
    must(["system", "user", "assistant", "tool"].includes(message.role), `unknown role: ${message.role}`);
    must(message.role !== "system" || index === 0, "a system message after the first message");
    if (message.role === "tool") {
      must(open.delete(message.tool_call_id), `a result without its call: ${message.tool_call_id}`);
      must(typeof message.content === "string", "a result must be a string");
    } else must(open.size === 0, `calls without a result: ${[...open].join()}`);
    if (message.role !== "assistant") continue;
    must(message.content || message.tool_calls?.length > 0, "an assistant message that says nothing");
    noThoughtAsText([JSON.stringify(message.content ?? "")]);
    open = new Set((message.tool_calls ?? []).map(({ id }) => id));
    must(open.size === (message.tool_calls ?? []).length, "two calls of one message have the same id");
    for (const call of message.tool_calls ?? []) JSON.parse(call.function.arguments);
  }
  const names = (body.tools ?? []).map((tool) => tool.function?.name ?? "");
  for (const name of names) must(/^[a-zA-Z0-9_-]{1,64}$/.test(name), `a tool may not be called '${name}'`);
  must(new Set(names).size === names.length, "two tools have the same name");
  const assistant = body.messages.filter(({ role }) => role === "assistant");
  return {
    tools: (body.tools ?? []).map(({ function: { name, parameters } }) => ({ name, fields: parameters?.properties })),
    turns: count(assistant, ({ tool_calls }) => tool_calls?.length > 0),
    carried: countThoughts(assistant.map(({ reasoning_content }) => reasoning_content)),
  };
}

function readText(body) {
  must(body.tools === undefined, "this server takes no tools");
  for (const { role, tool_calls } of body.messages) must(role !== "tool" && !tool_calls, "this server knows no calls");
  const prompt = JSON.stringify(body.messages.filter(({ role }) => role === "system"));
  const known = [
    "exec_command",
    "run_shell_command",
    "shell_command",
    "Bash",
    "bash",
    "shell",
    "functions[.]exec",
    "exec",
  ];
  const found = known.find((each) => new RegExp(`(?:name[^a-z]{1,8}|## )${each}[^a-z_]`).test(prompt));
  const name = found?.replace("[.]", ".");
  const field = name === "exec_command" ? "cmd" : "command";
  const assistant = body.messages.filter(({ role }) => role === "assistant");
  return {
    tools:
      name === undefined
        ? []
        : [{ name, fields: { [field]: {}, ...(name === "Bash" || name === "bash" ? { description: {} } : {}) } }],
    turns: count(assistant, ({ content }) => JSON.stringify(content).includes("<tool_call>")),
    carried: 0,
  };
}

function readResponses(body) {
  must((body.prompt_cache_key ?? "").length <= 64, "prompt_cache_key is longer than 64");
  const input = Array.isArray(body.input) ? body.input : [];
  const calls = input.filter(({ type }) => type === "function_call" || type === "custom_tool_call");
  const results = input.filter(({ type }) => type === "function_call_output" || type === "custom_tool_call_output");
  for (const { call_id } of results)
    must(
      calls.some((call) => call.call_id === call_id),
      `no call ${call_id}`,
    );
  for (const { call_id } of calls)
    must(
      results.some((result) => result.call_id === call_id),
      `no result of ${call_id}`,
    );
  must(new Set(calls.map(({ call_id }) => call_id)).size === calls.length, "two calls have the same id");
  noThoughtAsText(
    input.filter(({ type, role }) => type === "message" && role === "assistant").map((item) => JSON.stringify(item)),
  );
  const flatten = (list, namespace) =>
    list.flatMap((tool) =>
      tool.type === "namespace"
        ? flatten(tool.tools, tool.name)
        : [
            {
              name: tool.name ?? tool.type,
              namespace,
              custom: tool.type === "custom",
              fields: tool.parameters?.properties,
            },
          ],
    );
  return {
    tools: [
      ...flatten(body.tools ?? []),
      ...input.flatMap((item) => (item.type === "additional_tools" ? flatten(item.tools) : [])),
    ],
    turns: count(input, (item, index) => isCall(item) && !isCall(input[index - 1])),
    carried: countOpaque(
      input.filter(({ type }) => type === "reasoning").map(({ encrypted_content }) => encrypted_content),
    ),
  };
}
const isCall = (item) => item?.type === "function_call" || item?.type === "custom_tool_call";

function readMessages(body) {
  must(body.max_tokens > 0, "max_tokens: Field required");
  const thinking = [];
  for (const [index, { role, content }] of body.messages.entries()) {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    must(blocks.length > 0, `messages.${index}: content is empty`);
    if (role !== "assistant") continue;
    noThoughtAsText(blocks.filter(({ type }) => type === "text").map(({ text }) => text));
    const calls = blocks.filter(({ type }) => type === "tool_use");
    const next = body.messages[index + 1]?.content ?? [];
    for (const { id } of calls) {
      must(/^[a-zA-Z0-9_-]+$/.test(id), `a call may not have the id '${id}'`);
      must(Array.isArray(next) && next.some((block) => block.tool_use_id === id), `no tool_result of ${id}`);
    }
    if (body.thinking?.type === "enabled" && calls.length > 0)
      must(blocks[0].type === "thinking", "Expected `thinking` or `redacted_thinking`, but found `tool_use`");
    thinking.push(...blocks.filter(({ type }) => type === "thinking"));
  }
  const used = body.messages
    .flatMap(({ content }) => (Array.isArray(content) ? content : []))
    .filter(({ type }) => type === "tool_use");
  must(new Set(used.map(({ id }) => id)).size === used.length, "`tool_use` ids must be unique");
  for (const { signature, thinking: words } of thinking) {
    must(isOpaque(signature), "Invalid `signature` in `thinking` block");
    must(/^I think of step \d\.$/.test(words), "a signed thought was changed");
  }
  return {
    tools: (body.tools ?? []).map(({ name, input_schema }) => ({ name, fields: input_schema?.properties })),
    turns: count(
      body.messages,
      ({ role, content }) =>
        role === "assistant" && Array.isArray(content) && content.some(({ type }) => type === "tool_use"),
    ),
    carried: new Set(thinking.map(({ signature }) => signature)).size,
  };
}

function readGemini(body) {
  const parts = body.contents.flatMap(({ role, parts: list }) => list.map((part) => ({ ...part, role })));
  noThoughtAsText(
    parts.filter(({ role, thought, text }) => role === "model" && !thought && text).map(({ text }) => text),
  );
  let asked = 0;
  for (const { functionCall, functionResponse } of parts) {
    if (functionCall) asked++;
    if (functionResponse) must(--asked >= 0, "more function responses than function calls");
  }
  must(asked === 0, "function calls without function responses");
  const signatures = parts.map(({ thoughtSignature, thought_signature }) => thoughtSignature ?? thought_signature);
  return {
    tools: (body.tools ?? []).flatMap(({ functionDeclarations = [] }) =>
      functionDeclarations.map(({ name, parameters, parametersJsonSchema }) => ({
        name,
        fields: (parametersJsonSchema ?? parameters)?.properties,
      })),
    ),
    turns: count(
      body.contents,
      ({ role, parts: list }) => role === "model" && list.some(({ functionCall }) => functionCall),
    ),
    carried: countOpaque(signatures),
  };
}

const readers = {
  chat: readChat,
  text: readText,
  responses: readResponses,
  messages: readMessages,
  gemini: readGemini,
};

const pieces = (text, size = 11) => text.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? [];
const usage = { input: 100, output: 10 };

function send(response, isStream, frames, whole) {
  response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
  if (!isStream) return response.end(JSON.stringify(whole));
  for (const [event, data] of frames)
    response.write(
      `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`,
    );
  response.end();
}

/** Calls are numbered anew in each answer, as some servers do, and the finish reason does not speak of them. */
function writeChat({ thought, text, calls }, response, isStream, model) {
  const about = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model };
  const chunk = (delta, finish_reason = null) => [
    undefined,
    { ...about, choices: [{ index: 0, delta, finish_reason }] },
  ];
  const tool_calls = calls.map((call, index) => ({
    id: `call_${index}`,
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.input) },
  }));
  const tokens = {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
  };
  const frames = [
    chunk({ role: "assistant", content: "" }),
    ...pieces(thought ?? "").map((piece) => chunk({ reasoning_content: piece })),
    ...pieces(text).map((piece) => chunk({ content: piece })),
    ...tool_calls.flatMap(({ function: { name, arguments: given }, ...call }, index) => [
      chunk({ tool_calls: [{ index, ...call, function: { name, arguments: "" } }] }),
      ...pieces(given).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    chunk({}, "stop"),
    [undefined, { ...about, choices: [], usage: tokens }],
    [undefined, "[DONE]"],
  ];
  const message = {
    role: "assistant",
    content: text,
    ...(thought ? { reasoning_content: thought } : {}),
    ...(calls.length > 0 ? { tool_calls } : {}),
  };
  send(response, isStream, frames, {
    ...about,
    object: "chat.completion",
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: tokens,
  });
}

function writeText({ text, calls }, response, isStream, model) {
  const written = calls.map(
    (call) => `\n<tool_call>\n${JSON.stringify({ name: call.name, arguments: call.input })}\n</tool_call>`,
  );
  writeChat({ text: text + written.join(""), calls: [] }, response, isStream, model);
}

function writeResponses({ turn, thought, text, calls }, response, isStream, model) {
  const output = [
    ...(thought
      ? [
          {
            type: "reasoning",
            id: `rs_${turn}`,
            summary: [{ type: "summary_text", text: thought }],
            encrypted_content: opaque(turn),
          },
        ]
      : []),
    {
      type: "message",
      id: `msg_${turn}`,
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    },
    ...calls.map(({ name, namespace, custom, input }, index) => ({
      type: custom ? "custom_tool_call" : "function_call",
      id: `fc_${turn}_${index}`,
      call_id: `call_${turn}_${index}`,
      name,
      ...(namespace ? { namespace } : {}),
      status: "completed",
      ...(custom ? { input } : { arguments: JSON.stringify(input) }),
    })),
  ];
  const tokens = {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 110,
  };
  const whole = {
    id: `resp_up_${turn}`,
    object: "response",
    created_at: 1,
    model,
    status: "completed",
    output,
    usage: tokens,
    error: null,
    incomplete_details: null,
  };
  let number = 0;
  const event = (type, fields) => [type, { type, sequence_number: number++, ...fields }];
  const frames = [
    event("response.created", { response: { ...whole, status: "in_progress", output: [], usage: null } }),
  ];
  for (const [output_index, item] of output.entries()) {
    const at = { output_index, item_id: item.id };
    const bare = {
      ...item,
      ...(item.content ? { content: [] } : {}),
      ...(item.summary ? { summary: [] } : {}),
      ...("arguments" in item ? { arguments: "" } : {}),
      ...("input" in item ? { input: "" } : {}),
    };
    frames.push(event("response.output_item.added", { output_index, item: bare }));
    if (item.type === "message") {
      frames.push(
        event("response.content_part.added", {
          ...at,
          content_index: 0,
          part: { type: "output_text", text: "", annotations: [] },
        }),
      );
      for (const delta of pieces(text))
        frames.push(event("response.output_text.delta", { ...at, content_index: 0, delta }));
      frames.push(event("response.output_text.done", { ...at, content_index: 0, text }));
      frames.push(event("response.content_part.done", { ...at, content_index: 0, part: item.content[0] }));
    }
    if (item.type === "reasoning") {
      frames.push(
        event("response.reasoning_summary_part.added", {
          ...at,
          summary_index: 0,
          part: { type: "summary_text", text: "" },
        }),
      );
      for (const delta of pieces(thought))
        frames.push(event("response.reasoning_summary_text.delta", { ...at, summary_index: 0, delta }));
      frames.push(event("response.reasoning_summary_text.done", { ...at, summary_index: 0, text: thought }));
    }
    if (item.type === "function_call")
      for (const delta of pieces(item.arguments))
        frames.push(event("response.function_call_arguments.delta", { ...at, delta }));
    if (item.type === "custom_tool_call")
      for (const delta of pieces(item.input))
        frames.push(event("response.custom_tool_call_input.delta", { ...at, delta }));
    frames.push(event("response.output_item.done", { output_index, item }));
  }
  frames.push(event("response.completed", { response: whole }));
  send(response, isStream, frames, whole);
}

function writeMessages({ turn, thought, text, calls }, response, isStream, model) {
  const content = [
    ...(thought ? [{ type: "thinking", thinking: thought, signature: opaque(turn) }] : []),
    { type: "text", text },
    ...calls.map(({ name, input }, index) => ({ type: "tool_use", id: `toolu_${turn}_${index}`, name, input })),
  ];
  const about = { id: `msg_up_${turn}`, type: "message", role: "assistant", model };
  const tokens = { input_tokens: usage.input, output_tokens: usage.output };
  const stop_reason = calls.length > 0 ? "tool_use" : "end_turn";
  const event = (type, fields) => [type, { type, ...fields }];
  const frames = [
    event("message_start", {
      message: { ...about, content: [], stop_reason: null, usage: { ...tokens, output_tokens: 0 } },
    }),
  ];
  for (const [index, block] of content.entries()) {
    const delta = (type, fields) => event("content_block_delta", { index, delta: { type, ...fields } });
    const bare = {
      ...block,
      ...("text" in block ? { text: "" } : {}),
      ...("thinking" in block ? { thinking: "", signature: "" } : {}),
      ...("input" in block ? { input: {} } : {}),
    };
    frames.push(event("content_block_start", { index, content_block: bare }));
    if (block.type === "text") for (const piece of pieces(text)) frames.push(delta("text_delta", { text: piece }));
    if (block.type === "thinking") {
      for (const piece of pieces(thought)) frames.push(delta("thinking_delta", { thinking: piece }));
      frames.push(delta("signature_delta", { signature: block.signature }));
    }
    if (block.type === "tool_use")
      for (const piece of pieces(JSON.stringify(block.input)))
        frames.push(delta("input_json_delta", { partial_json: piece }));
    frames.push(event("content_block_stop", { index }));
  }
  frames.push(
    event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: tokens }),
    event("message_stop", {}),
  );
  send(response, isStream, frames, { ...about, content, stop_reason, stop_sequence: null, usage: tokens });
}

function writeGemini({ turn, thought, text, calls }, response, isStream, model) {
  const parts = [
    ...(thought ? [{ text: thought, thought: true }] : []),
    ...pieces(text).map((piece) => ({ text: piece })),
    ...calls.map(({ name, input }, index) => ({
      functionCall: { name, args: input },
      ...(index === 0 ? { thoughtSignature: opaque(turn) } : {}),
    })),
  ];
  const about = {
    modelVersion: model ?? "job",
    responseId: `gemini_${turn}`,
    usageMetadata: { promptTokenCount: usage.input, candidatesTokenCount: usage.output, totalTokenCount: 110 },
  };
  const chunk = (list, finishReason) => [
    undefined,
    {
      ...about,
      candidates: [{ index: 0, content: { role: "model", parts: list }, ...(finishReason ? { finishReason } : {}) }],
    },
  ];
  const frames = [...parts.map((part) => chunk([part])), chunk([{ text: "" }], "STOP")];
  send(response, isStream, frames, {
    ...about,
    candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }],
  });
}

const writers = {
  chat: writeChat,
  text: writeText,
  responses: writeResponses,
  messages: writeMessages,
  gemini: writeGemini,
};
