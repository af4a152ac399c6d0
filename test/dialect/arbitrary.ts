/** Values that text formats have lost: markup, fences, quotes, control characters, halves of pairs. */
import * as fc from "fast-check";

const nasty = [
  "</parameter>",
  "</function>",
  "</tool_call>",
  "<tool_call>",
  "<parameter=foo>",
  "<function=x>",
  "</invoke>",
  "</arg_value>",
  "<arg_key>",
  "<f>",
  "</f>",
  "<a>",
  "</a>",
  "\n",
  "\r",
  "\t",
  "\u0000",
  "\u2028",
  "😀",
  "\ud83d",
  "```",
  "`",
  "]]>",
  "<![CDATA[",
  '<|"|>',
  "<escape>",
  "\nEND_ARG",
  "Observation:",
  "<|call|>",
  "<think>",
  "</think>",
  "&lt;",
  "\\",
  '"',
  "'",
  "{",
  "}",
  "[",
  "]",
  ": ",
  "- ",
  "  ",
];

export const awkward = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.array(fc.constantFrom(...nasty, "a", "b "), { maxLength: 6 }).map((parts) => parts.join("")),
);

const number = fc
  .oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .map((value) => (Object.is(value, -0) ? 0 : value));

export const json: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    awkward,
    number,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.oneof(fc.constantFrom("a", "b", "c d"), awkward), tie("value"), { maxKeys: 3 }),
  ),
})).value;

export const anyArguments = fc.dictionary(
  fc.oneof(fc.constantFrom("a", "b", "path", "arguments", "input", "__proto__"), awkward),
  json,
  { maxKeys: 4 },
);

export const typedTool = {
  name: "f",
  parameters: {
    type: "object",
    properties: {
      a: { type: "string" },
      b: {},
      path: { type: ["string", "integer"] },
      n: { type: "integer" },
      l: { type: "array", items: { type: "string" } },
    },
  },
};

export const typedArguments = fc.record(
  {
    a: awkward,
    b: json,
    path: fc.oneof(awkward, fc.integer()),
    n: fc.integer(),
    l: fc.array(awkward, { maxLength: 3 }),
  },
  { requiredKeys: [] },
);
