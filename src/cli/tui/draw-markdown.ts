/**
 * Draws Markdown as lines of the screen. The drawing library examines every character (its width, and what
 * it combines with), which costs a hundred times what a plain sentence needs. Paragraphs without any markup
 * are therefore wrapped here, to exactly the lines that the library would have drawn.
 */
import { Markdown, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import { alignTables } from "./align-tables.ts";
import type { Theme } from "./theme.ts";

/** A line of only these characters has no meaning in Markdown, and each of its characters is one column wide. */
const plainLine = /^[A-Za-z"'(](?:[A-Za-z0-9,.;:'"()?!%-]| (?! ))*$/;
const link = /https?:|ftp:|www\./i;
/**
 * Markup whose effect may extend beyond a blank line, so that paragraphs cannot be drawn one by one.
 * Definitions of links are among it.
 */
const reachesOver = /<|\$|\\|^ *(?:`{3}|~{3})|^ *\[[^\]]*\]:/m;
const blankLines = /\n(?:[ \t]*\n)+/;

interface Piece {
  readonly source: string;
  readonly isPlain: boolean;
}

/** Draws `source` as lines that are each as wide as the screen. */
export function drawMarkdown(source: string, width: number, theme: Theme): string[] {
  const lines: string[] = [];
  for (const { source: piece, isPlain } of cutBlocks(source)) {
    if (lines.length > 0) lines.push("".padEnd(width));
    const drawn = isPlain
      ? wrapPlain(piece, width).map((row) => row.padEnd(width))
      : alignTables(new Markdown(piece, 1, 0, theme.markdown).render(width), piece);
    for (const line of drawn) lines.push(line);
  }
  return lines;
}

/** Cuts the source into plain paragraphs and the parts between them. */
function cutBlocks(source: string): readonly Piece[] {
  if (reachesOver.test(source)) return [{ source, isPlain: false }];
  const pieces: Piece[] = [];
  for (const block of source.split(blankLines)) {
    if (block.trim() === "") continue;
    const isPlain = block.split("\n").every((line) => plainLine.test(line)) && !link.test(block);
    const last = pieces.at(-1);
    // Indented text below a list belongs to the list, so adjacent parts with markup are joined again.
    if (last !== undefined && !last.isPlain && !isPlain)
      pieces[pieces.length - 1] = { source: `${last.source}\n\n${block}`, isPlain };
    else pieces.push({ source: block, isPlain });
  }
  return pieces;
}

/** Wraps lines to the width, at a space if there is one. The width of characters outside ASCII is measured. */
export function wrapPlain(source: string, width: number): readonly string[] {
  const room = Math.max(1, width - 2);
  return source.split("\n").flatMap((line) => {
    if (line.length <= room && isAscii(line)) return [` ${line}`];
    if (!isAscii(line)) return wrapTextWithAnsi(line.replaceAll("\t", "   "), room).map((row) => ` ${row}`);
    const rows: string[] = [];
    let rest = line.replaceAll("\t", "   ");
    while (rest.length > room) {
      const blank = rest.lastIndexOf(" ", room);
      const cut = blank <= 0 ? room : blank;
      rows.push(` ${rest.slice(0, cut)}`);
      rest = rest.slice(blank <= 0 ? cut : cut + 1);
    }
    return [...rows, ` ${rest}`];
  });
}

function isAscii(line: string): boolean {
  return /^[\t\x20-\x7E]*$/.test(line);
}
