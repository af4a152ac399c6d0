/** Python's own Jinja, set up as transformers does, is the judge of our rendering. */
import { execFileSync } from "node:child_process";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseTemplate, renderTemplate } from "../../src/template/index.ts";
import { fixtures, shared } from "./fixtures.ts";
import { has } from "../needs.ts";

interface Row {
  readonly source: string;
  readonly contexts: readonly Readonly<Record<string, unknown>>[];
}

const reference = new URL("./reference.py", import.meta.url).pathname;

/** What Python makes of each: the text, or null where it fails. */
function renderInPython(rows: readonly Row[]): readonly (readonly (string | null)[])[] {
  const input = rows.map((row) => JSON.stringify(row)).join("\n");
  const out = execFileSync("python3", [reference], { input, encoding: "utf8", maxBuffer: 1 << 28 });
  return out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as (string | null)[]);
}

function renderHere({ source, contexts }: Row): readonly (string | null)[] {
  const now = new Date(2026, 1, 3, 4, 5, 6);
  try {
    const template = parseTemplate(source);
    return contexts.map((context) => {
      try {
        return renderTemplate(template, { ...context, now });
      } catch {
        return null; // refused by the template itself, or a mistake in it
      }
    });
  } catch {
    return contexts.map(() => null);
  }
}

const parameters = {
  type: "object",
  properties: {
    city: { type: "string", description: 'Where; "quoted" <b> & café — 北京' },
    days: { type: "integer", minimum: 1, enum: [1, 2.5, null] },
    tags: { type: ["array", "null"], items: { type: "string" }, default: [] },
    more: { type: "object", properties: { deep: { anyOf: [{ type: "string" }, { type: "null" }] } } },
  },
  required: ["city"],
};
const tools = ["weather", "stop-it"].map((name) => ({
  type: "function",
  function: { name, description: `Does ${name}.\nIn two lines.`, parameters, strict: false },
}));
const input = {
  city: "Zürich \"x\" <y> 'z'\n2",
  days: 3,
  tags: ["a", "b"],
  more: { deep: null, on: true, rate: 1e-7 },
};
const callOf = (args: unknown, id = "call00001", name = "weather") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const system = { role: "system", content: "Be brief." };
const asked = { role: "user", content: "Weather? 😀" };

/** Conversations in the ways that servers hand them to templates. */
const conversations: Readonly<Record<string, readonly object[]>> = {
  question: [asked],
  "system and question": [system, asked],
  "two turns": [asked, { role: "assistant", content: "Sunny." }, { role: "user", content: "And then?" }],
  "a call": [system, asked, { role: "assistant", content: "", tool_calls: [callOf(input)] }],
  "a call, as text": [asked, { role: "assistant", content: null, tool_calls: [callOf(JSON.stringify(input))] }],
  "calls and results": [
    asked,
    { role: "assistant", content: "I look.", tool_calls: [callOf(input), callOf({}, "call00002", "stop-it")] },
    { role: "tool", tool_call_id: "call00001", name: "weather", content: '12°\n{"a": 1}' },
    { role: "tool", tool_call_id: "call00002", name: "stop-it", content: "" },
    { role: "assistant", content: "Cold." },
    { role: "user", content: "Thanks" },
  ],
  "a call with thoughts": [
    asked,
    { role: "assistant", content: "", reasoning_content: "Think\n\nhard.", tool_calls: [callOf(input)] },
    { role: "tool", tool_call_id: "call00001", name: "weather", content: "12" },
  ],
  "thoughts in the answer": [
    asked,
    { role: "assistant", content: "<think>\nhm\n</think>\n\nYes." },
    { role: "user", content: "Ok" },
  ],
  "parts of content": [{ role: "user", content: [{ type: "text", text: "Look" }, { type: "image" }] }],
};
const settings: readonly Readonly<Record<string, unknown>>[] = [
  { add_generation_prompt: true },
  { add_generation_prompt: false, tools },
  { add_generation_prompt: true, tools, enable_thinking: false, documents: null },
];
const tokens = { bos_token: "<s>", eos_token: "</s>", unk_token: "<unk>", pad_token: "<pad>" };

const text = fc.constantFrom("''", "'a'", "'Ab c'", "' x\\n'", "'1'", "'2.5'", "'é😀'", '"it\'s"', "'a,b,,c'", "name");
const number = fc.constantFrom("0", "1", "2", "-3", "7", "2.5", "-0.5", "1e3", "10 // 3", "1 / 2");
const { expression } = fc.letrec<{ expression: string; value: string }>((tie) => ({
  value: fc.oneof(
    text,
    number,
    fc.constantFrom("none", "true", "false", "missing", "items"),
    fc.array(tie("value"), { maxLength: 3 }).map((list) => `[${list.join(", ")}]`),
    fc
      .array(fc.tuple(text, tie("value")), { maxLength: 2 })
      .map((pairs) => `({${pairs.map(([key, value]) => `${key}: ${value}`).join(", ")}})`),
  ),
  expression: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    tie("value"),
    fc
      .tuple(
        tie("expression"),
        fc.constantFrom("+", "-", "*", "/", "//", "~", "==", "!=", "<", ">=", "and", "or"),
        tie("expression"),
      )
      .map(([left, sign, right]) => `(${left} ${sign} ${right})`),
    fc
      .tuple(
        tie("expression"),
        fc.constantFrom(
          "upper",
          "lower",
          "trim",
          "length",
          "first",
          "last",
          "list",
          "string",
          "int",
          "float",
          "abs",
          "tojson",
          "sort",
          "unique|list",
          "reverse|list",
          "join('-')",
          "default('d')",
          "default('d', true)",
          "replace('a', 'b')",
          "title",
          "capitalize",
          "items|map('first')|list",
          "dictsort|map('last')|list",
          "select|list",
          "reject('none')|list",
          "map('string')|list",
          "round",
          "round(1)",
          "min",
          "max",
          "sum",
          "tojson(indent=2)",
          "batch(2)|list",
        ),
      )
      .map(([value, filter]) => `((${value})|${filter})`),
    fc
      .tuple(
        tie("expression"),
        fc.constantFrom(
          "defined",
          "none",
          "string",
          "number",
          "mapping",
          "sequence",
          "iterable",
          "boolean",
          "integer",
          "float",
          "true",
          "odd",
          "not none",
        ),
      )
      .map(([value, question]) => `((${value}) is ${question})`),
    fc
      .tuple(
        tie("expression"),
        fc.constantFrom(
          "[0]",
          "[-1]",

          ".a",
          "['a']",
          ".strip()",
          ".split(',')",
          ".split()",
          ".upper()",
          ".startswith('a')",
          ".replace('a', '')",
          ".items()|map('last')|list",
          ".keys()|list",
          ".get('a')",
          ".title()",
          ".rstrip('c')",
        ),
      )
      .map(([value, access]) => `((${value})${access})`),
    fc
      .tuple(tie("expression"), tie("expression"), tie("expression"))
      .map(([yes, asked, no]) => `(${yes} if ${asked} else ${no})`),
    tie("expression").map((value) => `(not ${value})`),
    // Of a number there is no slice, and a list is in no object: then constants have rules of their own in Python.
    fc
      .tuple(
        tie("expression"),
        fc.constantFrom("string", "list"),
        fc.constantFrom("[1:]", "[:-1]", "[::-1]", "[-2:]", "[0:1]"),
      )
      .map(([value, kind, part]) => `((${value})|${kind})${part}`),
    fc
      .tuple(
        text,
        fc.constantFrom("in", "not in"),
        fc.oneof(
          text,
          tie("value").map((value) => `[${value}]`),
          text.map((key) => `{${key}: 1}`),
        ),
      )
      .map((words) => `(${words.join(" ")})`),
  ),
}));

describe.skipIf(!has("python3-jinja2"))("as Python's Jinja does it (needs python3-jinja2)", () => {
  const titles = Object.keys(conversations).flatMap((title) => settings.map((_, index) => `${title}, ${index}`));
  const contexts = Object.values(conversations).flatMap((messages) =>
    settings.map((more) => ({ messages, ...tokens, ...more })),
  );

  test("every template of ours and of real models renders every conversation to the byte", () => {
    const rows = [...fixtures, ...shared].map(({ name, source }) => ({ name, source, contexts }));
    const wanted = renderInPython(rows);
    const differences = rows.flatMap((row, index) =>
      renderHere(row).flatMap((here, at) => {
        const python = wanted[index]![at];
        return here === python ? [] : [{ template: row.name, title: titles[at], here, python }];
      }),
    );
    expect(differences).toEqual([]);
    expect(wanted.flat().filter((text) => text !== null).length).toBeGreaterThan((rows.length * contexts.length) / 2);
  });

  test("random expressions print what they print there", () => {
    const expressions = fc.sample(expression, { numRuns: Number(process.env["CALLGATE_EXPRESSIONS"] ?? 400), seed: 7 });
    const rows = expressions.map((text) => ({ source: `{{ ${text} }}`, contexts: [{ name: "it", items: [1, 2] }] }));
    const wanted = renderInPython(rows);
    const differences = rows.flatMap((row, index) => {
      const [here] = renderHere(row);
      const [python] = wanted[index]!;
      return here === python ? [] : [{ source: row.source, here, python }];
    });
    expect(differences).toEqual([]);
  });
});
