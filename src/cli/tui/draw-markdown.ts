/**
 * Markdown as lines of the screen. The drawing library looks at every character by itself (its width, what it joins),
 * which costs a hundred times what a plain sentence needs: paragraphs that hold no mark at all are wrapped here, to the
 * very lines that the library would have drawn.
 */
import { Markdown, wrapTextWithAnsi } from "@earendil-works/pi-tui";
import { alignTables } from "./align-tables.ts";
import type { Theme } from "./theme.ts";

/** Nothing in such a line can mean anything to Markdown, nor be wider than it is long. */
const plainLine = /^[A-Za-z"'(](?:[A-Za-z0-9,.;:'"()?!%-]| (?! ))*$/;
const link = /https?:|ftp:|www\./i;
/** What may reach over a blank line and so make a paragraph something else, or give a link elsewhere its address. */
const reachesOver = /<|\$|\\|^ *(?:`{3}|~{3})|^ *\[[^\]]*\]:/m;
const blankLines = /\n(?:[ \t]*\n)+/;

interface Piece {
  readonly source: string;
  readonly isPlain: boolean;
}

/** The lines of `source`, as wide as the screen each. */
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

/** Plain paragraphs, and what stands between them. */
function cutBlocks(source: string): readonly Piece[] {
  if (reachesOver.test(source)) return [{ source, isPlain: false }];
  const pieces: Piece[] = [];
  for (const block of source.split(blankLines)) {
    if (block.trim() === "") continue;
    const isPlain = block.split("\n").every((line) => plainLine.test(line)) && !link.test(block);
    const last = pieces.at(-1);
    // What is indented below a list belongs to it: only what is marked up is joined again.
    if (last !== undefined && !last.isPlain && !isPlain)
      pieces[pieces.length - 1] = { source: `${last.source}\n\n${block}`, isPlain };
    else pieces.push({ source: block, isPlain });
  }
  return pieces;
}

/** Lines cut to the width at a blank where there is one; what is not ASCII has widths of its own. */
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
