/** Cuts an output to a budget: its head and its tail, and between them a line that says what is missing. */
import { estimateTokens, fittingEnd, fittingStart, mostTokensPerCharacter } from "../base/tokens.ts";
import type { CapturedOutput } from "../spec/capability.ts";

/** How much of an output a model gets. Whichever limit is reached first applies. */
export interface Budget {
  readonly maxTokens: number;
  readonly maxLines: number;
  /** Bytes of the text as UTF-8. */
  readonly maxBytes: number;
  /** Bytes of one image, sound or file. A larger one is kept in a file and named instead. */
  readonly maxMediaBytes: number;
}

export const defaultBudget: Budget = {
  maxTokens: 10_000,
  maxLines: 2_000,
  maxBytes: 128 * 1024,
  maxMediaBytes: 5 * 1024 * 1024,
};

/** For errors, because an error may quote a text of any length. */
export const errorBudget: Budget = { ...defaultBudget, maxTokens: 2_000, maxLines: 200 };

/** A text, or the two ends of an output whose middle was never in memory. */
export type Cuttable = string | CapturedOutput;

export interface Cut {
  readonly text: string;
  /** What was left out; 0 if the text is complete. */
  readonly bytes: number;
  readonly lines: number;
}

type TextBudget = Pick<Budget, "maxTokens" | "maxLines" | "maxBytes">;

/**
 * Head and tail within the budget, with a marker between them. `note` says in the marker where the
 * whole can be read.
 */
export function truncate(source: Cuttable, budget: TextBudget, note = ""): Cut {
  const text = wholeOf(source);
  if (text !== undefined && isWithin(text, budget)) return { text, bytes: 0, lines: 0 };
  const { head, tail, isOne, bytes, lines } = endsOf(source);
  const longest = estimateTokens(`\n${marker(bytes, lines, note)}`); // it may need a line break of its own
  const room = { ...budget, maxTokens: budget.maxTokens - longest };
  // The budget is smaller than the marker, so there is room only for the beginning of the marker.
  if (room.maxTokens <= 0) return cutAway(marker(bytes, lines, note), budget, { bytes, lines });
  const headEnd = headWithin(head, room);
  // In a single text, head and tail must not overlap.
  const tailStart = Math.max(tailWithin(tail, room), isOne ? headEnd : 0);
  const [first, last] = [head.slice(0, headEnd), tail.slice(tailStart)];
  const missing = {
    bytes: bytes - Buffer.byteLength(first) - Buffer.byteLength(last),
    lines: lines - countBreaks(first) - countBreaks(last),
  };
  const gap = first === "" || first.endsWith("\n") ? "" : "\n";
  const cut = `${first}${gap}${marker(missing.bytes, missing.lines, note)}${last}`;
  return { text: cut, ...missing };
}

/** The text of an output from which nothing is missing. */
export function wholeOf(source: Cuttable): string | undefined {
  if (typeof source === "string") return source;
  return source.droppedBytes === 0 ? source.head + source.tail : undefined;
}

export function lineBreaksOf(source: Cuttable): number {
  return typeof source === "string" ? countBreaks(source) : source.lineBreaks;
}

export function bytesOf(source: Cuttable): number {
  return typeof source === "string" ? Buffer.byteLength(source) : source.totalBytes;
}

/** Both ends as texts to cut from, and the counts of the whole. For a single text, both ends are that text. */
function endsOf(source: Cuttable) {
  const text = wholeOf(source);
  if (text !== undefined)
    return { head: text, tail: text, isOne: true, bytes: Buffer.byteLength(text), lines: countBreaks(text) };
  // It is not a string, because a string is complete.
  const { head, tail, droppedBytes, lineBreaks } = source as CapturedOutput;
  // If the encoding is not UTF-8, the ends are counted as they are shown.
  const bytes = Buffer.byteLength(head) + droppedBytes + Buffer.byteLength(tail);
  return { head, tail, isOne: false, bytes, lines: lineBreaks };
}

function cutAway(words: string, { maxTokens }: TextBudget, missing: { bytes: number; lines: number }): Cut {
  return { text: words.slice(0, fittingStart(words, maxTokens)), ...missing };
}

function isWithin(text: string, { maxTokens, maxLines, maxBytes }: TextBudget): boolean {
  if (text.length > maxTokens * 4 || text.length > maxBytes) return false;
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) return false;
  // A text with fewer characters than lines are allowed cannot have too many of them.
  const afterLast = text.length <= maxLines ? -1 : nthBreak(text, maxLines);
  if (afterLast !== -1 && afterLast < text.length) return false;
  // Counting costs more than everything else here, and most results are short.
  return text.length * mostTokensPerCharacter <= maxTokens || estimateTokens(text) <= maxTokens;
}

/** Where the head ends: at half of the budget, or at the end of a line if one is near. */
function headWithin(text: string, { maxTokens, maxLines, maxBytes }: TextBudget): number {
  const byLines = nthBreak(text, Math.ceil(maxLines / 2));
  const end = Math.min(
    fittingStart(text, Math.floor(maxTokens / 2)),
    bytesStart(text, Math.floor(maxBytes / 2)),
    byLines === -1 ? Infinity : byLines,
  );
  const line = text.lastIndexOf("\n", end - 1) + 1;
  return end > 0 && line > 0 && end - line <= nearLine ? line : end;
}

/** Where the tail begins, by the same rule. */
function tailWithin(text: string, { maxTokens, maxLines, maxBytes }: TextBudget): number {
  const start = Math.max(
    fittingEnd(text, Math.floor(maxTokens / 2)),
    bytesEnd(text, Math.floor(maxBytes / 2)),
    lastLines(text, Math.floor(maxLines / 2)),
  );
  if (start === 0 || text[start - 1] === "\n") return start;
  const line = text.indexOf("\n", start) + 1;
  return line > 0 && line - start <= nearLine && line < text.length ? line : start;
}

/** Half a line may read like a different one, so a line is left out as a whole unless it is longer than this. */
const nearLine = 200;

function marker(bytes: number, lines: number, note: string): string {
  const what = lines > 0 ? `${lines} lines (${bytes} bytes)` : `${bytes} bytes`;
  return `[… ${what} omitted${note} …]\n`;
}

function countBreaks(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

/** The offset after the nth line break, or -1 if there are not that many. */
function nthBreak(text: string, count: number): number {
  let at = 0;
  for (let seen = 0; seen < count; seen++) {
    const next = text.indexOf("\n", at);
    if (next === -1) return -1;
    at = next + 1;
  }
  return at;
}

/** Offset where the last `count` lines begin. */
function lastLines(text: string, count: number): number {
  if (count === 0) return text.length;
  let at = text.endsWith("\n") ? text.length - 1 : text.length;
  for (let seen = 0; seen < count; seen++) {
    if (at === 0) return 0;
    const next = text.lastIndexOf("\n", at - 1);
    if (next === -1) return 0;
    at = next;
  }
  return at + 1;
}

/** The offset up to which the text takes at most this many bytes, never inside a character. */
function bytesStart(text: string, bytes: number): number {
  const start = text.slice(0, bytes);
  const encoded = Buffer.from(start);
  if (encoded.length <= bytes) return start.length;
  let end = bytes;
  while (end > 0 && (encoded[end]! & 0xc0) === 0x80) end--;
  return encoded.toString("utf8", 0, end).length;
}

/** The offset from which the text takes at most this many bytes. */
function bytesEnd(text: string, bytes: number): number {
  if (bytes === 0) return text.length;
  const end = text.slice(-bytes);
  const encoded = Buffer.from(end);
  if (encoded.length <= bytes) return text.length - end.length;
  let start = encoded.length - bytes;
  while (start < encoded.length && (encoded[start]! & 0xc0) === 0x80) start++;
  return text.length - encoded.toString("utf8", start).length;
}
