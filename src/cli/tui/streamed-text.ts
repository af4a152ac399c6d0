import type { Component } from "@earendil-works/pi-tui";
import { visible } from "../chat/visible.ts";
import { drawMarkdown, wrapPlain } from "./draw-markdown.ts";
import type { Theme } from "./theme.ts";

/**
 * Markdown that grows. Finished paragraphs are drawn only once, so each piece of a long answer costs no
 * more than one of a short answer.
 */
export interface StreamedText extends Component {
  append(piece: string): void;
}

/** If the text is longer than this, its finished part is split off. */
const liveChars = 4_096;
/** A text without paragraphs is split when it reaches this length. */
const maxLiveChars = 32_768;
/**
 * If more than this arrives between two frames, nobody can read it as it goes by, so all but its end is
 * drawn as plain text.
 */
const floodChars = 65_536;
const floodTail = 8_192;

interface Done {
  readonly source: string;
  /** True if it is drawn as plain text, because reading it as Markdown costs a hundred times as much. */
  readonly isPlain?: boolean;
}

export function createStreamedText(theme: Theme): StreamedText {
  const done: Done[] = [];
  /**
   * The finished part as lines for one width. After the settled lines come those of the part that grew in
   * the last frame.
   */
  let drawn = { width: 0, parts: 0, settled: 0, lines: [] as string[] };
  /** The part that still grows, for one width. */
  let live: { readonly width: number; readonly lines: string[] } | undefined;
  let text = "";
  let changed = false;

  /**
   * Splits off the finished part. This is done only when drawing, at most sixty times a second, however
   * small the pieces are.
   */
  const settle = () => {
    changed = false;
    live = undefined;
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
  };
  const drawDone = (width: number) => {
    if (drawn.width !== width) drawn = { width, parts: 0, settled: 0, lines: [] };
    drawn.lines.length = drawn.settled;
    for (; drawn.parts < done.length; drawn.parts++) {
      // The blank line between two paragraphs belongs to neither of them.
      const { source, isPlain = false } = done[drawn.parts]!;
      const lines = isPlain ? wrapPlain(source, width) : drawMarkdown(source, width, theme);
      for (const line of lines) drawn.lines.push(line);
      drawn.lines.push("");
    }
    drawn.settled = drawn.lines.length;
    return drawn.lines;
  };

  return {
    append(piece) {
      text += piece;
      changed = true;
    },
    invalidate() {
      drawn = { width: 0, parts: 0, settled: 0, lines: [] };
      live = undefined;
    },
    render(width) {
      if (changed) settle();
      if (live?.width !== width) live = { width, lines: drawMarkdown(visible(text), width, theme) };
      if (done.length === 0) return live.lines;
      // The same list is used for every frame and only its end is replaced. Copying it each time would make
      // the cost of a long answer quadratic.
      const lines = drawDone(width);
      for (const line of live.lines) lines.push(line);
      return lines;
    },
  };
}

/** The position after the first blank line beyond the limit that is not in a code block, or 0 if there is none yet. */
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
