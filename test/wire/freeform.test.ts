import * as fc from "fast-check";
import { expect, test } from "vitest";
import { argumentsText } from "../../src/wire/arguments.ts";
import { unwrapFreeform } from "../../src/wire/freeform.ts";

const wrap = (text: string) => argumentsText({ kind: "custom", arguments: text });

test("what was wrapped comes back exactly, fences and braces included", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(unwrapFreeform(wrap(text), "t")).toBe(text);
    }),
  );
  expect(unwrapFreeform(wrap("```\nx\n```"), "t")).toBe("```\nx\n```");
});

const patch = "*** Begin Patch\n*** End Patch";

test.each([
  ["under another name", JSON.stringify({ patch })],
  ["under a name of its own", JSON.stringify({ body: patch })],
  ["as a word list that begins with the tool", JSON.stringify({ command: ["apply_patch", patch] })],
  ["as a JSON string", JSON.stringify(patch)],
  ["bare", patch],
  ["in a Markdown fence", `\`\`\`diff\n${patch}\n\`\`\``],
  ["in a heredoc", `apply_patch <<'EOF'\n${patch}\nEOF\n`],
])("the text is found %s", (_how, args) => {
  expect(unwrapFreeform(args, "apply_patch")).toBe(patch);
});

test("an object that was cut, or holds no text, is no text", () => {
  expect(unwrapFreeform('{"input":"*** Beg', "apply_patch")).toBeUndefined();
  expect(unwrapFreeform('{"a":1,"b":2}', "apply_patch")).toBeUndefined();
});
