import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stableStringify } from "../../src/base/json.ts";
import { decodeText, dialects, encodeCalls, teach, type Dialect } from "../../src/dialect/index.ts";
import { neutralize } from "../../src/dialect/write/neutral.ts";
import { anyArguments, awkward, typedArguments, typedTool } from "./arbitrary.ts";
import { reading } from "./reading.ts";

const runs = Number(process.env["DIALECT_RUNS"] ?? 15);
const named = dialects.map((dialect) => [dialect.name, dialect] as const);

function expectRoundTrip(dialect: Dialect, args: object, tools: readonly (typeof typedTool)[]): void {
  const text = encodeCalls(dialect, [{ name: "f", arguments: JSON.stringify(args) }], tools);
  const { items } = decodeText(text, { dialect, tools });
  expect(items, text).toMatchObject([{ type: "call", name: "f", complete: true }]);
  const [call] = items;
  if (call?.type === "call")
    expect(stableStringify(JSON.parse(call.arguments)), text).toBe(stableStringify(JSON.parse(JSON.stringify(args))));
}

describe.each(named)("%s", (_name, dialect) => {
  test("reads back every call it writes, whatever is in it", () => {
    fc.assert(
      fc.property(typedArguments, (args) => expectRoundTrip(dialect, args, [typedTool])),
      { numRuns: runs },
    );
    fc.assert(
      fc.property(anyArguments, (args) => expectRoundTrip(dialect, args, [typedTool])),
      { numRuns: runs },
    );
    // A tag per tool can only be known by its tool.
    if (dialect.tags === undefined)
      fc.assert(
        fc.property(anyArguments, (args) => expectRoundTrip(dialect, args, [])),
        { numRuns: runs },
      );
  });

  test("gives the same items however the text is cut", () => {
    const pieces = fc.array(
      fc.oneof(
        awkward,
        typedArguments.map((args) =>
          encodeCalls(dialect, [{ name: "f", arguments: JSON.stringify(args) }], [typedTool]),
        ),
      ),
      { maxLength: 4 },
    );
    const law = fc.property(pieces, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (parts, lengths) => {
      const text = parts.join("");
      const cuts: string[] = [];
      for (let at = 0, index = 0; at < text.length; at += lengths[index % lengths.length]!, index++)
        cuts.push(text.slice(at, at + lengths[index % lengths.length]!));
      expect(reading(cuts, { dialect, tools: [typedTool] }).items).toEqual(
        reading(text, { dialect, tools: [typedTool] }).items,
      );
    });
    fc.assert(law, { numRuns: runs });
  });

  // Without a marker there is nothing to take away, so only dialects with one promise this.
  if (dialect.trust !== "markerless") {
    test("finds no call in text that was neutralised", () => {
      const texts = fc.oneof(
        awkward,
        typedArguments.map((args) =>
          encodeCalls(dialect, [{ name: "f", arguments: JSON.stringify(args) }], [typedTool]),
        ),
      );
      const law = fc.property(fc.array(texts), (parts) => {
        const safe = neutralize(parts.join(" "), dialect, [typedTool]);
        expect(reading(`see: ${safe}`, { dialect, tools: [typedTool] }).calls).toEqual([]);
      });
      fc.assert(law, { numRuns: runs });
    });
  }

  test("keeps the order and number of several calls", () => {
    const calls = ["f", "g", "f"].map((name, index) => ({ name, arguments: JSON.stringify({ a: `${index}` }) }));
    const tools = ["f", "g"].map((name) => ({
      name,
      parameters: { type: "object", properties: { a: { type: "string" } } },
    }));
    expect(reading(encodeCalls(dialect, calls, tools), { dialect, tools }).whole).toEqual(
      calls.map(({ name }, index) => [name, { a: `${index}` }]),
    );
  });

  test("teaches with examples that are calls themselves", () => {
    const prompt = teach(dialect, [typedTool]);
    const example = prompt.slice(prompt.lastIndexOf("Example:\n") + "Example:\n".length).trimEnd();
    expect(reading(example, { dialect, tools: [typedTool] }).whole).toMatchObject([["f", { a: "value", n: 1 }]]);
  });
});
