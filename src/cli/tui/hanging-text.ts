import { visibleWidth, wrapTextWithAnsi, type Component } from "@earendil-works/pi-tui";

/**
 * Text whose wrapped lines are indented below their beginning, so that the rest of a wrapped line can never
 * be taken for a line of its own, in a diff, in an output or in a command that is asked about.
 */
export interface HangingText extends Component {
  setText(text: string): void;
}

export function createHangingText(initial: string): HangingText {
  let lines = toLines(initial);
  let drawn: { readonly width: number; readonly rows: string[] } | undefined;
  return {
    setText(text) {
      lines = toLines(text);
      drawn = undefined;
    },
    invalidate() {
      drawn = undefined;
    },
    render(width) {
      drawn = drawn?.width === width ? drawn : { width, rows: lines.flatMap((line) => hang(line, width)) };
      return drawn.rows;
    },
  };
}

function toLines(text: string): readonly string[] {
  return text.trim() === "" ? [] : text.replaceAll("\t", "   ").split("\n");
}

/** The beginning of a line: its colours, then the indent with the bar of a quotation. */
const beginning = /^((?:\p{Cc}\[[\d;]*m)*)( *(?:│ )?)/u;
/** If there is less room than this, nothing is indented. */
const leastWidth = 12;

function hang(line: string, width: number): readonly string[] {
  if (width < leastWidth) return wrapTextWithAnsi(line, Math.max(1, width));
  if (visibleWidth(line) <= width - 2) return [` ${line}`];
  const [, colours = "", all = ""] = beginning.exec(line) ?? [];
  const indent = all.length > width / 3 ? "" : all;
  const below = indent === "" ? "  " : indent;
  const [head = "", ...rest] = wrapTextWithAnsi(
    colours + line.slice(colours.length + indent.length),
    width - 2 - below.length,
  );
  return [` ${indent}${head}`, ...rest.map((row) => ` ${below}${row}`)];
}
