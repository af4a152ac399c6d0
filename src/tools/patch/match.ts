/** Finds where in a file the chunks of a patch belong, or says why it cannot. */
import { CallError } from "../../index.ts";
import { nearestPlace } from "./nearest.ts";
import type { Chunk, ChunkLine } from "./parse.ts";

/** A chunk's place: `start` is the first of its `length` old lines, in lines counted from 0. */
export interface Placement {
  readonly start: number;
  readonly length: number;
  readonly lines: readonly ChunkLine[];
}

export interface MatchOptions {
  readonly path: string;
  /** Like codex: the first match is taken, and additions without old lines go to the end. */
  readonly codex: boolean;
}

const typographic: readonly (readonly [RegExp, string])[] = [
  [/[\u2010-\u2015\u2212]/g, "-"],
  [/[\u2018-\u201b]/g, "'"],
  [/[\u201c-\u201f]/g, '"'],
  [/[\u00a0\u2002-\u200a\u202f\u205f\u3000]/g, " "],
];

/** More and more tolerant readings of a line. The next one is tried only if the one before found nothing. */
const levels: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => line.trimEnd(),
  (line) => line.trim(),
  (line) => typographic.reduce((text, [from, to]) => text.replace(from, to), line).trim(),
];

/** Finds the place of every chunk, in order, or says which one has none and what comes nearest. */
export function placeChunks(
  texts: readonly string[],
  chunks: readonly Chunk[],
  options: MatchOptions,
): readonly Placement[] {
  const file = createIndex(texts);
  const found: Found[] = [];
  let from = 0;
  for (const chunk of chunks) {
    const hit = placeChunk(file, chunk, from, options);
    const placed = hit instanceof Error ? placeStray(file, chunk, found, hit, options) : hit;
    found.push(placed);
    from = Math.max(from, placed.start + placed.length);
  }
  if (!options.codex) refuseAmbiguous(file, found, options.path);
  return found;
}

interface Found extends Placement {
  readonly chunk: Chunk;
  readonly old: readonly string[];
  /** -1: nothing was searched for. */
  readonly level: number;
  /** It is not in the order of the file, but there is only one place for it. */
  readonly isStray?: boolean;
}

/** Chunks should come in the file's order. One that does not is accepted if its lines occur in one place only. */
function placeStray(
  file: FileIndex,
  chunk: Chunk,
  found: readonly Found[],
  failure: CallError,
  options: MatchOptions,
): Found {
  const hit = options.codex || found.length === 0 ? failure : placeChunk(file, chunk, 0, options);
  if (hit instanceof Error || hit.level < 0 || file.find(hit.old, hit.level, 0, 2).length > 1) throw failure;
  const overlaps = found.some(({ start, length }) => start < hit.start + hit.length && hit.start < start + length);
  if (overlaps) throw failure;
  return { ...hit, isStray: true };
}

function placeChunk(file: FileIndex, chunk: Chunk, from: number, options: MatchOptions): Found | CallError {
  const start = afterAnchors(file, chunk, from, options.path);
  if (start instanceof Error) return start;
  const old = oldLines(chunk.lines);
  if (old.length === 0)
    return { chunk, old, start: additionPlace(file, chunk, start, options), length: 0, lines: chunk.lines, level: -1 };
  const hit = seek(file, old, start, chunk);
  if (hit) return { chunk, old, ...hit, length: old.length, lines: chunk.lines };
  // Models often end a chunk with an empty line that the file does not have.
  const shorter = withoutLastBlank(chunk.lines);
  const shorterOld = shorter && oldLines(shorter);
  const second = shorterOld && shorterOld.length > 0 ? seek(file, shorterOld, start, chunk) : undefined;
  if (shorter && shorterOld && second)
    return { chunk, old: shorterOld, ...second, length: shorterOld.length, lines: shorter };
  return notFound(file, chunk, old, start, options.path);
}

function oldLines(lines: readonly ChunkLine[]): readonly string[] {
  return lines.filter((line) => line.op !== "+").map((line) => line.text);
}

function withoutLastBlank(lines: readonly ChunkLine[]): readonly ChunkLine[] | undefined {
  const at = lines.findLastIndex((line) => line.op !== "+");
  if (at < 0 || lines[at]!.text !== "") return undefined;
  const rest = lines.toSpliced(at, 1);
  const last = rest.at(-1);
  return lines[at]!.op === "-" && last?.op === "+" && last.text === "" ? rest.slice(0, -1) : rest;
}

/** The line after the last anchor. Anchors are searched one after the other. */
function afterAnchors(file: FileIndex, chunk: Chunk, from: number, path: string): number | CallError {
  let at = from;
  for (const anchor of chunk.anchors) {
    const hit = seekAnchor(file, anchor, at);
    if (hit === undefined) {
      return new CallError("failed", `The patch does not fit ${path}: no line '${anchor.trim()}' after line ${at}.`, {
        hint: nearestPlace(file.texts, [anchor]) ?? "Read the file and use one of its lines after '@@'.",
        data: { path, patchLine: chunk.patchLine },
      });
    }
    at = hit + 1;
  }
  return at;
}

function seekAnchor(file: FileIndex, anchor: string, from: number): number | undefined {
  for (let level = 0; level < levels.length; level++) {
    const [hit] = file.find([anchor], level, from, 1);
    if (hit !== undefined) return hit;
  }
  // `@@ class Name` is often written without the rest of the line.
  const start = anchor.trim();
  const hit = file.texts.findIndex((text, index) => index >= from && text.trimStart().startsWith(start));
  return hit < 0 ? undefined : hit;
}

function additionPlace(file: FileIndex, chunk: Chunk, afterAnchor: number, { codex }: MatchOptions): number {
  const end = file.texts.length;
  if (codex || chunk.atEnd) return end;
  if (chunk.anchors.length > 0) return afterAnchor;
  return chunk.nearLine === undefined ? end : Math.min(chunk.nearLine, end);
}

function seek(
  file: FileIndex,
  old: readonly string[],
  from: number,
  chunk: Chunk,
): { readonly start: number; readonly level: number } | undefined {
  for (let level = 0; level < levels.length; level++) {
    const last = file.texts.length - old.length;
    if (chunk.atEnd && last >= from && file.fits(old, level, last)) return { start: last, level };
  }
  for (let level = 0; level < levels.length; level++) {
    if (chunk.atEnd || chunk.nearLine !== undefined) {
      const hits = file.find(old, level, from);
      const wanted = chunk.atEnd ? Infinity : chunk.nearLine! - 1;
      const best = hits.toSorted((a, b) => Math.abs(a - wanted) - Math.abs(b - wanted) || b - a)[0];
      if (best !== undefined) return { start: chunk.atEnd ? hits.at(-1)! : best, level };
      continue;
    }
    const [hit] = file.find(old, level, from, 1);
    if (hit !== undefined) return { start: hit, level };
  }
  return undefined;
}

/**
 * Chunks come in order, so given the others each has a first and a last possible place. If these
 * differ, the patch does not say which one it means, and a guess might change the wrong lines.
 */
function refuseAmbiguous(file: FileIndex, found: readonly Found[], path: string): void {
  let bound = file.texts.length;
  for (const hit of found.toReversed()) {
    const { chunk, old, level, start, length } = hit;
    if (hit.isStray) continue;
    const pinned = level < 0 || chunk.anchors.length > 0 || chunk.atEnd || chunk.nearLine !== undefined;
    if (!pinned) {
      const others = file.find(old, level, start).filter((at) => at + length <= bound);
      if (others.length > 1) throw ambiguous(path, chunk, others);
    }
    if (level >= 0) bound = start;
  }
}

function ambiguous(path: string, chunk: Chunk, places: readonly number[]): CallError {
  const lines = places.slice(0, 10).map((at) => at + 1);
  const more = places.length > lines.length ? ` and ${places.length - lines.length} more` : "";
  return new CallError(
    "failed",
    `The patch does not say which place of ${path} it means: its chunk at patch line ${chunk.patchLine} fits at lines ${lines.join(", ")}${more}.`,
    {
      hint: "Add lines of context around the change, or an '@@ ' line with a line that stands above the place.",
      data: { path, patchLine: chunk.patchLine, lines },
    },
  );
}

function notFound(file: FileIndex, chunk: Chunk, old: readonly string[], from: number, path: string): CallError {
  const where = from === 0 ? "" : ` after line ${from}`;
  const wanted = old.slice(0, 20).map((line) => `  ${line}`);
  return new CallError(
    "failed",
    `The patch does not fit ${path}: these lines are not there${where}:\n${wanted.join("\n")}`,
    {
      hint: nearestPlace(file.texts, old) ?? "Nothing in the file is like them; read the file again.",
      data: { path, patchLine: chunk.patchLine },
    },
  );
}

/** Where lines are, by text, per level; made once per file and level. */
interface FileIndex {
  readonly texts: readonly string[];
  find(old: readonly string[], level: number, from: number, limit?: number): readonly number[];
  fits(old: readonly string[], level: number, at: number): boolean;
}

function createIndex(texts: readonly string[]): FileIndex {
  const read: (readonly string[] | undefined)[] = [];
  const places: (ReadonlyMap<string, readonly number[]> | undefined)[] = [];
  const lines = (level: number) => (read[level] ??= level === 0 ? texts : texts.map(levels[level]!));
  const byText = (level: number) => (places[level] ??= groupByText(lines(level)));

  const fits = (old: readonly string[], level: number, at: number): boolean => {
    const own = lines(level);
    return (
      at >= 0 && at + old.length <= own.length && old.every((line, index) => own[at + index] === levels[level]!(line))
    );
  };

  return {
    texts,
    fits,
    find(old, level, from, limit = Infinity) {
      // Starts from the old line that is rarest in the file, because most files have few places for it.
      const candidates = old.map((line) => byText(level).get(levels[level]!(line)) ?? []);
      const rarest = candidates.reduce(
        (best, list, index) => (list.length < candidates[best]!.length ? index : best),
        0,
      );
      const hits: number[] = [];
      for (const place of candidates[rarest] ?? []) {
        const at = place - rarest;
        if (at >= from && fits(old, level, at)) hits.push(at);
        if (hits.length >= limit) break;
      }
      return hits;
    },
  };
}

function groupByText(lines: readonly string[]): ReadonlyMap<string, readonly number[]> {
  const groups = new Map<string, number[]>();
  for (const [index, line] of lines.entries()) {
    const list = groups.get(line);
    if (list) list.push(index);
    else groups.set(line, [index]);
  }
  return groups;
}
