/**
 * A stream repeats one frame again and again with other words in one place. Once a frame was read in full, a run of
 * frames that differ from it only inside that string is read by cutting the words out of the text: many times faster
 * than parsing each. Whatever does not fit exactly is read in full.
 */
import type { Frame, RepeatedFrame } from "./codec.ts";
import { encodeFrame } from "./sse.ts";

/** A frame cut around the words of one field; undefined where it is not certain that they stand there alone. */
export function cutFrame(frame: Frame, field: string, words: string): Omit<RepeatedFrame, "hear"> | undefined {
  if (words === "") return undefined;
  const text = encodeFrame(frame);
  const name = `"${field}":`;
  const at = text.indexOf(name);
  // A name that stands there twice may be another object's.
  if (at < 0 || text.indexOf(name, at + 1) >= 0) return undefined;
  const start = text.indexOf('"', at + name.length) + 1;
  if (text.slice(at + name.length, start).trim() !== '"' || !text.startsWith(`${words}"`, start)) return undefined;
  return { before: text.slice(0, start), after: text.slice(start + words.length) };
}

/** A piece of the stream in three parts: what to read in full, the words of a run, and what to read in full after it. */
export interface FoundRun {
  readonly first: string;
  readonly words: string;
  readonly rest: string;
}

/** Looks for a run of frames. The last one of a text is left to be read in full: it may not be whole. */
export function findRun(text: string, { before, after }: RepeatedFrame): FoundRun | undefined {
  const start = text.indexOf(`\n\n${before}`);
  if (start < 0) return undefined;
  const between = after + before;
  const end = text.lastIndexOf(between);
  const begin = start + 2 + before.length;
  if (end <= begin) return undefined;
  const words = joinWords(text.slice(begin, end).split(between));
  if (words === undefined) return undefined;
  return { first: text.slice(0, start + 2), words, rest: text.slice(end + after.length) };
}

// oxlint-disable-next-line no-control-regex -- JSON strings hold none of these as they are.
const needsReading = /["\\\u0000-\u001f]/;

/** What stands between the quotes of JSON strings; undefined if one of them is not that. */
function joinWords(pieces: readonly string[]): string | undefined {
  const all = pieces.join("");
  if (!needsReading.test(all)) return all;
  let words = "";
  for (const piece of pieces) {
    const said = needsReading.test(piece) ? readString(piece) : piece;
    if (said === undefined) return undefined;
    words += said;
  }
  return words;
}

function readString(inside: string): string | undefined {
  try {
    const value: unknown = JSON.parse(`"${inside}"`);
    return typeof value === "string" ? value : undefined;
  } catch {
    // The string ended earlier: another kind of frame.
    return undefined;
  }
}
