import { Markdown, type Component } from "@earendil-works/pi-tui";
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

export function createStreamedText(theme: Theme): StreamedText {
  const live = new Markdown("", 1, 0, theme.markdown);
  const done: string[] = [];
  /** The finished part as lines, for one width; it only grows. */
  let drawn = { width: 0, parts: 0, lines: [] as string[] };
  let text = "";
  let changed = false;

  /** Only when drawn, which happens sixty times a second at most, however small the pieces are. */
  const settle = () => {
    changed = false;
    while (text.length > liveChars) {
      const cut = splitPoint(text);
      if (cut === 0) break;
      done.push(visible(text.slice(0, cut)));
      text = text.slice(cut);
    }
    live.setText(visible(text));
  };
  const drawDone = (width: number) => {
    if (drawn.width !== width) drawn = { width, parts: 0, lines: [] };
    for (; drawn.parts < done.length; drawn.parts++) {
      // The blank line between two paragraphs belongs to neither of them.
      const source = done[drawn.parts]!;
      const lines = new Markdown(source, 1, 0, theme.markdown).render(width);
      for (const line of alignTables(lines, source)) drawn.lines.push(line);
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
