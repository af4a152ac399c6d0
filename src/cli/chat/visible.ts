import { createHiddenPattern } from "../../base/hidden.ts";

/**
 * Makes text from a model, a tool or a server safe to print: escape sequences do nothing, and
 * invisible and direction-changing characters are shown by their number. Line ends and tabs stay.
 */
export function visible(text: string): string {
  // Most text is nothing else, and the whole pattern takes longer to build than a start can spare.
  if (/^[\t\n\x20-\x7E]*$/.test(text)) return text;
  return text.replaceAll((hidden ??= createHiddenPattern()), (char) =>
    char === "\r" ? "" : `‹${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}›`,
  );
}

let hidden: RegExp | undefined;
