/** A text as lines, each with its own ending, such that joining them gives the same text back. */
export interface Lines {
  readonly texts: readonly string[];
  readonly endings: readonly string[];
  /** What a new line is ended with: the first ending there is. */
  readonly ending: string;
}

export function splitLines(text: string): Lines {
  const texts = text.includes("\r") ? text.split(/\r\n|\n|\r/) : text.split("\n");
  const endings: string[] = [];
  let at = 0;
  for (let index = 0; index < texts.length - 1; index++) {
    at += texts[index]!.length;
    endings.push(text.startsWith("\r\n", at) ? "\r\n" : text[at]!);
    at += endings[index]!.length;
  }
  if (texts.at(-1) === "") texts.pop();
  else endings.push("");
  return { texts, endings, ending: endings.find((ending) => ending !== "") ?? "\n" };
}

/** A line of a result: kept with its bytes, or new. */
export interface ResultLine {
  readonly text: string;
  readonly ending?: string;
}

/** `closed`: the last line gets an ending too. */
export function joinLines(lines: readonly ResultLine[], ending: string, closed: boolean): string {
  let text = "";
  for (const line of lines) text += line.text + (line.ending || ending);
  const last = lines.at(-1);
  return closed || last === undefined ? text : text.slice(0, -(last.ending || ending).length);
}
