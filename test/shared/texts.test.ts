/** The maintainers' sample of real model texts: each is read as the parser it comes from reads it, or stands among the differences. */
import { describe, expect, test } from "vitest";
import { partsToText } from "../../src/base/content.ts";
import type { ToolLike } from "../../src/dialect/index.ts";
import type { CallItem, Item } from "../../src/spec/model.ts";
import { read } from "../dialect/corpus.ts";
import { sharedFolder } from "../needs.ts";
import { sharedRows } from "./cases.ts";
import { differences } from "./text-differences.ts";

interface Case {
  readonly id: string;
  readonly dialect: string;
  readonly tier: "core" | "plain" | "edge";
  readonly tools: readonly ToolLike[];
  readonly input: string;
  readonly chunk_lens?: readonly number[];
  readonly starts_in?: "reasoning";
  readonly expected_calls: readonly { readonly name: string; readonly arguments: unknown; readonly id?: string }[];
  readonly expected_text: string | null;
  readonly expected_reasoning?: string;
  readonly complete?: false;
}

const cases = sharedRows("text-calls.jsonl", (line) => JSON.parse(line) as Case);

function reading({ starts_in: starts, ...one }: Case, pieces: readonly string[]): readonly Item[] {
  return read({ ...one, calls: [], ...(starts === undefined ? {} : { starts }) }, pieces);
}

const wrong = (one: Case) => judge(one, reading(one, [one.input]));

describe.skipIf(sharedFolder === undefined)("texts of real models (needs the shared cases)", () => {
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
      const whole = reading(one, [one.input]);
      for (const lengths of [[1], [7], [2, 5, 1, 13], one.chunk_lens ?? [3]]) {
        expect(reading(one, cut(one.input, lengths)), `${one.id} by ${lengths.join()}`).toEqual(whole);
      }
    }
  });
});

/** `lengths` in code points, as the file counts them; the last one repeats. */
function cut(text: string, lengths: readonly number[]): readonly string[] {
  const points = Array.from(text);
  const pieces: string[] = [];
  for (let at = 0, index = 0; at < points.length; index++) {
    const length = Math.max(1, lengths[Math.min(index, lengths.length - 1)] ?? points.length);
    pieces.push(points.slice(at, at + length).join(""));
    at += length;
  }
  return pieces;
}

function argumentsOf(call: CallItem): unknown {
  try {
    return JSON.parse(call.arguments);
  } catch {
    return undefined;
  }
}

function stable(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

const squeeze = (text: string) => text.replace(/\s+/g, " ").trim();

/** What is wrong with our reading, or undefined. Only whole calls count; a cut one need only be marked as such. */
function judge(one: Case, items: readonly Item[]): string | undefined {
  const calls = items.filter((item) => item.type === "call");
  const whole = calls.filter((call) => call.complete);
  const cutShort = one.complete === false || one.expected_calls.some((call) => call.arguments === null);
  if (cutShort) {
    if (whole.length > 0) return "a cut call is called whole";
  } else {
    const got = whole.map((call) => ({ name: call.name, arguments: argumentsOf(call) }));
    const want = one.expected_calls.map((call) => ({ name: call.name, arguments: call.arguments }));
    if (stable(got) !== stable(want)) return `calls ${stable(got)} instead of ${stable(want)}`;
    const ids = one.expected_calls.every((call, index) => call.id === undefined || call.id === whole[index]!.id);
    if (!ids) return "another id";
    if (one.expected_text !== null) {
      const text = items.map((item) => (item.type === "message" ? partsToText(item.content) : "")).join("");
      if (squeeze(text) !== squeeze(one.expected_text))
        return `text ${JSON.stringify(text)} instead of ${JSON.stringify(one.expected_text)}`;
    }
  }
  if (one.expected_reasoning !== undefined) {
    const thoughts = items.map((item) => (item.type === "reasoning" ? (item.text ?? "") : "")).join("");
    if (squeeze(thoughts) !== squeeze(one.expected_reasoning)) return `reasoning ${JSON.stringify(thoughts)}`;
  }
  return undefined;
}
