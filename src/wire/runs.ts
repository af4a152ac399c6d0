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

/** A piece of the stream in three parts: what to read in full, the words of a run, and what comes after it. */
export interface FoundRun {
  readonly first: string;
  readonly words: string;
  readonly rest: string;
}

/** Looks for a run of frames. `isAtStart`: the text begins where a frame begins. */
export type RunFinder = (text: string, frame: RepeatedFrame, isAtStart?: boolean) => FoundRun | undefined;

export function createRunFinder(): RunFinder {
  let between = "";
  let pattern = /(?:)/g;
  return (text, { before, after }, isAtStart = false) => {
    const start = isAtStart && text.startsWith(before) ? 0 : text.indexOf(`\n\n${before}`) + 2;
    if (start === 1) return undefined;
    const begin = start + before.length;
    if (between !== after + before) {
      between = after + before;
      pattern = new RegExp(escapePattern(between), "g");
    }
    const read = (end: number): FoundRun | undefined => {
      const words = end <= begin ? "" : readWords(text.slice(begin, end), between, pattern);
      return words ? { first: text.slice(0, start), words, rest: text.slice(end + after.length) } : undefined;
    };
    // The last frame counts where it is whole and of the same kind; otherwise the run ends before it.
    return (text.endsWith(after) ? read(text.length - after.length) : undefined) ?? read(text.lastIndexOf(between));
  };
}

// oxlint-disable-next-line no-control-regex -- JSON strings hold none of these as they are.
const needsReading = /["\\\u0000-\u001f]/;

/** The words that `between` separates, as they stand inside the quotes of JSON strings; undefined if one is not that. */
function readWords(text: string, between: string, pattern: RegExp): string | undefined {
  // A pattern, because the engine then writes one flat text; from a string it would make a piece for each frame.
  const all = text.replace(pattern, "");
  if (!needsReading.test(all)) return all;
  const count = (text.length - all.length) / between.length + 1;
  try {
    // Read as one list: many times faster than string by string.
    const list: unknown = JSON.parse(`["${text.replace(pattern, '","')}"]`);
    // A string that ended earlier was another kind of frame, and the list has more entries or is none.
    const isWords = Array.isArray(list) && list.length === count && list.every((word) => typeof word === "string");
    return isWords ? list.join("") : undefined;
  } catch {
    return undefined;
  }
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`);
}
