/** A text as lines, each with its own ending, such that joining them gives the same text back. */
export interface Lines {
  readonly texts: readonly string[];
  readonly endings: readonly string[];
  /** What a new line is ended with: the first ending there is. */
  readonly ending: string;
}

export function splitLines(text: string): Lines {
  const texts: string[] = [];
  const endings: string[] = [];
  const breaks = /\r\n|\n|\r/g;
  let from = 0;
  for (let match = breaks.exec(text); match !== null; match = breaks.exec(text)) {
    texts.push(text.slice(from, match.index));
    endings.push(match[0]);
    from = breaks.lastIndex;
  }
  if (from < text.length) {
    texts.push(text.slice(from));
    endings.push("");
  }
  return { texts, endings, ending: endings.find((ending) => ending !== "") ?? "\n" };
}

/** A line of a result: kept with its bytes, or new. */
export interface ResultLine {
  readonly text: string;
  readonly ending?: string;
}

/** `closed`: the last line gets an ending too. */
export function joinLines(lines: readonly ResultLine[], ending: string, closed: boolean): string {
  const last = lines.length - 1;
  return lines.map((line, index) => line.text + (index === last && !closed ? "" : line.ending || ending)).join("");
}
