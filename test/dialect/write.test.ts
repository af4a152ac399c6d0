import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { text } from "../../src/base/content.ts";
import {
  decodeText,
  dialects,
  encodeCalls,
  encodeResults,
  findDialect,
  inferDialect,
  teach,
  toTextRequest,
  type Dialect,
} from "../../src/dialect/index.ts";
import { toDialect } from "../../src/dialect/dialects.ts";
import type { Item, ModelRequest } from "../../src/spec/model.ts";
import { repairs } from "../../src/dialect/repairs.ts";
import { kinds } from "./corpus.ts";
import { reading, writeFile } from "./reading.ts";

/** Seed 003's editor. */
const editor = {
  name: "str_replace_editor",
  parameters: {
    type: "object",
    properties: {
      command: { type: "string" },
      path: { type: "string" },
      old_str: { type: "string" },
      new_str: { type: "string" },
    },
    required: ["command", "path", "old_str", "new_str"],
  },
  xml: { tag: "str_replace_editor", attributes: ["command", "path"], elements: ["old_str", "new_str"] },
};

const ask = {
  name: "ask",
  parameters: {
    type: "object",
    properties: { text: { type: "string" }, attachments: { type: "string" } },
    required: ["text"],
  },
  xml: {
    tag_name: "ask",
    mappings: [
      { param_name: "text", node_type: "content", path: "." },
      { param_name: "attachments", node_type: "attribute", path: "@attachments", required: false },
    ],
    example: '<ask attachments="a.md">Which one?</ask>',
  },
};

describe("Suna's tags", () => {
  const call =
    '<str_replace_editor command="str_replace" path="/a b">\n    <new_str>x</old_str>y</new_str>\n    <old_str>\nold\n</old_str>\n</str_replace_editor>';

  test("attributes and elements come in any order, and markup in a value is part of it", () => {
    expect(reading(call, { dialect: "suna-xml-v1", tools: [editor] }).whole).toEqual([
      ["str_replace_editor", { command: "str_replace", path: "/a b", new_str: "x</old_str>y", old_str: "old" }],
    ]);
  });

  test("a required part that is missing makes it no call", () => {
    const text = '<str_replace_editor command="x" path="y"><old_str>a</old_str></str_replace_editor>';
    expect(reading(text, { dialect: "suna-xml-v1", tools: [editor] })).toMatchObject({ calls: [], text });
  });

  test("body text, an optional attribute, a longer tag of the same beginning, and its own tag in the text", () => {
    const options = { dialect: "suna-xml-v1", tools: [ask] };
    expect(reading('<asking>no</asking> <ask attachments="a">Why?</ask>', options).whole).toEqual([
      ["ask", { text: "Why?", attachments: "a" }],
    ]);
    expect(reading("<ask>what is <ask> for?</ask>", options).whole).toEqual([["ask", { text: "what is <ask> for?" }]]);
    expect(reading("<ask/>", options).whole).toEqual([["ask", {}]]);
  });

  test("a model is taught each tool's own example, or one made from its schema", () => {
    const taught = teach("suna-xml-v1", [editor, ask]);
    expect(taught).toContain('<ask attachments="a.md">Which one?</ask>');
    expect(reading(taught, { dialect: "suna-xml-v1", tools: [editor] }).whole).toContainEqual([
      "str_replace_editor",
      { command: "value", path: "value", old_str: "value", new_str: "value" },
    ]);
  });
});

test("function-calls-xml is written as it is taught", () => {
  const plain =
    '<function_calls>\n<invoke name="shell">\n<parameter name="command">true 1</parameter>\n</invoke>\n</function_calls>';
  expect(encodeCalls("function-calls-xml", [{ name: "shell", arguments: '{"command":"true 1"}' }], ["shell"])).toBe(
    plain,
  );
  expect(reading(plain, { dialect: "function-calls-xml" }).whole).toEqual([["shell", { command: "true 1" }]]);
});

test("our own dialect hears only its own marker", () => {
  const call = encodeCalls(
    "callgate:k7q2",
    [{ name: "write_file", arguments: '{"path":"</call-other>","mode":3}' }],
    [writeFile],
  );
  expect(call).toContain('<arg-k7q2 name="path" type="text">');
  expect(reading(call, { dialect: "callgate:k7q2", tools: [writeFile] }).whole).toEqual([
    ["write_file", { path: "</call-other>", mode: 3 }],
  ]);
  expect(reading(call, { dialect: "callgate:zzzz", tools: [writeFile] }).calls).toEqual([]);
});

test("a plain-text tool is given its text as it is", () => {
  const tools = [{ kind: "custom", name: "apply_patch", description: "" }] as const;
  const patch = "*** Begin Patch\n</parameter> & <b>\n*** End Patch";
  const text = encodeCalls(
    "function-calls-xml",
    [{ name: "apply_patch", kind: "custom", arguments: patch }],
    [tools[0]!],
  );
  expect(reading(text, { dialect: "function-calls-xml", tools }).calls).toMatchObject([
    { kind: "custom", name: "apply_patch", arguments: patch, complete: true },
  ]);
});

test("a tool of a namespace comes back with it", () => {
  const tools = [
    {
      kind: "namespace",
      name: "git",
      description: "",
      tools: [{ kind: "function", name: "log", description: "", parameters: {} }],
    },
  ] as const;
  const text = encodeCalls("hermes", [{ name: "log", namespace: "git", arguments: "{}" }], [tools[0]!]);
  expect(reading(text, { dialect: "hermes", tools }).calls).toMatchObject([{ name: "log", namespace: "git" }]);
});

test("several results go back in one turn, and an error says so", () => {
  const results = [
    { name: "a", id: "call_0", text: "one", ok: true },
    { name: "b", id: "call_1", text: "two", ok: false },
  ];
  expect(encodeResults("hermes", results)).toBe(
    "<tool_response>\none\n</tool_response>\n<tool_response>\nError: two\n</tool_response>",
  );
  expect(encodeResults("cohere-action", results.slice(1))).toContain('"is_error": true');
});

describe("a request for a model that only writes text", () => {
  const input: readonly Item[] = [
    { type: "message", role: "user", content: [text("write it")] },
    { type: "reasoning", text: "hm" },
    { type: "message", role: "assistant", content: [text("I will.")] },
    { type: "call", kind: "function", id: "call_0", name: "write_file", arguments: '{"path":"a"}', complete: true },
    { type: "result", kind: "function", callId: "call_0", content: [text("</tool_response> done")], ok: true },
    { type: "message", role: "user", content: [text("and now?")] },
  ];
  const request: ModelRequest = {
    model: "m",
    instructions: "Be brief.",
    input,
    tools: [{ kind: "function", description: "Writes.", ...writeFile }],
    toolChoice: "required",
    parallel: false,
    stop: ["STOP"],
  };

  test("has no tools, teaches them, and lets speakers alternate", () => {
    const made = toTextRequest(request, "function-calls-xml");
    expect(made.tools).toEqual([]);
    expect(made.toolChoice).toBeUndefined();
    expect(made.stop).toEqual(["STOP", "<function_results>"]);
    expect(made.instructions).toMatch(/^Be brief\.\n\n# Tools/);
    expect(made.instructions).toContain("must contain at least one call");
    expect(made.input.map((item) => item.type === "message" && item.role)).toEqual(["user", "assistant", "user"]);
  });

  test("its history reads back as the calls it came from", () => {
    const [, said] = toTextRequest(request, "hermes").input;
    const words = said?.type === "message" && said.content[0]?.type === "text" ? said.content[0].text : "";
    expect(decodeText(words, { dialect: "hermes", tools: request.tools }).items).toMatchObject([
      { type: "message" },
      { type: "call", name: "write_file", arguments: '{"path": "a"}' },
    ]);
  });

  test("teaches nothing when no call is wanted", () => {
    expect(toTextRequest({ ...request, toolChoice: "none" }, "hermes").instructions).toBe("Be brief.");
  });
});

test("a prompt is the same for the same tools in any order, and shows the tool's own example", () => {
  const other = {
    name: "a_tool",
    description: "Other.",
    parameters: { type: "object", properties: { n: { type: "integer" } } },
    examples: [{ input: { n: 42 } }],
  };
  expect(teach("hermes", [writeFile, other])).toBe(teach("hermes", [other, writeFile]));
  expect(teach("hermes", [other])).toContain('{"n": 42}');
});

test("every dialect of the corpus is known by its name, and aliases lead to one", () => {
  for (const { dialect } of kinds) expect(findDialect(dialect)?.name).toBe(dialect);
  expect(findDialect("gpt-oss")?.name).toBe("harmony");
  const names = dialects.flatMap(({ name, aliases = [] }) => [name, ...aliases]);
  expect(new Set(names).size).toBe(names.length);
  expect(findDialect("hermse")).toBeUndefined();
  expect(() => toDialect("hermse")).toThrow("did you mean 'hermes'?");
});

describe("inferDialect", () => {
  const template = (body: string) =>
    `{% for message in messages %}{% for tool_call in message.tool_calls %}${body}{% endfor %}{% endfor %}`;

  test.each([
    [
      "hermes",
      "{{ '<tool_call>\\n{\"name\": \"' + tool_call.name + '\", \"arguments\": ' }}{{ tool_call.arguments | tojson }}{{ '}\\n</tool_call>' }}",
    ],
    [
      "qwen3-coder",
      "<tool_call>\\n<function={{ tool_call.name }}>\\n<parameter={{ k }}>\\n{{ v }}\\n</parameter>\\n</function>\\n</tool_call>",
    ],
    [
      "glm-4.5",
      "<tool_call>{{ tool_call.name }}\\n<arg_key>{{ k }}</arg_key>\\n<arg_value>{{ v }}</arg_value></tool_call>",
    ],
    [
      "kimi-k2",
      "<|tool_calls_section_begin|><|tool_call_begin|>{{ tool_call.id }}<|tool_call_argument_begin|>{{ tool_call.arguments }}<|tool_call_end|><|tool_calls_section_end|>",
    ],
    [
      "deepseek-v3.1",
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ tool_call.name }}<｜tool▁sep｜>{{ tool_call.arguments }}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ],
    [
      "minimax-m2",
      '<minimax:tool_call>\\n<invoke name="{{ tool_call.name }}">\\n<parameter name="{{ k }}">{{ v }}</parameter>\\n</invoke>\\n</minimax:tool_call>',
    ],
    [
      "harmony",
      "<|start|>assistant<|channel|>commentary to=functions.{{ tool_call.name }}<|message|>{{ tool_call.arguments }}<|call|>",
    ],
  ])("knows %s by its chat template", (name, body) => {
    expect(inferDialect(template(body))[0]?.dialect).toBe(name);
  });

  test.each([
    "hermes",
    "qwen3-coder",
    "glm-4.5",
    "kimi-k2",
    "deepseek-v3.1",
    "gemma4",
    "lfm2",
    "mistral-v11",
    "harmony",
  ])("knows %s by two answers", (name) => {
    const answers = ["a", "b"].map(
      (value) => `Sure. ${encodeCalls(name, [{ name: "write_file", arguments: JSON.stringify({ path: value }) }])}`,
    );
    expect(inferDialect(answers)[0]?.dialect).toBe(name);
  });

  test("says nothing where nothing points to a dialect", () => {
    expect(inferDialect(["Hello there."])).toEqual([]);
  });
});

test("the documents name every dialect and every repair", () => {
  const page = readFileSync(new URL("../../docs/any-model.md", import.meta.url), "utf8");
  for (const { name } of dialects) expect(page).toContain(`| \`${name}\` |`);
  for (const [name, slip] of Object.entries(repairs)) expect(page).toContain(`| \`${name}\` | ${slip} |`);
});

test.each([
  ["a space", " >>"],
  ["a line end", "\n>>"],
])("a dialect of one's own may begin its closer with %s, and what it writes is read back whole", (_, close) => {
  const bodies = [
    { kind: "json" },
    { kind: "named", separator: [": "] },
    { kind: "named", separator: [": "], close: [" ;"] },
    { kind: "python", list: "brackets" },
    { kind: "quoted", prefix: "call:", quote: "<q>" },
  ] as const;
  for (const body of bodies) {
    const own: Dialect = {
      name: "own",
      title: "own",
      models: ["mine"],
      trust: "taught",
      blocks: [{ open: ["<<"], close: [close], bodies: [body] }],
      result: { role: "user", each: "{text}" },
    };
    const calls = [1, 2].map((path) => ({ name: "write_file", arguments: `{"path":"${path}"}` }));
    const tools = [writeFile];
    const items = decodeText(`Now. ${encodeCalls(own, calls, tools)}`, { dialect: own, tools }).items;
    const told = items.map((item) =>
      item.type === "call" ? [item.name, JSON.parse(item.arguments) as unknown, item.complete] : item.type,
    );
    const whole = (path: string) => ["write_file", { path }, true];
    expect(told, body.kind).toEqual(["message", whole("1"), whole("2")]);
  }
});
