import { joinLines, splitLines, type ResultLine } from "./lines.ts";
import { placeChunks, type MatchOptions } from "./match.ts";
import { CallError } from "../../index.ts";
import type { Chunk } from "./parse.ts";

/**
 * The text of one file with its chunks applied. Lines that stay keep their bytes, and a missing
 * newline at the end stays missing.
 */
export function applyChunks(text: string, chunks: readonly Chunk[], options: MatchOptions): string {
  const old = splitLines(text);
  const placed = placeChunks(old.texts, chunks, options).toSorted((a, b) => a.start - b.start);
  const result: ResultLine[] = [];
  const keep = (from: number, to: number) => {
    for (let index = from; index < to; index++) result.push({ text: old.texts[index]!, ending: old.endings[index]! });
  };
  let at = 0;
  for (const { start, length, lines } of placed) {
    if (start < at) throw new CallError("failed", `Two chunks of the patch change the same lines of ${options.path}.`);
    keep(at, start);
    at = start;
    for (const line of lines) {
      if (line.op === "+") result.push({ text: line.text });
      else {
        if (line.op === " ") keep(at, at + 1);
        at++;
      }
    }
    at = start + length;
  }
  keep(at, old.texts.length);
  const closed = options.codex || old.texts.length === 0 || old.endings.at(-1) !== "";
  return joinLines(result, old.ending, closed);
}
