/**
 * Makes text from a model, a tool or a server safe to print: escape sequences do nothing, and
 * invisible and direction-changing characters are shown by their number. Line ends and tabs stay.
 */
export function visible(text: string): string {
  // Most text is nothing else, and the whole pattern takes longer to build than a start can spare.
  if (/^[\t\n\x20-\x7E]*$/.test(text)) return text;
  return text.replaceAll((hidden ??= createHidden()), (char) =>
    char === "\r" ? "" : `‹${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}›`,
  );
}

/**
 * Control characters except tab and newline; zero-width, bidi and tag characters; lone surrogates.
 * Joiners stay where a script or a picture needs them: in Persian, in Hindi, in families of emoji.
 */
const joined = String.raw`(?:[\p{Extended_Pictographic}\uFE0F\u{1F3FB}-\u{1F3FF}]|(?![\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}])[\p{L}\p{M}])`;
const createHidden = () =>
  new RegExp(
    String.raw`[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160\u180B-\u180E\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\u3164\uFEFF\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}]|(?<!${joined})[\u200C\u200D]|[\u200C\u200D](?!${joined})|[\uD800-\uDFFF]`,
    "gu",
  );
let hidden: RegExp | undefined;
