import { Markdown, type Component } from "@earendil-works/pi-tui";
import { visible } from "../visible.ts";
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
  const done: Markdown[] = [];
  let live = new Markdown("", 1, 0, theme.markdown);
  let text = "";
  let changed = false;

  /** Only when drawn, which happens sixty times a second at most, however small the pieces are. */
  const settle = () => {
    changed = false;
    while (text.length > liveChars) {
      const cut = splitPoint(text);
      if (cut === 0) break;
      done.push(new Markdown(visible(text.slice(0, cut)), 1, 0, theme.markdown));
      text = text.slice(cut);
    }
    live.setText(visible(text));
  };

  return {
    append(piece) {
      text += piece;
      changed = true;
    },
    invalidate() {
      for (const view of [...done, live]) view.invalidate();
    },
    render(width) {
      if (changed) settle();
      if (done.length === 0) return live.render(width);
      // The blank line between two paragraphs belongs to neither of them.
      return [...done.flatMap((view) => [...view.render(width), ""]), ...live.render(width)];
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
