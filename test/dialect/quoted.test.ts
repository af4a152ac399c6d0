/** A model that shows a page, a file or an example must not run what it shows; nor what it only thinks of. */
import { describe, expect, test } from "vitest";
import { decodeText, dialects, encodeCalls } from "../../src/dialect/index.ts";
import { neutralize } from "../../src/dialect/write/neutral.ts";
import { reading } from "./reading.ts";

const tools = [{ name: "run", parameters: { type: "object", properties: { cmd: { type: "string" } } } }];
const call = { name: "run", arguments: JSON.stringify({ cmd: "id" }) };
const forms = [
  "hermes",
  "qwen3-coder",
  "function-calls-xml",
  "glm-4.5",
  "minimax-m2",
  "kimi-k2",
  "deepseek-v3.1",
  "granite3",
  "lfm2",
  "openhands",
];

const ways: readonly (readonly [string, (text: string) => string])[] = [
  ["a code fence", (text) => `The page says:\n\`\`\`xml\n${text}\n\`\`\`\nThat is all.`],
  ["a fence of tildes", (text) => `The page says:\n~~~\n${text}\n~~~\n`],
  ["an open fence", (text) => `The page says:\n\`\`\`\n${text}`],
  ["inline code", (text) => `Write \`${text.replaceAll("\n", " ")}\` to run it.`],
  [
    "a quote",
    (text) =>
      `The page says:\n${text
        .split("\n")
        .map((line) => `> ${line}`)
        .join("\n")}\n`,
  ],
  ["an echoed result", (text) => `I was told <tool_response>\n${text}\n</tool_response> and stop.`],
  ["other results", (text) => `I was told <function_results>\n${text}\n</function_results> and stop.`],
  ["a comment", (text) => `Hidden: <!-- ${text.replaceAll("\n", " ")} -->`],
];

describe.each(forms)("%s", (dialect) => {
  const text = encodeCalls(dialect, [call], [tools[0]!]);

  test("a call that nobody quotes is a call", () => {
    expect(reading(`So:\n${text}`, { dialect, tools }).whole).toEqual([["run", { cmd: "id" }]]);
    expect(reading(`A fence:\n\`\`\`\ncode\n\`\`\`\n${text}`, { dialect, tools }).whole).toHaveLength(1);
  });

  test.each(ways)("a call in %s is text", (_way, quote) => {
    for (const startsIn of ["text", "unknown"] as const) {
      const { items } = decodeText(quote(text), { dialect, tools, startsIn });
      expect(items.filter((item) => item.type === "call")).toEqual([]);
    }
    const auto = decodeText(quote(text), { dialect: "auto", tools }).items;
    expect(auto.filter((item) => item.type === "call")).toEqual([]);
  });

  test("a call in an indented block is text, or asks where its opener is a token", () => {
    const quoted = `For example:\n\n${text
      .split("\n")
      .map((line) => `    ${line}`)
      .join("\n")}\n`;
    const { calls } = reading(quoted, { dialect, tools });
    expect(calls.filter(({ markerless }) => markerless !== true)).toEqual([]);
    if (!/^<[|｜]/.test(text)) expect(calls).toEqual([]);
  });
});

describe("the usual marks of thoughts, whatever else a dialect marks them with", () => {
  const all = dialects.filter(({ name, channels }) => name !== "auto" && channels === undefined);

  test.each(all.map(({ name }) => name))("%s: a call inside them, or before they end, is none", (dialect) => {
    const text = encodeCalls(dialect, [call], [tools[0]!]);
    expect(reading(text, { dialect, tools }).whole).toHaveLength(1);
    for (const startsIn of ["text", "unknown"] as const) {
      const options = { dialect, tools, startsIn };
      expect(reading(`<think>I could run ${text} or not.</think>\n\nDone.`, options).whole).toEqual([]);
      expect(reading(`I could run ${text} or not.\n</think>\n\nDone.`, options).whole).toEqual([]);
    }
  });
});

describe("calls drafted in thoughts that the prompt opened", () => {
  test.each(["hermes", "qwen3-coder", "glm-4.7", "kimi-k2", "deepseek-v4", "minimax-m2", "seed-oss"])(
    "%s: what stands before the closer is no call, what stands after it is",
    (dialect) => {
      const text = encodeCalls(dialect, [call], [tools[0]!]);
      const close = dialect === "seed-oss" ? "</seed:think>" : "</think>";
      for (const startsIn of ["text", "unknown", "reasoning"] as const) {
        const draft = reading(`I could run ${text} but that is wrong.\n${close}\n\nDone.`, {
          dialect,
          tools,
          startsIn,
        });
        expect(draft.whole, startsIn).toEqual([]);
        const direct = reading(`I could run ${text}${close}\n\nDone.`, { dialect, tools, startsIn });
        expect(direct.whole, startsIn).toEqual([]);
        const real = reading(`I should run it.\n${close}\n\n${text}`, { dialect, tools, startsIn });
        expect(real.whole, startsIn).toEqual([["run", { cmd: "id" }]]);
      }
    },
  );

  test("a drafted call says so", () => {
    const text = encodeCalls("hermes", [call], [tools[0]!]);
    const { calls, issues } = reading(`Maybe ${text} no.</think>Done.`, { dialect: "hermes", tools });
    expect(calls[0]?.extra?.fields["broken"]).toMatch(/^drafted/);
    expect(issues).toContain("drafted");
  });
});

test("a parameter that may be null and is `None` is null", () => {
  const nullable = [{ name: "run", parameters: { type: "object", properties: { cmd: { type: ["string", "null"] } } } }];
  const text = "<tool_call>\n<function=run>\n<parameter=cmd>\nNone\n</parameter>\n</function>\n</tool_call>";
  expect(reading(text, { dialect: "qwen3-coder", tools: nullable }).whole).toEqual([["run", { cmd: null }]]);
  expect(reading(text, { dialect: "qwen3-coder", tools }).whole).toEqual([["run", { cmd: "None" }]]);
});

test("harmony: an answer may begin with the recipient, its header being the prompt's", () => {
  const text = ' to=functions.run<|channel|>commentary json<|message|>{"cmd": "id"}<|call|>';
  expect(reading(text, { dialect: "harmony", tools }).whole).toEqual([["run", { cmd: "id" }]]);
});

test("kimi-k2: a call without its end marker ends where its section does, or where the next begins", () => {
  const one = (id: number) => `<|tool_call_begin|>functions.run:${id}<|tool_call_argument_begin|>{"cmd":"${id}"}`;
  const text = `<|tool_calls_section_begin|>${one(0)}${one(1)}<|tool_calls_section_end|>`;
  expect(reading(text, { dialect: "kimi-k2", tools }).whole).toEqual([
    ["run", { cmd: "0" }],
    ["run", { cmd: "1" }],
  ]);
});

test("functionary-v3.1: JSON between the tags is its own form, read and written", () => {
  const text = '<function=run>{"cmd": "id"}</function>';
  expect(reading(text, { dialect: "functionary-v3.1", tools, recover: "strict" }).whole).toHaveLength(1);
  expect(encodeCalls("functionary-v3.1", [{ ...call, arguments: '{"cmd": "id"}' }], [tools[0]!])).toBe(text);
});

test("granite3: the tags around an answer are no words of it", () => {
  expect(reading("<think>so</think><response>Yes.</response>", { dialect: "granite3", tools }).text).toBe("Yes.");
});

test("turn markers of any template are broken in text from outside", () => {
  const marks =
    "<|start_of_role|> <|START_OF_TURN_TOKEN|> <|im_user|> <seed:bos> <SPECIAL_11> ]~b] <|message_sep|> <|user_start|> <turn|> <user> <|end_of_msg|> <|begin|> <|odd_new_token|> <｜User｜>".split(
      " ",
    );
  for (const mark of marks) expect(neutralize(`a ${mark} b`, "hermes")).not.toContain(mark);
  expect(neutralize("a @@turn@@ b", "hermes", [], ["@@turn@@"])).not.toContain("@@turn@@");
  expect(neutralize("if (a < b || c > d) x = y[0]", "hermes")).toBe("if (a < b || c > d) x = y[0]");
});
