import { Markdown, wrapTextWithAnsi, type Component } from "@earendil-works/pi-tui";
import { visible } from "../chat/visible.ts";
import { alignTables } from "./align-tables.ts";
import type { Theme } from "./theme.ts";

/** Markdown that grows. What stands before a finished paragraph is drawn once, so a long answer costs no more per piece than a short one. */
export interface StreamedText extends Component {
  append(piece: string): void;
}

/** Above this the finished part is split off. */
const liveChars = 4_096;
/** A text without paragraphs is split here all the same. */
const maxLiveChars = 32_768;
/** More than this between two frames is a flood that nobody reads as it goes by: all but its end is drawn as it is. */
const floodChars = 65_536;
const floodTail = 8_192;

interface Done {
  readonly source: string;
  /** Drawn without reading it as Markdown, which costs a hundred times as much. */
  readonly isPlain?: boolean;
}

export function createStreamedText(theme: Theme): StreamedText {
  const live = new Markdown("", 1, 0, theme.markdown);
  const done: Done[] = [];
  /** The finished part as lines, for one width; it only grows. */
  let drawn = { width: 0, parts: 0, lines: [] as string[] };
  let text = "";
  let changed = false;

  /** Only when drawn, which happens sixty times a second at most, however small the pieces are. */
  const settle = () => {
    changed = false;
    if (text.length > floodChars) {
      const cut = text.lastIndexOf("\n", text.length - floodTail) + 1 || text.length - floodTail;
      done.push({ source: visible(text.slice(0, cut)), isPlain: true });
      text = text.slice(cut);
    }
    while (text.length > liveChars) {
      const cut = splitPoint(text);
      if (cut === 0) break;
      done.push({ source: visible(text.slice(0, cut)) });
      text = text.slice(cut);
    }
    live.setText(visible(text));
  };
  const drawDone = (width: number) => {
    if (drawn.width !== width) drawn = { width, parts: 0, lines: [] };
    for (; drawn.parts < done.length; drawn.parts++) {
      // The blank line between two paragraphs belongs to neither of them.
      const { source, isPlain = false } = done[drawn.parts]!;
      const lines = isPlain
        ? wrapPlain(source, width)
        : alignTables(new Markdown(source, 1, 0, theme.markdown).render(width), source);
      for (const line of lines) drawn.lines.push(line);
      drawn.lines.push("");
    }
    return drawn.lines;
  };

  return {
    append(piece) {
      text += piece;
      changed = true;
    },
    invalidate() {
      drawn = { width: 0, parts: 0, lines: [] };
      live.invalidate();
    },
    render(width) {
      if (changed) settle();
      const lines = alignTables(live.render(width), text);
      return done.length === 0 ? lines : drawDone(width).concat(lines);
    },
  };
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

/** After the first blank line beyond the limit that is in no code block; 0 where there is none yet. */
function splitPoint(text: string): number {
  let fenced = false;
  let at = 0;
  while (at < text.length) {
    const end = text.indexOf("\n", at);
    if (end === -1) break;
    const line = text.slice(at, end);
    if (/^\s*(```|~~~)/.test(line)) fenced = !fenced;
    at = end + 1;
    if (line.trim() === "" && !fenced && at > liveChars / 2) return at;
  }
  return text.length > maxLiveChars ? maxLiveChars : 0;
}
