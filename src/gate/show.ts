/**
 * Text from a model or a tool as a person may safely be shown it: everything that could move the
 * cursor, hide, reorder or imitate is written out, so that what is seen is what is meant.
 */
// oxlint-disable-next-line no-control-regex -- control characters are exactly what is looked for
const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/gu;
/** Invisible, reordering, variation and tag characters, odd blanks, private use, lone surrogates. */
const invisible =
  /[\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\ue000-\uf8ff\u{e0000}-\u{e0fff}\u{f0000}-\u{10ffff}]/gu;

/** Control and invisible characters as `\x1b` or `\u{202e}`; line breaks and single tabs stay. */
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

/** One line: line breaks are written out too. */
export function toVisibleLine(text: string): string {
  return toVisible(text.replace(/\r?\n/g, "⏎ ").replaceAll("\t", " \\t "));
}

/** A command's name with letters that only look like ASCII written out beside it. */
export function toVisibleName(name: string): string {
  const shown = toVisibleLine(name);
  const foreign = [...name].filter((char) => (char.codePointAt(0) ?? 0) > 0x7e && !/^\s$/.test(char));
  if (foreign.length === 0) return shown;
  const points = [...new Set(foreign)].map(
    (char) => `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
  return `${shown} ⟨not ASCII: ${points.join(" ")}⟩`;
}

/** A whole command as one line; names of programs are checked for look-alikes. */
export function toVisibleCommand(argv: readonly string[]): string {
  return argv.map((word, index) => (index === 0 ? toVisibleName(word) : quote(toVisibleLine(word)))).join(" ");
}

function quote(word: string): string {
  return /^[\w@%+=:,./⟨⟩…-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Every line with a mark in front, so that shown text can never be taken for our own prompt. */
export function toQuotedBlock(text: string): string {
  return toVisible(text)
    .split("\n")
    .map((line) => `  │ ${line}`)
    .join("\n");
}
