/** Answers of the kinds that the parsers of model servers are tested with, written by us: the texts that every law starts from. */
import { readFileSync } from "node:fs";
import { createTextDecoder, type ToolLike } from "../../src/dialect/index.ts";
import type { Item } from "../../src/spec/model.ts";

export interface Kind {
  readonly dialect: string;
  readonly tools?: readonly ToolLike[];
  readonly input: string;
  readonly calls: readonly unknown[];
  readonly text?: string;
  readonly thoughts?: string;
  readonly starts?: "reasoning" | "text" | "unknown";
}

export const kinds: readonly Kind[] = readFileSync(new URL("kinds.jsonl", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Kind);

export function read({ dialect, tools = [], starts = "unknown" }: Kind, pieces: readonly string[]): readonly Item[] {
  const decoder = createTextDecoder({ dialect, tools, startsIn: starts });
  const items: Item[] = [];
  for (const event of [...pieces.flatMap((piece) => decoder.push(piece)), ...decoder.end()]) {
    if (event.type === "item.done") items[event.index] = event.item;
  }
  return items;
}
