// One tool, three ways to write its input. The handler's type follows from the schema.
import { createEngine, defineTool, freeform } from "callgate";
import { z } from "zod";

const add = defineTool({
  name: "add",
  description: "Add two numbers.",
  input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  parallel: true,
  run: ({ a, b }) => `${a + b}`,
});

const shout = defineTool({
  name: "shout",
  description: "Say it louder.",
  input: z.object({ text: z.string(), times: z.number().int().min(1).default(1) }),
  run: ({ text, times }) => `${text.toUpperCase()}${"!".repeat(times)}`,
});

const count = defineTool({
  name: "count_words",
  description: "Count the words of a text.",
  input: freeform(),
  run: (text) => ({ words: text.split(/\s+/).filter(Boolean).length }),
});

const engine = createEngine({ tools: [add, shout, count] });
for (const [name, input] of [
  ["add", { a: 2, b: 40 }],
  ["shout", { text: "hello" }],
  ["count_words", "one two three"],
  ["add", { a: 2, c: 40 }],
  ["ad", {}],
] as const) {
  const { ok, code, content } = await engine.call(name, input);
  console.log(
    name,
    ok ? "→" : `✗ ${code}:`,
    content.map((part) => (part.type === "text" ? part.text : part.type)).join("\n"),
  );
}
await engine.close();
