/**
 * Aligns the columns of Markdown tables as their author wished, because the drawing library aligns every
 * cell to the left.
 */
import { sliceByColumn, stripTerminalSequences } from "@earendil-works/pi-tui";

type Alignment = "left" | "right" | "center";

/** A longer line cannot be drawn as the row of a table. */
const maxRow = 2_000;
const delimiterRow = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/** `lines` were drawn from `source`. If the two cannot be matched, nothing is moved. */
export function alignTables(lines: string[], source: string): string[] {
  const wanted = source.includes("|") ? readAlignments(source) : [];
  if (!wanted.some((table) => table.some((column) => column !== "left"))) return lines;
  const tops = lines.flatMap((line, at) => (/^\s*┌[─┬]*┐\s*$/.test(stripTerminalSequences(line)) ? [at] : []));
  if (tops.length !== wanted.length) return lines;
  const aligned = [...lines];
  for (const [table, top] of tops.entries()) {
    const borders = [...stripTerminalSequences(lines[top]!)].flatMap((char, at) => ("┌┬┐".includes(char) ? [at] : []));
    if (borders.length !== wanted[table]!.length + 1) continue;
    for (let at = top + 1; at < lines.length; at++) {
      const plain = stripTerminalSequences(lines[at]!).trimStart();
      if (plain.startsWith("│")) aligned[at] = alignRow(lines[at]!, borders, wanted[table]!);
      else if (!plain.startsWith("├")) break;
    }
  }
  return aligned;
}

/** The alignments of each table outside code blocks, in order. */
function readAlignments(source: string): readonly (readonly Alignment[])[] {
  const found: Alignment[][] = [];
  let fence: string | undefined;
  let before = "";
  for (const line of source.split("\n")) {
    const mark = /^\s*(```|~~~)/.exec(line)?.[1];
    if (mark !== undefined && (fence === undefined || fence === mark)) fence = fence === undefined ? mark : undefined;
    else if (
      fence === undefined &&
      before.includes("|") &&
      line.includes("-") &&
      line.length <= maxRow &&
      delimiterRow.test(line)
    )
      found.push(line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|").map(readAlignment));
    before = line;
  }
  return found;
}

function readAlignment(cell: string): Alignment {
  const rule = cell.trim();
  if (!rule.endsWith(":")) return "left";
  return rule.startsWith(":") ? "center" : "right";
}

/** Moves all or half of the spaces after a cell's words to the front. One space stays at the border. */
function alignRow(line: string, borders: readonly number[], alignments: readonly Alignment[]): string {
  const cells = alignments.map((alignment, column) => {
    const [from, to] = [borders[column]! + 1, borders[column + 1]!];
    const cell = sliceByColumn(line, from, to - from, true);
    const plain = stripTerminalSequences(cell);
    const spare = plain.length - plain.trimEnd().length - 1;
    if (alignment === "left" || spare <= 0 || plain.trim() === "") return cell;
    const moved = alignment === "right" ? spare : Math.floor(spare / 2);
    return `${" ".repeat(moved)}${sliceByColumn(cell, 0, to - from - moved, true)}`;
  });
  const after = sliceByColumn(line, borders.at(-1)! + 1, Number.MAX_SAFE_INTEGER, true);
  return `${sliceByColumn(line, 0, borders[0]!, true)}│${cells.join("│")}│${after}`;
}
