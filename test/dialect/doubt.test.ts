/** Answers that leave a doubt: two values, two forms, wrappings. What cannot be known is asked about, never guessed. */
import { describe, expect, test } from "vitest";
import { decodeText } from "../../src/dialect/index.ts";

const tools = [
  { name: "shell", parameters: { type: "object", properties: { command: { type: "string" } } } },
  {
    name: "weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, tags: { type: "array", items: { type: "string" } } },
    },
  },
];

function read(dialect: string, text: string) {
  const { items } = decodeText(text, { dialect, tools });
  return items.flatMap((item) =>
    item.type === "call"
      ? [
          {
            name: item.name,
            input: item.complete ? (JSON.parse(item.arguments) as unknown) : undefined,
            complete: item.complete,
            asks: item.markerless === true,
            repairs: item.extra?.fields["repairs"] ?? [],
          },
        ]
      : [],
  );
}

const twice: readonly (readonly [string, string])[] = [
  [
    "qwen3-coder",
    "<tool_call>\n<function=shell>\n<parameter=command>\nls\n</parameter>\n<parameter=command>\nrm\n</parameter>\n</function>\n</tool_call>",
  ],
  ["hermes", '<tool_call>\n{"name": "shell", "arguments": {"command": "ls", "command": "rm"}}\n</tool_call>'],
  ["hermes", '<tool_call>\n{"name": "shell", "name": "weather", "arguments": {"command": "ls"}}\n</tool_call>'],
  ["gemma4", '<|tool_call>call:shell{command:<|"|>ls<|"|>,command:<|"|>rm<|"|>}<tool_call|>'],
  ["cline-xml", "<shell>\n<command>ls</command>\n<command>rm</command>\n</shell>"],
  [
    "glm-4.5",
    "<tool_call>shell\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n<arg_key>command</arg_key>\n<arg_value>rm</arg_value>\n</tool_call>",
  ],
];

test.each(twice)("%s: something given twice is asked about", (dialect, text) => {
  expect(read(dialect, text)).toMatchObject([{ name: "shell", asks: true, repairs: ["duplicate-argument"] }]);
});

test("a list may be given piece by piece", () => {
  const text =
    "<tool_call>\n<function=weather>\n<parameter=tags>\na\n</parameter>\n<parameter=tags>\nb\n</parameter>\n</function>\n</tool_call>";
  expect(read("qwen3-coder", text)).toMatchObject([{ input: { tags: ["a", "b"] }, asks: false, repairs: [] }]);
});

describe("an answer of which the dialect is not known", () => {
  const json = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>';
  const mistral = '[TOOL_CALLS]shell[ARGS]{"command": "ls"}';

  test("keeps to the form of its first call: another form is asked about", () => {
    expect(read("auto", `${json}\n${mistral}`)).toMatchObject([
      { name: "weather", asks: false },
      { name: "shell", asks: true, repairs: ["mixed-forms"] },
    ]);
  });

  test("may call as often as it likes in one form", () => {
    expect(read("auto", `${json}\n${json}`).map(({ asks }) => asks)).toEqual([false, false]);
  });

  test("that is named reads its own form only", () => {
    expect(read("hermes", `${json}\n${mistral}`)).toMatchObject([{ name: "weather", asks: false }]);
  });
});

test.each([
  [
    "qwen3-coder",
    "<tool_call>\n<function=shell>\n<parameter=command>\n<![CDATA[echo <b> && ls]]>\n</parameter>\n</function>\n</tool_call>",
  ],
  [
    "function-calls-xml",
    '<function_calls>\n<invoke name="shell">\n<parameter name="command"><![CDATA[echo <b> && ls]]></parameter>\n</invoke>\n</function_calls>',
  ],
  ["cline-xml", "<shell>\n<command><![CDATA[echo <b> && ls]]></command>\n</shell>"],
])("%s: a value wrapped in CDATA is what stands in it, and the call says so", (dialect, text) => {
  expect(read(dialect, text)).toMatchObject([{ input: { command: "echo <b> && ls" }, repairs: ["cdata"] }]);
});

test("arguments that are a JSON string of themselves are read, and the call says so", () => {
  const open = "<|tool_calls_section_begin|><|tool_call_begin|>functions.shell:0<|tool_call_argument_begin|>";
  const close = "<|tool_call_end|><|tool_calls_section_end|>";
  const encoded = JSON.stringify(JSON.stringify({ command: "ls" }));
  expect(read("kimi-k2", `${open}${encoded}${close}`)).toMatchObject([
    { input: { command: "ls" }, complete: true, repairs: ["double-encoded"] },
  ]);
  expect(read("kimi-k2", `${open}"ls"${close}`).some(({ complete }) => complete)).toBe(false);
});

test("a tool that nobody declared is reported with its call, whatever its case", () => {
  const { items } = decodeText('<tool_call>\n{"name": "Shell", "arguments": {}}\n</tool_call>', {
    dialect: "hermes",
    tools,
  });
  expect(items).toMatchObject([{ type: "call", name: "Shell", extra: { fields: { known: false } } }]);
});

test("inkling: a text call gives a tool its only text; without a recipient it is text", () => {
  const call = "<|content_invoke_tool_text|>ls -la<|end_message|>";
  expect(read("inkling", `<|message_model|>shell${call}`)).toMatchObject([
    { name: "shell", input: { command: "ls -la" }, complete: true },
  ]);
  expect(read("inkling", call)).toEqual([]);
  expect(read("inkling", "<|message_model|>shell<|content_invoke_tool_text|>ls")).toMatchObject([{ complete: false }]);
});

test("gemma4: closers too many behind a call are no words", () => {
  const text = '<|tool_call>call:shell{command:<|"|>ls<|"|>}<tool_call|><tool_call|><turn|>';
  expect(decodeText(text, { dialect: "gemma4", tools }).items).toMatchObject([{ type: "call", complete: true }]);
});
