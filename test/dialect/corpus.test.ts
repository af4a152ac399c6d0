import { expect, test } from "vitest";
import { cases, cut, judge, read, type Case } from "./corpus.ts";
import { differences } from "./differences.ts";

const wrong = (one: Case) => judge(one, read(one, [one.input]));

test("every case that real parsers were tested with is read right, but for those listed with a reason", () => {
  const missed = cases.filter((one) => wrong(one) !== undefined).map(({ id }) => id);
  expect(missed.toSorted()).toEqual([...differences.keys()].toSorted());
});

test.each(["core", "plain", "edge"] as const)("the score on %s cases holds", (tier) => {
  const all = cases.filter((one) => one.tier === tier);
  const right = all.filter((one) => wrong(one) === undefined).length;
  const reasoned = all.filter((one) => differences.has(one.id)).length;
  expect(right + reasoned).toBe(all.length);
  expect(right / all.length).toBeGreaterThanOrEqual({ core: 0.99, plain: 1, edge: 0.64 }[tier]);
});

test("how an answer is cut into chunks changes nothing", () => {
  for (const one of cases) {
    const whole = read(one, [one.input]);
    for (const lengths of [[1], [7], [2, 5, 1, 13], one.chunk_lens ?? [3]]) {
      expect(read(one, cut(one.input, lengths)), `${one.id} by ${lengths.join()}`).toEqual(whole);
    }
  }
});
