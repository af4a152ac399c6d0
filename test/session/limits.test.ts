/** What stops a turn, what it cost, and what counts as going in circles. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { addUsage, createLoopWatch, exceeded, noLimits, noUsage, type Spent } from "../../src/session/limits.ts";
import { costOf, findPrice } from "../../src/session/price.ts";
import type { CallItem, ResultItem, Usage } from "../../src/spec/model.ts";

const nothing: Spent = { requests: 0, calls: 0, usage: noUsage, costUsd: 0, ms: 0 };

test.each<[keyof typeof noLimits, (amount: number) => Partial<Spent>, string]>([
  ["maxRequests", (requests) => ({ requests }), "requests"],
  ["maxCalls", (calls) => ({ calls }), "calls"],
  ["maxTokens", (output) => ({ usage: { input: 0, output } }), "tokens"],
  ["maxTokens", (input) => ({ usage: { input, output: 0 } }), "tokens"],
  ["maxCostUsd", (costUsd) => ({ costUsd }), "US dollars"],
  ["maxMs", (ms) => ({ ms }), "ms"],
])("%s stops a turn when it is reached, not before, and says so", (name, spent, words) => {
  const limits = { ...noLimits, [name]: 10 };
  expect(exceeded(limits, { ...nothing, ...spent(9) })).toBeUndefined();
  expect(exceeded(limits, { ...nothing, ...spent(10) })).toBe(`10 ${words}`);
  expect(exceeded(limits, { ...nothing, ...spent(11) })).toBe(`10 ${words}`);
  expect(exceeded(noLimits, { ...nothing, ...spent(1e15) })).toBeUndefined();
});

const amount = fc.nat(1_000_000);
const usage: fc.Arbitrary<Usage> = fc.record(
  { input: amount, output: amount, cached: amount, cacheWritten: amount, reasoning: amount },
  { requiredKeys: ["input", "output"] },
);

test("usage adds up in any order, kind by kind, and what was not told counts as nothing", () => {
  fc.assert(
    fc.property(usage, usage, (a, b) => {
      expect(addUsage(a, b)).toEqual(addUsage(b, a));
      for (const key of ["input", "output", "cached", "cacheWritten", "reasoning"] as const)
        expect(addUsage(a, b)[key]).toBe((a[key] ?? 0) + (b[key] ?? 0));
    }),
  );
});

test("a cost is the sum of its parts, and what was cached is paid once, at its own price if there is one", () => {
  expect(costOf({ input: 1_000_000, output: 0 }, { input: 3, output: 15 })).toBe(3);
  expect(costOf({ input: 0, output: 1_000_000 }, { input: 3, output: 15 })).toBe(15);
  expect(costOf({ input: 1_000_000, cached: 400_000, output: 0 }, { input: 3, cached: 1, output: 15 })).toBeCloseTo(
    2.2,
  );
  expect(costOf({ input: 1_000_000, cached: 400_000, output: 0 }, { input: 3, output: 15 })).toBe(3);
});

test("a price is the model's own, else that of the longest pattern; a name that is no model's has none", () => {
  const [any, family, own] = [1, 2, 3].map((input) => ({ input, output: 0 })) as never as {
    input: number;
    output: 0;
  }[];
  const table = { "*": any!, "gpt-*": family!, "gpt-5": own! };
  expect(findPrice(table, "gpt-5")).toBe(own);
  expect(findPrice(table, "gpt-5-mini")).toBe(family);
  expect(findPrice(table, "claude")).toBe(any);
  expect(findPrice({ "gpt-5": own! }, "gpt-5-mini")).toBeUndefined();
  expect(findPrice({}, "constructor")).toBeUndefined();
});

test("only exactly the same call with exactly the same end counts as going in circles", () => {
  const call = (name: string, given: string): CallItem => ({
    type: "call",
    id: "1",
    kind: "function",
    name,
    arguments: given,
    complete: true,
  });
  const result = (text: string, ok = true): ResultItem =>
    ({ type: "result", id: "1", ok, content: [{ type: "text", text }] }) as never;
  const watch = createLoopWatch();
  const seen = [
    [call("a", "{}"), result("x")],
    [call("a", "{}"), result("x")],
    [{ ...call("a", "{}"), id: "2" }, result("x")],
    [call("a", '{"b":1}'), result("x")],
    [call("a", "{}"), result("x")],
    [call("b", "{}"), result("x")],
    [call("b", "{}"), result("y")],
    [call("b", "{}"), result("y", false)],
    [call("b", "{}"), result("y", false)],
  ] as const;
  expect(seen.map(([one, end]) => watch.seen(one, end))).toEqual([1, 2, 3, 1, 1, 1, 1, 1, 2]);
});
