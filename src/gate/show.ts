/**
 * Text from a model or a tool, made safe to show to a person. Everything that could move the cursor,
 * hide, reorder or imitate is written out as an escape, so that a person sees what is really there.
 */

// oxlint-disable-next-line no-control-regex -- control characters are exactly what is looked for
const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/gu;
/** Invisible, reordering, variation and tag characters, unusual blanks and private use, as ranges of code points. */
const hidden: readonly (readonly [number, number])[] = [
  [0x00a0, 0x00a0],
  [0x00ad, 0x00ad],
  [0x034f, 0x034f],
  [0x061c, 0x061c],
  [0x115f, 0x1160],
  [0x1680, 0x1680],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x2000, 0x200f],
  [0x2028, 0x202f],
  [0x205f, 0x206f],
  [0x2800, 0x2800],
  [0x3000, 0x3000],
  [0x3164, 0x3164],
  [0xd800, 0xf8ff],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xffff],
  [0xe0000, 0xe0fff],
  [0xf0000, 0x10ffff],
];
const invisible = new RegExp(
  `[${hidden.map(([low, high]) => `\\u{${low.toString(16)}}-\\u{${high.toString(16)}}`).join("")}]`,
  "gu",
);

/** A text whose control and invisible characters can be seen, as `\x1b` or `\u{202e}`. Line breaks and single tabs stay. */
export function toVisible(text: string): string {
  return text
    .replace(control, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`)
    .replace(invisible, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`)
    .replace(
      /\t{2,}| {40,}|\n{4,}/g,
      (run) =>
        `${run[0] === "\n" ? "\n" : " "}⟨${run.length} ${run[0] === "\t" ? "tabs" : run[0] === "\n" ? "line breaks" : "blanks"}⟩${run[0] === "\n" ? "\n" : " "}`,
    );
}

/** One line: line breaks are escaped too. */
export function toVisibleLine(text: string): string {
  return toVisible(text.replace(/\r?\n/g, "⏎ ").replaceAll("\t", " \\t "));
}

/** A command's name. Letters that only look like ASCII are written out beside it. */
export function toVisibleName(name: string): string {
  const shown = toVisibleLine(name);
  const foreign = [...name].filter((char) => (char.codePointAt(0) ?? 0) > 0x7e && !/^\s$/.test(char));
  if (foreign.length === 0) return shown;
  const points = [...new Set(foreign)].map(
    (char) => `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
  return `${shown} ⟨not ASCII: ${points.join(" ")}⟩`;
}

/** Letters of other alphabets that can pass for ASCII, by code point: Greek, Cyrillic, Armenian, Cherokee, letter-like and full-width forms. */
export function lookAlikes(text: string): readonly string[] {
  const found =
    text.match(/[\u0370-\u058f\u13a0-\u13ff\u2100-\u214f\ua640-\ua69f\uff01-\uff5e\u{1d400}-\u{1d7ff}]/gu) ?? [];
  return [...new Set(found)].map(
    (char) => `${char} U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
}

/** A whole command as one line; names of programs are checked for look-alikes. */
export function toVisibleCommand(argv: readonly string[]): string {
  return argv.map((word, index) => (index === 0 ? toVisibleName(word) : quote(toVisibleLine(word)))).join(" ");
}

function quote(word: string): string {
  return /^[\w@%+=:,./⟨⟩…-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Puts a mark in front of every line, so that shown text can never be mistaken for our own prompt. */
export function toQuotedBlock(text: string): string {
  return toVisible(text)
    .split("\n")
    .map((line) => `  │ ${line}`)
    .join("\n");
}
