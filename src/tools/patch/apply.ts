import { joinLines, splitLines, type ResultLine } from "./lines.ts";
import { placeChunks, type MatchOptions } from "./match.ts";
import { CallError } from "../../index.ts";
import type { Chunk } from "./parse.ts";

/**
 * The text of one file with its chunks applied. Lines that stay keep their bytes, and a missing
 * newline at the end stays missing.
 */
export function applyChunks(text: string, chunks: readonly Chunk[], options: MatchOptions): string {
  return applyExactly(text, chunks, options.codex) ?? applyByLine(text, chunks, options);
}

/** Any patch that can be applied at all, or the reason why it cannot. */
export function applyByLine(text: string, chunks: readonly Chunk[], options: MatchOptions): string {
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

/**
 * The same for the usual patch, whose lines are those of the file to the byte: they are searched for in
 * the text as it is, which is much cheaper than taking the file apart. Undefined where anything is
 * unusual or wrong; then the lines decide.
 */
function applyExactly(text: string, chunks: readonly Chunk[], codex: boolean): string | undefined {
  if (text === "" || text.includes("\r")) return undefined;
  const isClosed = text.endsWith("\n");
  const whole = isClosed ? text : `${text}\n`;
  const places: number[] = [];
  const olds: string[] = [];
  let result = "";
  let from = 0;
  for (const chunk of chunks) {
    const old = chunkText(chunk, "+");
    if (old === "" || chunk.atEnd || chunk.nearLine !== undefined) return undefined;
    let start = from;
    for (const anchor of chunk.anchors) {
      const at = findLines(whole, `${anchor}\n`, start);
      if (at < 0) return undefined;
      start = at + anchor.length + 1;
    }
    start = findLines(whole, old, start);
    if (start < 0) return undefined;
    places.push(start);
    olds.push(old);
    result += whole.slice(from, start) + chunkText(chunk, "-");
    from = start + old.length;
  }
  if (!codex && !areUnique(whole, chunks, olds, places)) return undefined;
  result += whole.slice(from);
  return isClosed || codex ? result : result.slice(0, -1);
}

/** The lines of a chunk as they stand in a file, but for those added (`+`), or for those removed (`-`). */
function chunkText(chunk: Chunk, without: "+" | "-"): string {
  let text = "";
  for (const line of chunk.lines) if (line.op !== without) text += `${line.text}\n`;
  return text;
}

/** Where whole lines begin in a text, at the start of a line; -1 if nowhere. `from` is the start of a line. */
function findLines(text: string, lines: string, from: number): number {
  if (text.startsWith(lines, from)) return from;
  const before = text.indexOf(`\n${lines}`, from);
  return before < 0 ? -1 : before + 1;
}

/** Whether no chunk fits a second time before the place of the next one. An anchor settles that. */
function areUnique(
  whole: string,
  chunks: readonly Chunk[],
  olds: readonly string[],
  places: readonly number[],
): boolean {
  return olds.every((old, index) => {
    if (chunks[index]!.anchors.length > 0) return true;
    // Cut, because a search that finds nothing reads on to the end, and there may be many chunks.
    const space = whole.slice(places[index], places[index + 1]);
    return !space.includes(`\n${old}`);
  });
}
