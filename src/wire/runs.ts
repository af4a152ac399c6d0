/**
 * A stream often repeats one frame many times with different text in one place. Once such a frame was read in full,
 * the frames after it that differ only in that text are read by cutting the text out, which is many times faster than
 * parsing each of them. Whatever does not fit exactly is read in full.
 */
import type { Frame, RepeatedFrame } from "./codec.ts";
import { encodeFrame } from "./sse.ts";

const jsonString = /(\s*)("(?:[^"\\]|\\.)*")/y;

/** Cuts a frame around the text of one field. Undefined if it is not certain that the text occurs only there. */
export function cutFrame(frame: Frame, field: string, words: string): Omit<RepeatedFrame, "hear"> | undefined {
  if (words === "") return undefined;
  const text = encodeFrame(frame);
  const name = `"${field}":`;
  const at = text.indexOf(name);
  // If the field's name occurs twice, one of the two may belong to another object.
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

/**
 * Fields that differ from frame to frame and are not used: a counter, and padding that hides the length of the text.
 */
const fillings = /"sequence_number":\d+|"obfuscation":"[A-Za-z0-9]*"/g;
/** How much longer these fields may be in another frame. */
const fillingRoom = 64;

/** The kind of a frame: the same text for two frames that differ only in those fields. */
export function kindOf({ before, after }: Omit<RepeatedFrame, "hear">): string {
  return toPattern(after + before);
}

export function createRunFinder(): RunFinder {
  let known: Patterns | undefined;
  return (text, frame, isAtStart = false) => {
    if (known?.before !== frame.before || known.after !== frame.after) known = createPatterns(frame, known);
    const { head, begins, ends, endsLast, core, between, closing, room } = known;
    const start = isAtStart && matchEnd(begins, text, 0) > 0 ? 0 : text.indexOf(head) + 2;
    const begin = start === 1 ? 0 : matchEnd(begins, text, start);
    if (begin === 0) return undefined;
    const read = (end: number): FoundRun | undefined => {
      const words = end > begin ? readWords(text.slice(begin, end), between, closing) : undefined;
      return words ? { first: text.slice(0, start), words, rest: text.slice(matchEnd(ends, text, end)) } : undefined;
    };
    // If the last complete frame is of the same kind, the run goes up to its end; otherwise the run ends before it.
    const stop = text.lastIndexOf("\n\n") + 2;
    const tail = Math.max(begin, stop - frame.after.length - room);
    const last = endsLast.exec(text.slice(tail, stop));
    const whole = last === null ? undefined : read(tail + last.index);
    if (whole !== undefined) return whole;
    // The fixed part is searched for first, because a pattern alone would have to look at the whole text. The last
    // place found may be a frame that is cut off.
    let at = text.lastIndexOf(core);
    for (let tries = 0; at > begin && tries < 2; at = text.lastIndexOf(core, at - 1), tries++) {
      between.lastIndex = Math.max(begin, at - room);
      const found = between.exec(text);
      if (found !== null) return read(found.index);
    }
    return undefined;
  };
}

/** The position after a match of this sticky pattern at `at`, or 0 if it does not match there. */
function matchEnd(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : 0;
}

interface Patterns extends Omit<RepeatedFrame, "hear"> {
  readonly kind: string;
  /** The beginning of a frame that follows another one, up to its first field that differs. */
  readonly head: string;
  readonly begins: RegExp;
  readonly ends: RegExp;
  readonly endsLast: RegExp;
  /** What stands between the texts of two frames: as a pattern, and the part of it that is always the same. */
  readonly between: RegExp;
  /** How that pattern begins: the quote that ends a text, and what follows it up to the first field that differs. */
  readonly closing: string;
  /** How many characters before that part the match may begin. */
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
    closing: closing[0] ?? "",
    core: (closing.at(-1) ?? "") + opening,
    room: closing.length === 1 ? 0 : after.length + fillingRoom,
  };
}

// oxlint-disable-next-line no-control-regex -- JSON strings hold none of these as they are.
const needsReading = /["\\\u0000-\u001f]/;

/**
 * The texts that `between` separates, joined, as they are written inside the quotes of JSON strings. Undefined if one
 * of them is not such a text.
 */
function readWords(text: string, between: RegExp, closing: string): string | undefined {
  // Replacing a pattern makes one flat string, while replacing a string would make a string of many small pieces.
  const all = text.replace(between, "");
  if (!needsReading.test(all)) return all;
  try {
    // If no text can end inside an escape, they can be joined before they are parsed.
    if (!all.includes(String.raw`\u`) && !text.includes(`\\${closing}`)) return String(JSON.parse(`"${all}"`));
    const listed = text.replace(between, '","');
    const count = (listed.length - all.length) / 3 + 1;
    // All texts are parsed as one list, which is many times faster than one by one.
    const list: unknown = JSON.parse(`["${listed}"]`);
    // If a string ended earlier than expected, that was another kind of frame. The list then has more entries, or is
    // not valid.
    const isWords = Array.isArray(list) && list.length === count && list.every((word) => typeof word === "string");
    return isWords ? list.join("") : undefined;
  } catch {
    return undefined;
  }
}

/** A pattern for this text that accepts any value of the fields that differ. */
function toPattern(text: string): string {
  const escaped = text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`);
  return escaped.replaceAll(fillings, (field) =>
    field.endsWith('"') ? '"obfuscation":"[A-Za-z0-9]*"' : String.raw`"sequence_number":\d+`,
  );
}
