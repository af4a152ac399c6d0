/**
 * A stream repeats one frame again and again with different text in one place. Once a frame was read
 * in full, a run of frames that differ only inside that string is read by cutting the text out, which
 * is many times faster than parsing each frame. Whatever does not fit exactly is read in full.
 */
import type { Frame, RepeatedFrame } from "./codec.ts";
import { encodeFrame } from "./sse.ts";

const jsonString = /(\s*)("(?:[^"\\]|\\.)*")/y;

/** A frame cut around the words of one field; undefined where it is not certain that they stand there alone. */
export function cutFrame(frame: Frame, field: string, words: string): Omit<RepeatedFrame, "hear"> | undefined {
  if (words === "") return undefined;
  const text = encodeFrame(frame);
  const name = `"${field}":`;
  const at = text.indexOf(name);
  // A name that occurs twice may belong to another object.
  if (at < 0 || text.indexOf(name, at + 1) >= 0) return undefined;
  jsonString.lastIndex = at + name.length;
  const [, space = "", raw = ""] = jsonString.exec(text) ?? [];
  if (raw === "" || JSON.parse(raw) !== words) return undefined;
  const start = at + name.length + space.length;
  return { before: text.slice(0, start + 1), after: text.slice(start + raw.length - 1) };
}

/** A piece of the stream in three parts: what to read in full, the text of a run, and what comes after it. */
export interface FoundRun {
  readonly first: string;
  readonly words: string;
  readonly rest: string;
}

/** Looks for a run of frames. `isAtStart` means that the text begins where a frame begins. */
export type RunFinder = (text: string, frame: RepeatedFrame, isAtStart?: boolean) => FoundRun | undefined;

/** Fields that differ from frame to frame and say nothing: a count, and filling that hides how long the words are. */
const fillings = /"sequence_number":\d+|"obfuscation":"[A-Za-z0-9]*"/g;
/** How much longer another frame's fillings may be. */
const fillingRoom = 64;

/** What frames of the same kind share: equal for two that differ in their fillings alone. */
export function kindOf({ before, after }: Omit<RepeatedFrame, "hear">): string {
  return toPattern(after + before);
}

export function createRunFinder(): RunFinder {
  let known: Patterns | undefined;
  return (text, frame, isAtStart = false) => {
    if (known?.before !== frame.before || known.after !== frame.after) known = createPatterns(frame, known);
    const { head, begins, ends, endsLast, core, between, room } = known;
    const start = isAtStart && matchEnd(begins, text, 0) > 0 ? 0 : text.indexOf(head) + 2;
    const begin = start === 1 ? 0 : matchEnd(begins, text, start);
    if (begin === 0) return undefined;
    const read = (end: number): FoundRun | undefined => {
      const words = end > begin ? readWords(text.slice(begin, end), between) : undefined;
      return words ? { first: text.slice(0, start), words, rest: text.slice(matchEnd(ends, text, end)) } : undefined;
    };
    // The last whole frame counts where it is of the same kind; otherwise the run ends before it.
    const stop = text.lastIndexOf("\n\n") + 2;
    const tail = Math.max(begin, stop - frame.after.length - room);
    const last = endsLast.exec(text.slice(tail, stop));
    const whole = last === null ? undefined : read(tail + last.index);
    if (whole !== undefined) return whole;
    // By its fixed part, because a pattern alone would look at all of the text; the last of these may be cut off.
    let at = text.lastIndexOf(core);
    for (let tries = 0; at > begin && tries < 2; at = text.lastIndexOf(core, at - 1), tries++) {
      between.lastIndex = Math.max(begin, at - room);
      const found = between.exec(text);
      if (found !== null) return read(found.index);
    }
    return undefined;
  };
}

/** Where a sticky pattern that begins at `at` has its end; 0 where it does not match. */
function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : 0;
}

interface Patterns extends Omit<RepeatedFrame, "hear"> {
  readonly kind: string;
  /** How a frame begins behind another, up to its first filling. */
  readonly head: string;
  readonly begins: RegExp;
  readonly ends: RegExp;
  readonly endsLast: RegExp;
  /** Between the words of two frames: all of it, and the part that holds no filling. */
  readonly between: RegExp;
  /** How far before that part the rest of it may begin. */
  readonly room: number;
  readonly core: string;
}

function createPatterns({ before, after }: RepeatedFrame, known: Patterns | undefined): Patterns {
  const kind = kindOf({ before, after });
  if (known?.kind === kind) return { ...known, before, after };
  const [opening = ""] = before.split(fillings);
  const closing = after.split(fillings);
  return {
    before,
    after,
    kind,
    head: `\n\n${opening}`,
    begins: new RegExp(toPattern(before), "y"),
    ends: new RegExp(toPattern(after), "y"),
    endsLast: new RegExp(`${toPattern(after)}$`),
    between: new RegExp(kind, "g"),
    core: (closing.at(-1) ?? "") + opening,
    room: closing.length === 1 ? 0 : after.length + fillingRoom,
  };
}

// oxlint-disable-next-line no-control-regex -- JSON strings hold none of these as they are.
const needsReading = /["\\\u0000-\u001f]/;

/** The words that `between` separates, as they stand inside the quotes of JSON strings; undefined if one is not that. */
function readWords(text: string, between: RegExp): string | undefined {
  // A pattern, because the engine then writes one flat text; from a string it would make a piece for each frame.
  const all = text.replace(between, "");
  if (!needsReading.test(all)) return all;
  try {
    const listed = text.replace(between, '","');
    const count = (listed.length - all.length) / 3 + 1;
    // Read as one list: many times faster than string by string.
    const list: unknown = JSON.parse(`["${listed}"]`);
    // A string that ended earlier was another kind of frame, and the list has more entries or is none.
    const isWords = Array.isArray(list) && list.length === count && list.every((word) => typeof word === "string");
    return isWords ? list.join("") : undefined;
  } catch {
    return undefined;
  }
}

/** Matches the text itself, whatever its fillings are. */
function toPattern(text: string): string {
  const escaped = text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`);
  return escaped.replaceAll(fillings, (field) =>
    field.endsWith('"') ? '"obfuscation":"[A-Za-z0-9]*"' : String.raw`"sequence_number":\d+`,
  );
}
