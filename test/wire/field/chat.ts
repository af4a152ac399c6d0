/** Chat Completions as its many servers speak it. */
import type { JsonObject } from "../../../src/base/json.ts";
import { call, calls, delta, done, finish } from "../chat/body.ts";
import { broken, type FieldCase, made, oslo, xy } from "./case.ts";

const weather = made("call_a", "get_weather", oslo);
const search = made("call_b", "search", xy);
const whole = calls(call({ index: 0, id: "call_a", name: "get_weather", args: oslo }));
const end = [finish("tool_calls"), `${done}\n\n`];
const stopped = [finish("stop"), `${done}\n\n`];
const hi = delta({ content: "Hi" });

function choice(fields: JsonObject): JsonObject {
  return { id: "c", model: "m", choices: [fields] };
}

/** Arguments in pieces at one index, after a start. */
function pieces(...args: readonly string[]): readonly JsonObject[] {
  return [
    calls(call({ index: 0, id: "call_a", name: "get_weather", args: "" })),
    ...args.map((piece) => calls(call({ index: 0, args: piece }))),
  ];
}

function counted(usage: JsonObject): JsonObject {
  return { id: "c", choices: [], usage };
}

const repeated: readonly FieldCase[] = [
  [
    "arguments grow from their start in every delta",
    [...pieces('{"ci', '{"city":"Os', oslo), ...end],
    { calls: [weather] },
  ],
  [
    "an empty object stands before the arguments",
    [...pieces("{}", '{"city":', '"Oslo"}'), ...end],
    { calls: [weather] },
  ],
  [
    "an empty object follows the arguments: two values, so none runs",
    [...pieces(oslo, "{}"), ...end],
    { calls: [broken("call_a", "get_weather", `${oslo}{}`)] },
  ],
  [
    "the arguments come in pieces, then once more as a whole: nobody runs the first half",
    [...pieces('{"city":', '"Oslo"}', oslo), ...end],
    { calls: [broken("call_a", "get_weather", oslo + oslo)] },
  ],
  [
    "the same in one piece",
    [...pieces(oslo + oslo), ...end],
    { calls: [broken("call_a", "get_weather", oslo + oslo)] },
  ],
  ["the whole comes before the pieces were done", [...pieces('{"city":', '"Os', oslo), ...end], { calls: [weather] }],
  [
    "two different objects under one call: nobody knows which, so none runs",
    [...pieces(oslo, '{"city":"Bergen"}'), ...end],
    { calls: [broken("call_a", "get_weather", `${oslo}{"city":"Bergen"}`)] },
  ],
  [
    "what looks like a repeat is nesting",
    [...pieces('{"a":', '{"a":1}', "}"), ...end],
    { calls: [made("call_a", "get_weather", '{"a":{"a":1}}')] },
  ],
  [
    "one call under two indexes (LocalAI)",
    [whole, calls(call({ index: 1, id: "call_a", name: "get_weather", args: oslo })), ...end],
    { calls: [weather] },
  ],
  [
    "one call under two indexes, the first without its arguments",
    [
      calls(call({ index: 0, id: "call_a", name: "get_weather", args: "" })),
      calls(call({ index: 1, id: "call_a", name: "get_weather", args: oslo })),
      ...end,
    ],
    { calls: [weather] },
  ],
  [
    "the same tool twice with one id and other arguments is two calls",
    [whole, calls(call({ index: 1, id: "call_a", name: "get_weather", args: '{"city":"Bergen"}' })), ...end],
    { calls: [weather, made(null, "get_weather", '{"city":"Bergen"}')] },
  ],
  [
    "a name that grows from its start in every delta",
    [
      calls(call({ index: 0, id: "call_a", name: "get_", args: "" })),
      calls(call({ index: 0, name: "get_weather", args: oslo })),
      ...end,
    ],
    { calls: [weather] },
  ],
  [
    "two finish chunks, the second with the usage (OpenRouter)",
    [
      whole,
      finish("tool_calls"),
      { ...finish("tool_calls"), usage: { prompt_tokens: 3, completion_tokens: 2 } },
      `${done}\n\n`,
    ],
    { calls: [weather], usage: { input: 3, output: 2, total: 5 } },
  ],
  [
    "an empty delta of the call in the finish chunk (vLLM)",
    [whole, delta({ tool_calls: [call({ index: 0, args: "" })] }, "tool_calls"), `${done}\n\n`],
    { calls: [weather] },
  ],
];

const shapes: readonly FieldCase[] = [
  [
    "tool_calls is null, holds null, holds a call without a function",
    [
      delta({ content: "Hi", tool_calls: null }),
      delta({ tool_calls: [null] }),
      delta({ tool_calls: [{ index: 0, function: null }] }),
      ...stopped,
    ],
    { text: "Hi" },
  ],
  [
    "the index is text",
    [delta({ tool_calls: [{ ...call({ id: "call_a", name: "get_weather", args: oslo }), index: "0" }] }), ...end],
    { calls: [weather] },
  ],
  [
    "the index is negative or a fraction",
    [
      delta({
        tool_calls: [
          { ...call({ id: "call_a", name: "get_weather", args: oslo }), index: -1 },
          { ...call({ id: "call_b", name: "search", args: xy }), index: 0.5 },
        ],
      }),
      ...end,
    ],
    { calls: [weather, search] },
  ],
  [
    "the id is a number",
    [delta({ tool_calls: [{ ...call({ index: 0, name: "get_weather", args: oslo }), id: 7 }] }), ...end],
    { calls: [made("7", "get_weather", oslo)] },
  ],
  [
    "a call whose name never comes",
    [calls(call({ index: 0, id: "call_a", name: "", args: oslo })), ...end],
    { calls: [broken("call_a", "", oslo)] },
  ],
  [
    "arguments that are a list, a word, nothing",
    [
      calls(
        call({ index: 0, id: "call_a", name: "search", args: "[1]" }),
        call({ index: 1, id: "call_b", name: "search", args: "yes" }),
        call({ index: 2, id: "call_c", name: "list_dir" }),
      ),
      ...end,
    ],
    { calls: [made("call_a", "search", "[1]"), broken("call_b", "search", "yes"), made("call_c", "list_dir", "")] },
  ],
  [
    "spaces are no arguments",
    [calls(call({ index: 0, id: "call_a", name: "list_dir", args: " \n" })), ...end],
    { calls: [made("call_a", "list_dir", " \n", { input: {} })] },
  ],
  [
    "a whole answer in one chunk, with its calls in the message",
    [
      choice({
        index: 0,
        message: {
          role: "assistant",
          content: "Hi",
          tool_calls: [call({ id: "call_a", name: "get_weather", args: oslo })],
        },
        finish_reason: "tool_calls",
      }),
    ],
    { text: "Hi", calls: [weather] },
  ],
  [
    "a call of the provider's own type keeps it (Kimi)",
    [
      delta({
        tool_calls: [
          { index: 0, id: "call_a", type: "builtin_function", function: { name: "$web_search", arguments: xy } },
        ],
      }),
      ...end,
    ],
    { calls: [made("call_a", "$web_search", xy, { extra: { type: "builtin_function" } })] },
  ],
  ["calls follow the finish reason", [hi, finish("stop"), whole, `${done}\n\n`], { text: "Hi", calls: [weather] }],
  [
    "calls and words in one delta",
    [delta({ content: "Hi", tool_calls: [call({ index: 0, id: "call_a", name: "get_weather", args: oslo })] }), ...end],
    { text: "Hi", calls: [weather] },
  ],
  [
    "the old function_call in pieces",
    [
      delta({ function_call: { name: "get_weather", arguments: "" } }),
      delta({ function_call: { arguments: '{"city":' } }),
      delta({ function_call: { arguments: '"Oslo"}' } }),
      finish("function_call"),
      `${done}\n\n`,
    ],
    { calls: [made(null, "get_weather", oslo)] },
  ],
  [
    "a wrapper with a call nobody declared stays as it is",
    [
      calls(
        call({
          index: 0,
          id: "call_a",
          name: "parallel",
          args: '{"tool_uses":[{"recipient_name":"functions.rm","parameters":{}}]}',
        }),
      ),
      ...end,
    ],
    { calls: [made("call_a", "parallel", '{"tool_uses":[{"recipient_name":"functions.rm","parameters":{}}]}')] },
  ],
  [
    "a picture beside the words (OpenRouter)",
    [hi, delta({ images: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] }), ...stopped],
    { text: "Hi" },
  ],
];

const numbered: readonly FieldCase[] = [
  [
    "each piece is another choice (TGI)",
    [
      choice({ index: 1, delta: { role: "assistant", content: "H" }, finish_reason: null }),
      choice({ index: 2, delta: { role: "assistant", content: "i" }, finish_reason: null }),
      choice({ index: 3, delta: { content: "!" }, finish_reason: "stop" }),
      `${done}\n\n`,
    ],
    { text: "Hi!" },
  ],
  [
    "the calls are another choice (Bedrock behind LiteLLM)",
    [
      hi,
      choice({ index: 1, delta: { tool_calls: [call({ index: 0, id: "call_a", name: "get_weather", args: "" })] } }),
      choice({ index: 1, delta: { tool_calls: [call({ index: 0, args: oslo })] } }),
      finish("tool_calls"),
      `${done}\n\n`,
    ],
    { text: "Hi", calls: [weather] },
  ],
  [
    "the thoughts are one choice and the words another",
    [delta({ reasoning_content: "hm" }), choice({ index: 1, delta: { content: "Hi" } }), finish("stop"), `${done}\n\n`],
    { reasoning: "hm", text: "Hi" },
  ],
  [
    "two answers, one after the other",
    [
      hi,
      finish("stop"),
      choice({ index: 1, delta: { content: "Hello" } }),
      choice({ index: 1, delta: {}, finish_reason: "stop" }),
      `${done}\n\n`,
    ],
    { text: "Hi" },
  ],
  [
    "two answers, one of them without an end",
    [hi, choice({ index: 1, delta: { content: "Hello" } }), finish("stop"), `${done}\n\n`],
    { text: "Hi" },
  ],
  [
    "two answers, the second with a call",
    [
      hi,
      choice({ index: 1, delta: { tool_calls: [call({ index: 0, id: "call_a", name: "get_weather", args: oslo })] } }),
      choice({ index: 1, delta: {}, finish_reason: "tool_calls" }),
      finish("stop"),
      `${done}\n\n`,
    ],
    { text: "Hi" },
  ],
  [
    "neither index nor id, and the name with every piece",
    [
      calls(call({ name: "get_weather", args: '{"city":' })),
      calls(call({ name: "get_weather", args: '"Oslo"}' })),
      calls(call({ name: "get_weather", args: '{"city":"Bergen"}' })),
      ...end,
    ],
    { calls: [made(null, "get_weather", oslo), made(null, "get_weather", '{"city":"Bergen"}')] },
  ],
];

const endings: readonly FieldCase[] = [
  [
    "a model's tokens behind the name (gpt-oss)",
    [calls(call({ index: 0, id: "call_a", name: "get_weather<|channel|>commentary", args: oslo })), ...end],
    { calls: [weather] },
  ],
  [
    "every chunk says finish_reason 'stop'",
    [delta({ content: "H" }, "stop"), delta({ content: "i" }, "stop"), `${done}\n\n`],
    { text: "Hi" },
  ],
  [
    "finish_reason is the text 'null' until the body breaks off",
    [delta({ content: "Hi" }, "null")],
    { outcome: "truncated", text: "Hi" },
  ],
  [
    "finish_reason is empty until the body breaks off",
    [delta({ content: "Hi" }, ""), { ...whole }],
    { outcome: "truncated", text: "Hi", calls: [broken("call_a", "get_weather", oslo)] },
  ],
  ["an unknown reason is an end", [whole, finish("eos_token"), `${done}\n\n`], { calls: [weather] }],
  ["Claude's words for it", [whole, finish("tool_use"), `${done}\n\n`], { calls: [weather] }],
  [
    "Gemini's word for too long",
    [hi, finish("MAX_TOKENS"), `${done}\n\n`],
    { outcome: "incomplete", finish: "length", text: "Hi" },
  ],
  [
    "the window is full (GLM)",
    [hi, finish("model_context_window_exceeded"), `${done}\n\n`],
    { outcome: "incomplete", finish: "length", text: "Hi" },
  ],
  [
    "filtered, with the filter's own reason",
    [hi, finish("content_filter: PROHIBITED_CONTENT"), `${done}\n\n`],
    { outcome: "incomplete", finish: "content_filter", text: "Hi" },
  ],
  [
    "filtered in GLM's word",
    [hi, finish("sensitive"), `${done}\n\n`],
    { outcome: "incomplete", finish: "content_filter", text: "Hi" },
  ],
  [
    "filtered with a whole call: it does not run",
    [whole, finish("content_filter"), `${done}\n\n`],
    { outcome: "incomplete", finish: "content_filter", calls: [broken("call_a", "get_weather", oslo)] },
  ],
  [
    "a malformed call behind Gemini's door for Chat",
    [hi, finish("function_call_filter: MALFORMED_FUNCTION_CALL"), `${done}\n\n`],
    {
      outcome: "error",
      finish: "error",
      text: "Hi",
      error: { message: "the provider ended the answer with 'function_call_filter: MALFORMED_FUNCTION_CALL'" },
    },
  ],
  [
    "the server aborted (vLLM, sglang)",
    [whole, finish("abort"), `${done}\n\n`],
    {
      outcome: "error",
      finish: "error",
      calls: [broken("call_a", "get_weather", oslo)],
      error: { message: "the provider ended the answer with 'abort'" },
    },
  ],
  [
    "the network failed behind the server (GLM)",
    [hi, finish("network_error")],
    { outcome: "error", finish: "error", text: "Hi", error: {} },
  ],
  [
    "an error inside the choice (OpenRouter)",
    [
      choice({
        index: 0,
        delta: { content: "par" },
        finish_reason: "error",
        error: { code: 502, message: "Provider disconnected" },
      }),
    ],
    { outcome: "error", finish: "error", text: "par", error: { message: "Provider disconnected", status: 502 } },
  ],
  ["an error in FastAPI's words", [{ detail: "Not Found" }], { outcome: "error", error: { message: "Not Found" } }],
  [
    "an error in FastAPI's list",
    [{ detail: [{ loc: ["body"], msg: "field required" }] }],
    { outcome: "error", error: { message: "field required" } },
  ],
  [
    "an error as a bare object",
    [{ code: 429, message: "slow down", success: false }],
    { outcome: "error", error: { message: "slow down", status: 429 } },
  ],
  [
    "an error in a list (Cloudflare)",
    [{ success: false, errors: [{ code: 7003, message: "no route" }] }],
    { outcome: "error", error: { message: "no route" } },
  ],
  [
    "an error as vLLM has it",
    [hi, { object: "error", message: "engine died", type: "InternalServerError", code: 500 }, `${done}\n\n`],
    { outcome: "error", text: "Hi", error: { message: "engine died", type: "InternalServerError", status: 500 } },
  ],
  [
    "an error in a field of its own (llama.cpp)",
    [hi, 'error: {"code":500,"message":"slot lost","type":"server_error"}\n\n'],
    { outcome: "error", text: "Hi", error: { message: "slot lost", type: "server_error", status: 500 } },
  ],
  [
    "an error event in plain words",
    [hi, "event: error\ndata: upstream timed out\n\n"],
    { outcome: "error", text: "Hi", error: { message: "upstream timed out" } },
  ],
  ["nothing but the end mark", [`${done}\n\n`], {}],
  ["chunks after the end mark", [hi, ...stopped, delta({ content: "!" })], { text: "Hi" }],
];

const frames: readonly FieldCase[] = [
  [
    "no blank line between the events",
    [
      `data: ${JSON.stringify(hi)}\ndata: ${JSON.stringify(whole)}\ndata: ${JSON.stringify(finish("stop"))}\n${done}\n\n`,
    ],
    { text: "Hi", calls: [weather] },
  ],
  [
    "the same, named",
    [`event: chunk\ndata: ${JSON.stringify(hi)}\nevent: chunk\ndata: ${JSON.stringify(finish("stop"))}\n\n`],
    { text: "Hi" },
  ],
  [
    "CRLF, ids, retries and comments",
    [
      `: hello\r\nid: 1\r\nretry: 10\r\ndata: ${JSON.stringify(hi)}\r\n\r\n:\r\ndata: ${JSON.stringify(finish("stop"))}\r\n\r\n${done}\r\n\r\n`,
    ],
    { text: "Hi" },
  ],
  [
    "a pretty-printed chunk over many lines",
    [
      `${JSON.stringify(hi, null, 1)
        .split("\n")
        .map((line) => `data: ${line}`)
        .join("\n")}\n\n`,
      ...stopped,
    ],
    { text: "Hi" },
  ],
  ["broken frames between whole ones", [hi, "data: {\n\n", "data: 7\n\n", "data:\n\n", ...stopped], { text: "Hi" }],
  ["the last blank line is missing", [hi, finish("stop"), done], { text: "Hi" }],
  [
    "Azure opens with a chunk that says nothing",
    [{ id: "", model: "", object: "", choices: [], prompt_filter_results: [{ prompt_index: 0 }] }, hi, ...stopped],
    { text: "Hi" },
  ],
  [
    "letters outside the first plane",
    [delta({ content: "a😀" }), delta({ content: "é日" }), ...stopped],
    { text: "a😀é日" },
  ],
];

const thoughts: readonly FieldCase[] = [
  ["thoughts in Copilot's field", [delta({ reasoning_text: "hm" }), hi, ...stopped], { reasoning: "hm", text: "Hi" }],
  ["thoughts in an object", [delta({ reasoning: { text: "hm" } }), hi, ...stopped], { reasoning: "hm", text: "Hi" }],
  [
    "thoughts in a list",
    [
      delta({
        reasoning_content: [
          { type: "text", text: "h" },
          { type: "text", text: "m" },
        ],
      }),
      hi,
      ...stopped,
    ],
    { reasoning: "hm", text: "Hi" },
  ],
  [
    "thoughts after the words, and between calls",
    [hi, delta({ reasoning_content: "h" }), whole, delta({ reasoning_content: "m" }), ...end],
    { reasoning: "hm", text: "Hi", calls: [weather] },
  ],
  [
    "thoughts in three fields at once",
    [
      delta({
        reasoning: "hm",
        reasoning_content: "hm",
        reasoning_details: [{ type: "reasoning.text", text: "hm", index: 0 }],
      }),
      hi,
      ...stopped,
    ],
    { reasoning: "hm", text: "Hi" },
  ],
  [
    "a summary among the details",
    [delta({ reasoning_details: [{ type: "reasoning.summary", summary: "hm", index: 0 }] }), hi, ...stopped],
    { reasoning: "hm", text: "Hi" },
  ],
  [
    "a refusal in pieces",
    [delta({ refusal: "I " }), delta({ refusal: "can't." }), ...stopped],
    { refusal: "I can't." },
  ],
  [
    "words as a list of strings and parts",
    [delta({ content: ["H", { type: "text", text: "i" }] }), ...stopped],
    { text: "Hi" },
  ],
];

const usages: readonly FieldCase[] = [
  [
    "usage in the choice (Moonshot)",
    [
      hi,
      choice({
        index: 0,
        delta: {},
        finish_reason: "stop",
        usage: { prompt_tokens: 3, completion_tokens: 2, cached_tokens: 1 },
      }),
      `${done}\n\n`,
    ],
    { text: "Hi", usage: { input: 3, output: 2, total: 5, cached: 1 } },
  ],
  [
    "usage under x_groq",
    [hi, { ...finish("stop"), x_groq: { id: "r", usage: { prompt_tokens: 3, completion_tokens: 2 } } }, `${done}\n\n`],
    { text: "Hi", usage: { input: 3, output: 2, total: 5 } },
  ],
  [
    "usage in a chunk without choices (v0)",
    [
      hi,
      finish("stop"),
      { id: "c", object: "chat.completion.chunk", usage: { prompt_tokens: 3, completion_tokens: 2 } },
      `${done}\n\n`,
    ],
    { text: "Hi", usage: { input: 3, output: 2, total: 5 } },
  ],
  [
    "usage grows from chunk to chunk",
    [
      { ...hi, usage: { prompt_tokens: 3, completion_tokens: 1 } },
      { ...finish("stop"), usage: { prompt_tokens: 3, completion_tokens: 2 } },
      `${done}\n\n`,
    ],
    { text: "Hi", usage: { input: 3, output: 2, total: 5 } },
  ],
  [
    "zeros take nothing back",
    [
      hi,
      finish("stop"),
      counted({ prompt_tokens: 3, completion_tokens: 2 }),
      counted({ prompt_tokens: 0, completion_tokens: 0 }),
      `${done}\n\n`,
    ],
    { text: "Hi", usage: { input: 3, output: 2, total: 5 } },
  ],
  [
    "thoughts counted beside the rest (xAI)",
    [
      hi,
      finish("stop"),
      counted({
        prompt_tokens: 32,
        completion_tokens: 9,
        total_tokens: 135,
        completion_tokens_details: { reasoning_tokens: 94 },
      }),
    ],
    { text: "Hi", usage: { input: 32, output: 103, total: 135, reasoning: 94 } },
  ],
  [
    "DeepSeek's cache counters",
    [
      hi,
      finish("stop"),
      counted({
        prompt_tokens: 9,
        completion_tokens: 2,
        total_tokens: 11,
        prompt_cache_hit_tokens: 4,
        prompt_cache_miss_tokens: 5,
      }),
    ],
    { text: "Hi", usage: { input: 9, output: 2, total: 11, cached: 4 } },
  ],
  [
    "only a total and one side",
    [hi, finish("stop"), counted({ completion_tokens: 2, total_tokens: 11 })],
    { text: "Hi", usage: { input: 9, output: 2, total: 11 } },
  ],
  ["an empty usage is none", [hi, finish("stop"), counted({})], { text: "Hi" }],
];

export const cases: readonly FieldCase[] = [
  ...repeated,
  ...shapes,
  ...numbered,
  ...endings,
  ...frames,
  ...thoughts,
  ...usages,
];
