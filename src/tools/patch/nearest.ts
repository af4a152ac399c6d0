/** Finds the place in a file that is most similar to lines that were not found. */

/** A larger search is given up rather than taking long. */
const maxWork = 1_000_000;
const shownLines = 12;

/** The most similar place in a file, with line numbers and the differences. Undefined if nothing is similar. */
export function nearestPlace(texts: readonly string[], wanted: readonly string[]): string | undefined {
  if (texts.length === 0 || texts.length * wanted.length > maxWork) return undefined;
  const file = texts.map(squeeze);
  const old = wanted.map(squeeze);
  let best = { at: -1, score: 0 };
  for (let at = 0; at < file.length; at++) {
    const score = scoreAt(file, old, at);
    if (score > best.score) best = { at, score };
  }
  if (best.at < 0 || best.score < old.length * 0.35) return undefined;
  return describe(texts, wanted, best.at);
}

/** A run of blanks counts as one, because lines that differ only in blanks are similar. */
function squeeze(line: string): string {
  return line.trim().replace(/\s+/g, " ");
}

function scoreAt(file: readonly string[], old: readonly string[], at: number): number {
  let score = 0;
  for (let index = 0; index < old.length; index++) {
    const line = file[at + index];
    if (line !== undefined) score += likeness(line, old[index]!);
  }
  return score;
}

/** 1 for equal, less for a shared beginning and end. It is cheap on purpose. */
function likeness(a: string, b: string): number {
  if (a === b) return a === "" ? 0.2 : 1;
  const longest = Math.max(a.length, b.length);
  const shortest = Math.min(a.length, b.length);
  let head = 0;
  while (head < shortest && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < shortest - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const share = (head + tail) / longest;
  return share > 0.5 ? share * 0.9 : 0;
}

function describe(texts: readonly string[], wanted: readonly string[], at: number): string {
  const rows = wanted.slice(0, shownLines).flatMap((line, index) => {
    const there = texts[at + index];
    if (there === line) return [`  ${at + index + 1}: ${line}`];
    return [
      `  ${at + index + 1}: in the file: ${there === undefined ? "(the file ends here)" : visible(there)}`,
      `     in the patch: ${visible(line)}`,
    ];
  });
  const more = wanted.length > shownLines ? ["  …"] : [];
  return [`The nearest place is line ${at + 1}:`, ...rows, ...more].join("\n");
}

/** Makes tabs and trailing blanks visible. */
function visible(line: string): string {
  return line.replaceAll("\t", "→").replace(/(?<! ) +$/, (blanks) => "·".repeat(blanks.length));
}
