/** The shared sample of real model texts, and how one of our readings is judged against it. */
import { readFileSync } from "node:fs";
import { partsToText } from "../../src/base/content.ts";
import { createTextDecoder, type ToolLike } from "../../src/dialect/index.ts";
import type { CallItem, Item } from "../../src/spec/model.ts";

export interface Case {
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

export const cases: readonly Case[] = readFileSync(
  new URL("../../../shared/data/text-calls.jsonl", import.meta.url),
  "utf8",
)
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Case);

/** `lengths` in code points, as the file counts them; the last one repeats. */
export function cut(text: string, lengths: readonly number[]): readonly string[] {
  const points = Array.from(text);
  const pieces: string[] = [];
  for (let at = 0, index = 0; at < points.length; index++) {
    const length = Math.max(1, lengths[Math.min(index, lengths.length - 1)] ?? points.length);
    pieces.push(points.slice(at, at + length).join(""));
    at += length;
  }
  return pieces;
}

export function read(one: Case, pieces: readonly string[]): readonly Item[] {
  const decoder = createTextDecoder({ dialect: one.dialect, tools: one.tools, startsIn: one.starts_in ?? "unknown" });
  const items: Item[] = [];
  for (const event of [...pieces.flatMap((piece) => decoder.push(piece)), ...decoder.end()]) {
    if (event.type === "item.done") items[event.index] = event.item;
  }
  return items;
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
export function judge(one: Case, items: readonly Item[]): string | undefined {
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
