import { expect, test } from "vitest";
import type { CallItem, Item } from "../../src/spec/model.ts";
import { repairs } from "../../src/dialect/repairs.ts";
import { kinds } from "./corpus.ts";
import { reading, repairsOf } from "./reading.ts";

const squeeze = (text: string) => text.replace(/\s+/g, " ").trim();

/** Pieces of 1 to 13 characters, the same ones each time. */
function pieces(text: string): readonly string[] {
  const list: string[] = [];
  for (let at = 0, length = 7; at < text.length; at += length, length = ((length * 5 + 3) % 13) + 1)
    list.push(text.slice(at, at + length));
  return list;
}

test.each(kinds.map((kind) => [kind.dialect, kind.input, kind] as const))("%s reads %j", (dialect, input, kind) => {
  const options = { dialect, tools: kind.tools ?? [], startsIn: kind.starts ?? "unknown" } as const;
  const whole = reading(input, options);
  expect(whole.whole).toEqual(kind.calls);
  if (kind.text !== undefined) expect(squeeze(whole.text)).toBe(squeeze(kind.text));
  if (kind.thoughts !== undefined) expect(squeeze(whole.thoughts)).toBe(squeeze(kind.thoughts));
  for (const cut of [input.split(""), pieces(input)]) expect(reading(cut, options).items).toEqual(whole.items);
});

test("every repair on the list is one that some answer needs", () => {
  const seen = new Set<unknown>();
  const note = (items: readonly Item[]) => {
    for (const item of items) if (item.type === "call") for (const one of repairsIn(item)) seen.add(one);
  };
  for (const { dialect, input, tools = [] } of kinds) note(reading(input, { dialect, tools }).items);
  expect([...seen].toSorted()).toEqual(Object.keys(repairs).toSorted());
});

function repairsIn(call: CallItem): readonly unknown[] {
  const list = repairsOf(call);
  return Array.isArray(list) ? list : [];
}
